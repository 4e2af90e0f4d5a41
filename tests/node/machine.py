"""A server with two NUMA nodes, emulated by QEMU: 8 processors of two sockets with SMT, 3 GiB, NUMA distance 21.

    with Machine(booted(disk, say), network, folder) as machine:
        machine.shell.run("lscpu")
        machine.save("ready")
        machine.resume("ready")     # memory, disk and processes as they were, in seconds

No hardware help is needed and none is used, so that it is the same machine everywhere. It ends with its block or with our process. Booting
costs a minute of a processor, so it is done once, and what was booted is kept like the disk.
"""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from tests import servers
from tests.goprograms import LackingError, Say
from tests.node import cache
from tests.node.disk import Disk
from tests.node.network import NODE_MAC, Network, NetworkError
from tests.node.ssh import Shell

MEMORY_MIB = 3072
BOOT_SECONDS = 900.0
"""It takes 20 on a machine that does nothing else, and its processors have to share two cores with whatever else runs."""
SAVE_SECONDS = 300.0
BOOTED = "booted"
"""Under this name a machine is saved whose containerd runs and knows its images, and which belongs to no cluster yet."""
_LINE = (
    "rw console=ttyS0 net.ifnames=0 mitigations=off nokaslr audit=0 apparmor=0 nowatchdog quiet"
    " systemd.show_status=0"
)
_HALF = MEMORY_MIB // 2
_HARDWARE = (
    *("-machine", "q35,hpet=off", "-accel", "tcg,thread=multi,tb-size=512"),
    *("-cpu", "max,vendor=GenuineIntel,la57=off", "-smp", "sockets=2,cores=2,threads=2"),
    *("-m", str(MEMORY_MIB)),
    *("-object", f"memory-backend-ram,id=ram0,size={_HALF}M"),
    *("-object", f"memory-backend-ram,id=ram1,size={_HALF}M"),
    *("-numa", "node,nodeid=0,memdev=ram0", "-numa", "node,nodeid=1,memdev=ram1"),
    *("-numa", "cpu,node-id=0,socket-id=0", "-numa", "cpu,node-id=1,socket-id=1"),
    *("-numa", "dist,src=0,dst=1,val=21"),
    *("-object", "rng-random,id=random,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=random"),
    *("-display", "none", "-vga", "none"),
)


class MachineError(Exception):
    """The emulated machine did not do what it should."""


def booted(disk: Disk, say: Say) -> Disk:
    """The disk with a machine that was booted from it once.

    Raises:
        LackingError: QEMU or a network device is missing.
    """
    emulator = _found("qemu-system-x86_64", "qemu-system-x86")
    version = subprocess.run([emulator, "--version"], capture_output=True, check=True).stdout
    key = cache.key_of(str(disk.image), version, Path(__file__).read_bytes())

    def make(folder: Path) -> None:
        say("Booting the emulated node, once")
        try:
            with (
                Network() as network,
                tempfile.TemporaryDirectory(prefix="numaweb-node-") as short,
                Machine(disk, network, Path(short)) as machine,
            ):
                machine.shell.run("systemctl start images.service && sync", timeout=BOOT_SECONDS)
                machine.save(BOOTED)
                machine.kill()
                shutil.move(machine.own_disk, folder / "booted.qcow2")
        except NetworkError as error:
            raise LackingError(str(error)) from None

    return disk._replace(booted=cache.kept("booted", key, make) / "booted.qcow2")


class Machine:
    """`folder`: empty, ours alone, with a path short enough for sockets; it takes some 2 GB."""

    def __init__(self, disk: Disk, network: Network, folder: Path) -> None:
        self._emulator = _found("qemu-system-x86_64", "qemu-system-x86")
        self._disk, self._network, self.folder = disk, network, folder
        self.own_disk = folder / "disk.qcow2"
        """What is written, and what was saved."""
        self._monitor = folder / "monitor"
        self._console = folder / "console.log"
        self._log = folder / "qemu.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.shell = Shell(disk.key, folder)

    def __enter__(self) -> Self:
        try:
            if self._disk.booted is None:
                self._create_disk()
                self._launch()
                self._wait()
            else:
                shutil.copy(self._disk.booted, self.own_disk)
                self.resume(BOOTED)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        # What is left is the console and QEMU's log, for whoever looks.
        self.own_disk.unlink(missing_ok=True)

    # ------------------------------------------------------------ life

    def kill(self) -> None:
        """As a power cut."""
        self.shell.hang_up()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None

    def save(self, name: str) -> None:
        """Memory, processors and disk under a name, for `resume`. The machine goes on."""
        self._ask(f"savevm {name}", SAVE_SECONDS)

    def resume(self, name: str) -> None:
        """The machine is again as it was when it was saved, its clock aside, which is set; also after `kill`."""
        self.shell.hang_up()
        if self._process is None or self._process.poll() is not None:
            self._launch("-loadvm", name)
        else:
            self._ask(f"loadvm {name}", SAVE_SECONDS)
        self._wait()
        self.shell.run(f"date --set=@{time.time():.3f}")

    def wait_for_boot(self) -> None:
        """After the node was told to start anew: returns when the new system answers."""
        self.shell.hang_up()
        self._wait()

    def console(self, lines: int = 40) -> str:
        """The end of what the kernel and systemd said."""
        text = self._console.read_text(errors="replace") if self._console.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _create_disk(self) -> None:
        base = ["-b", str(self._disk.image), "-F", "raw"]
        subprocess.run(
            [_found("qemu-img", "qemu-utils"), "create", "-q", "-f", "qcow2", *base, str(self.own_disk)],
            check=True,
        )

    def _launch(self, *more: str) -> None:
        self._monitor.unlink(missing_ok=True)
        drive = f"if=none,id=disk,file={self.own_disk},format=qcow2,cache=unsafe,discard=unmap"
        command = [
            *servers.prefix("", signal.SIGKILL),
            *(self._emulator, "-name", "numaweb-node", *_HARDWARE),
            *("-kernel", str(self._disk.kernel), "-initrd", str(self._disk.initrd), "-append", _LINE),
            *("-drive", drive, "-device", "virtio-blk-pci,drive=disk"),
            *("-netdev", f"tap,id=wire,fd={self._network.device}"),
            *("-device", f"virtio-net-pci,netdev=wire,mac={NODE_MAC},romfile="),
            *("-serial", f"file:{self._console}", "-qmp", f"unix:{self._monitor},server=on,wait=off"),
            *more,
        ]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[self._network.device],
            )

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + BOOT_SECONDS
        while not self._answers():
            if self._process.poll() is not None:
                raise MachineError(f"QEMU ended with {self._process.returncode}:\n{self._log.read_text()}")
            if time.monotonic() > deadline:
                raise MachineError(f"no answer after {BOOT_SECONDS:.0f} s:\n{self.console()}")
            time.sleep(0.5)

    def _answers(self) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.shell.succeeds("true", timeout=30)
        return False

    # ------------------------------------------------------------ QEMU's monitor

    def _ask(self, command: str, seconds: float) -> None:
        """One command of QEMU's human monitor. Raises MachineError with its complaint."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            connection.connect(str(self._monitor))
            with connection.makefile("rwb") as stream:
                json.loads(stream.readline())  # its greeting
                _execute(stream, "qmp_capabilities")
                said = _execute(stream, "human-monitor-command", {"command-line": command})
        if said:
            raise MachineError(f"{command}: {said.strip()}")


def _execute(stream: Any, command: str, arguments: dict[str, str] | None = None) -> str:
    stream.write(json.dumps({"execute": command, "arguments": arguments or {}}).encode() + b"\n")
    stream.flush()
    while True:
        line = stream.readline()
        if not line:
            raise MachineError(f"QEMU ended during {command}")
        answer = json.loads(line)
        if "error" in answer:
            raise MachineError(f"{command}: {answer['error']['desc']}")
        if "return" in answer:  # everything else is an event
            return str(answer["return"] or "")


def _found(program: str, package: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise LackingError(f"{program} (apt-get install {package})")
    return path
