"""A node on a tree: a private D-Bus, a played systemd, a played kubelet, and orders that the node believes."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import multiprocessing
import os
import socket
import stat
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from numacore.change import editing
from numacore.change import order as orders
from numacore.change.order import Answer, Order, Signed
from tests import servers
from tests.numaagent.applier import child, kubelet
from tests.numaagent.applier.systemd import PlayedSystemd

MACHINE = "0123456789abcdef0123456789abcdef"
SETTINGS = """\
# The operator's own words
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
healthzPort: {health}
port: {port}
topologyManagerPolicy: none   # until the new machines come
systemReserved: {{cpu: "500m"}}
"""
WISH = {"cpuManagerPolicy": "static", "topologyManagerPolicy": "single-numa-node"}
SERVICE, TIMER = "numaweb-kubelet-undo.service", "numaweb-kubelet-undo.timer"
TOKEN = "a-token-of-the-job"
_BUS = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
"""
T = TypeVar("T", bound=msgspec.Struct)
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["tests.numaagent.applier.child", "tests.numaagent.applier.kubelet", "numaagent.applier.command"]
)


class Node:
    """One node. `async with` starts it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree = folder, folder / "host"
        self.key = Ed25519PrivateKey.generate()
        self.health, self.port = servers.free_port(), servers.free_port()
        self.systemd = PlayedSystemd(self.tree, f"unix:path={self.socket}", CONTEXT)
        self.epoch = 7
        self.mounts: list[Path] = []
        self._bus: asyncio.subprocess.Process | None = None

    @property
    def socket(self) -> Path:
        return self.tree / "run/dbus/system_bus_socket"

    def at(self, path: str) -> Path:
        return Path(f"{self.tree}{path}")

    # ------------------------------------------------------------ its life

    async def __aenter__(self) -> Node:
        for name in (
            "var/lib/kubelet",
            "etc/kubernetes",
            "etc/systemd/system/timers.target.wants",
            "run/dbus",
            "var/lib/numaweb",
        ):
            (self.tree / name).mkdir(parents=True)
        self.at("/etc/machine-id").write_text(MACHINE + "\n")
        self.config.write_text(SETTINGS.format(health=self.health, port=self.port))
        self.config.chmod(0o640)
        (self.folder / "keys.pem").write_bytes(public(self.key))
        (self.folder / "token").write_text(TOKEN + "\n")
        await self.start_bus()
        await self.systemd.__aenter__()
        await self.systemd.kubelet.start()
        await self.until_healthy()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.systemd.__aexit__()
        await self.stop_bus()
        for place in self.mounts:
            umount = await asyncio.create_subprocess_exec("umount", place)
            assert await umount.wait() == 0

    async def start_bus(self) -> None:
        program = servers.program("dbus-daemon")
        (self.folder / "bus.conf").write_text(_BUS.format(path=self.socket))
        self._bus = await asyncio.create_subprocess_exec(
            program,
            f"--config-file={self.folder / 'bus.conf'}",
            "--nofork",
            "--nopidfile",
            "--nosyslog",
            stderr=asyncio.subprocess.DEVNULL,
        )
        await until(self._bus_listens)

    def _bus_listens(self) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self.socket))
            return True
        return False

    async def stop_bus(self) -> None:
        assert self._bus is not None
        if self._bus.returncode is None:
            self._bus.kill()
            await self._bus.wait()
        self.socket.unlink(missing_ok=True)

    async def until_healthy(self) -> None:
        state = self.at("/var/lib/kubelet/cpu_manager_state")
        await until(lambda: servers.listens(self.health) and state.exists())

    async def healthy(self) -> bool:
        """The same process for longer than a doomed one lives, and it answers."""
        await self.until_healthy()
        process = self.systemd.kubelet.pid
        await asyncio.sleep(2 * kubelet.LATE)
        return process != 0 and self.systemd.kubelet.pid == process and servers.listens(self.health)

    # ------------------------------------------------------------ its files

    @property
    def config(self) -> Path:
        return self.at("/var/lib/kubelet/config.yaml")

    def state(self, name: str = "cpu_manager_state") -> str:
        return self.at(f"/var/lib/kubelet/{name}").read_text()

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Content and mode of every file that is the kubelet's or systemd's."""
        found = {}
        for name in ("var/lib/kubelet", "etc"):
            for path in sorted((self.tree / name).rglob("*")):
                if path.is_symlink():
                    found[str(path.relative_to(self.tree))] = (os.readlink(path).encode(), 0)
                elif path.is_file():
                    mode = stat.S_IMODE(path.stat().st_mode)
                    found[str(path.relative_to(self.tree))] = (path.read_bytes(), mode)
        return found

    def certified(self) -> None:
        """The kubelet gets a certificate of its own, and with it /configz."""
        folder = self.at("/var/lib/kubelet/pki")
        folder.mkdir()
        certificate(folder)

    # ------------------------------------------------------------ orders

    def order(self, **changes: Any) -> Order:
        """none to single-numa-node; with the next epoch."""
        self.epoch += 1
        text = self.config.read_text()
        keys = changes.get("keys", WISH)
        given: dict[str, Any] = {
            "act": "apply",
            "node": "numa-vm",
            "machine_id": MACHINE,
            "epoch": self.epoch,
            "rollout": "pool-fast-3",
            "path": "/var/lib/kubelet/config.yaml",
            "keys": keys,
            "before": orders.sha256(text),
            "state_files": ("cpu_manager_state",),
            "healthz_port": self.health,
            "expires": int(time.time()) + 600,
            "healthy_within": 160,
            "steady_for": 1,
            "dead_man": 240,
        }
        given |= changes
        if "after" not in given:
            removed = dict.fromkeys(given.get("removed", ()), editing.REMOVE)
            given["after"] = orders.sha256(editing.edit(text, {**keys, **removed}))
        return Order(**given)

    def signed(self, order: Order) -> bytes:
        """As the web side sends it."""
        return envelope(self.key, orders.encode(order))

    async def give(
        self,
        order: Order | bytes,
        *more: str,
        **how: Any,
    ) -> Answer | None:
        """The answer of an applier of its own; None = it was killed. `how`: as in `child.run`."""
        status = await self.run(order, *more, **how)
        log = self.folder / "termination-log"
        return orders.decode_answer(log.read_bytes()) if status >= 0 and log.exists() else None

    async def run(self, order: Order | bytes, *more: str, **how: Any) -> int:
        """Its exit status; below 0 = the signal that ended it."""
        process = self.start(order, *more, **how)
        while process.is_alive():  # noqa: ASYNC110 - a thread for each would use up the loop's few
            await asyncio.sleep(0.02)
        status = process.exitcode
        process.close()
        assert isinstance(status, int)
        return status

    def start(
        self, order: Order | bytes, *more: str, environ: dict[str, str] | None = None, **how: Any
    ) -> Any:
        log = self.folder / "termination-log"
        log.unlink(missing_ok=True)
        (self.folder / "order.json").write_bytes(order if isinstance(order, bytes) else self.signed(order))
        arguments = [
            f"--order={self.folder / 'order.json'}",
            f"--keys={self.folder / 'keys.pem'}",
            f"--host={self.tree}",
            f"--termination-log={log}",
            *more,
        ]
        given = {"NODE_NAME": "numa-vm", **(environ or {})}
        process = CONTEXT.Process(target=child.run, args=(arguments, given), kwargs=how, daemon=True)
        process.start()
        return process


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Node]:
    """A node in a folder with a short name: a socket's path has 107 characters at most."""
    with tempfile.TemporaryDirectory(prefix="node-") as folder:
        async with Node(Path(folder)) as node:
            yield node


async def until(what: Any, seconds: float = 60.0) -> None:
    """Waits for something to become true."""
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 - what others do has no event
            await asyncio.sleep(0.02)


def envelope(key: Ed25519PrivateKey, document: bytes) -> bytes:
    name = orders.key_name(key.public_key().public_bytes_raw())
    return orders.encode_signed(
        Signed(document=document, signature=key.sign(orders.signed_bytes(document)), key=name)
    )


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def certificate(folder: Path) -> None:
    """kubelet.crt and kubelet.key, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "numa-vm")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "kubelet.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "kubelet.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def soon(seconds: int) -> int:
    """A time so many seconds from now, as orders have it."""
    return int(time.time()) + seconds


def changed(value: T, **fields: Any) -> T:
    """Another one of these, with other fields."""
    return msgspec.structs.replace(value, **fields)
