"""What the exporter is told: where the kernel's and the kubelet's trees are, where to listen, who may ask.

Everything comes from command line arguments and environment variables; nothing is guessed from the network. The
defaults are right for a program that runs on the host itself; a container mounts the host's trees below one folder and
names it with `--root`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

DEFAULT_PORT = 9797
"""Port of the exporter: one port, for /metrics, /v1/snapshot and /healthz."""
MIN_TOKEN = 16
"""Shortest bearer token that is accepted; shorter ones can be guessed."""

SETTINGS = {
    "NODE_NAME": "name of the node; default: the host name",
    "NUMAAGENT_ROOT": "folder that the trees are below, as --root; default /",
    "NUMAAGENT_SYSFS": "sysfs; default ROOT/sys",
    "NUMAAGENT_PROC": "procfs; default ROOT/proc",
    "NUMAAGENT_CGROUP": "cgroup file system; default: as /proc/mounts says",
    "NUMAAGENT_KUBELET_DIR": "the kubelet's folder; default: its --root-dir, else ROOT/var/lib/kubelet",
    "NUMAAGENT_KUBELET_CONFIG": "the kubelet's configuration file; default: its --config, else config.yaml in its folder",
    "NUMAAGENT_LOG_DIR": "folder of container logs, whose link names tell container names; default ROOT/var/log",
    "NUMAAGENT_LISTEN": f"address to listen on; default 0.0.0.0:{DEFAULT_PORT}",
    "NUMAAGENT_PERIOD": "seconds between the exporter's own readings; default 10",
    "NUMAAGENT_TOKEN_FILE": "file with the bearer token that /v1/snapshot asks for; default: none",
    "NUMAAGENT_TLS_CERT_FILE": "certificate chain; with a key it turns on TLS",
    "NUMAAGENT_TLS_KEY_FILE": "key of the certificate",
    "NUMAAGENT_TLS_CLIENT_CA_FILE": "authority that signs client certificates; turns on client certificates",
    "NUMAAGENT_NUMA_MAPS": "1 = also read numa_maps of processes (needs CAP_SYS_PTRACE); default 0",
}
"""Every environment variable, with what it does."""


class ConfigError(ValueError):
    """A setting that cannot be used. The message names it, the cause and the remedy."""


class Roots(msgspec.Struct, frozen=True, kw_only=True):
    """Folders that are read, absolute paths. `None` = found by the reader."""

    root: str = "/"
    """Nothing outside it is opened, whatever a link in the trees says."""
    sysfs: str = "/sys"
    proc: str = "/proc"
    logs: str = "/var/log"
    cgroup: str | None = None
    kubelet: str | None = None
    kubelet_config: str | None = None

    def at(self, path: str) -> str:
        """A path of the machine (`/var/lib/kubelet`) as a path of this program."""
        for name, place in (("/sys", self.sysfs), ("/proc", self.proc)):
            if path == name or path.startswith(name + "/"):
                return place + path[len(name) :]
        return join(self.root, path)

    def shown(self, path: str) -> str:
        """A path of this program as the machine calls it, for messages."""
        return path[len(self.root) :] if self.root != "/" and path.startswith(self.root + "/") else path


class Tls(msgspec.Struct, frozen=True):
    """Files for TLS; `client_ca` None = clients need no certificate."""

    cert: str
    key: str
    client_ca: str | None = None


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the exporter is told."""

    roots: Roots = Roots()
    node: str | None = None
    host: str = "0.0.0.0"  # noqa: S104 - the collector comes from another machine
    port: int = DEFAULT_PORT
    period: float = 10.0
    token: str | None = None
    tls: Tls | None = None
    numa_maps: bool = False


def join(root: str, path: str) -> str:
    """`path` of a machine below `root`."""
    return path if root == "/" else root + path


def load(environ: Mapping[str, str], *, root: str | None = None, listen: str | None = None) -> Config:
    """The configuration from the environment; arguments of the command line win.

    Raises:
        ConfigError: naming the setting, the cause and the remedy.
    """
    host, port = _address(listen or environ.get("NUMAAGENT_LISTEN") or f"0.0.0.0:{DEFAULT_PORT}")
    return Config(
        roots=_roots(environ, root or environ.get("NUMAAGENT_ROOT") or "/"),
        node=environ.get("NODE_NAME") or None,
        host=host,
        port=port,
        period=_period(environ.get("NUMAAGENT_PERIOD") or "10"),
        token=_token(environ.get("NUMAAGENT_TOKEN_FILE")),
        tls=_tls(environ),
        numa_maps=_flag("NUMAAGENT_NUMA_MAPS", environ.get("NUMAAGENT_NUMA_MAPS") or "0"),
    )


def _roots(environ: Mapping[str, str], root: str) -> Roots:
    root = os.path.realpath(root)

    def place(name: str) -> str | None:
        return os.path.abspath(environ[name]) if environ.get(name) else None

    return Roots(
        root=root,
        sysfs=place("NUMAAGENT_SYSFS") or join(root, "/sys"),
        proc=place("NUMAAGENT_PROC") or join(root, "/proc"),
        logs=place("NUMAAGENT_LOG_DIR") or join(root, "/var/log"),
        cgroup=place("NUMAAGENT_CGROUP"),
        kubelet=place("NUMAAGENT_KUBELET_DIR"),
        kubelet_config=place("NUMAAGENT_KUBELET_CONFIG"),
    )


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ConfigError(
            f"NUMAAGENT_LISTEN or --listen: {text!r} is not ADDRESS:PORT (example: 0.0.0.0:{DEFAULT_PORT})"
        )
    return host, int(port)


def _period(text: str) -> float:
    try:
        period = float(text)
    except ValueError:
        period = 0.0
    if not 1 <= period <= 3600:
        raise ConfigError(f"NUMAAGENT_PERIOD: {text!r} is not a number of seconds from 1 to 3600")
    return period


def _flag(name: str, text: str) -> bool:
    if text not in ("0", "1"):
        raise ConfigError(f"{name}: {text!r} is neither 0 nor 1")
    return text == "1"


def _token(path: str | None) -> str | None:
    if not path:
        return None
    try:
        with open(path, encoding="ascii") as file:
            token = file.read(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"NUMAAGENT_TOKEN_FILE: {path} cannot be read: {error}") from error
    if len(token) < MIN_TOKEN:
        raise ConfigError(
            f"NUMAAGENT_TOKEN_FILE: the token in {path} has fewer than {MIN_TOKEN} characters; write a longer random one"
        )
    return token


def _tls(environ: Mapping[str, str]) -> Tls | None:
    cert, key = environ.get("NUMAAGENT_TLS_CERT_FILE"), environ.get("NUMAAGENT_TLS_KEY_FILE")
    client_ca = environ.get("NUMAAGENT_TLS_CLIENT_CA_FILE") or None
    if cert and key:
        return Tls(cert, key, client_ca)
    if cert or key or client_ca:
        raise ConfigError(
            "NUMAAGENT_TLS_CERT_FILE and NUMAAGENT_TLS_KEY_FILE belong together; "
            "set both, or neither and no NUMAAGENT_TLS_CLIENT_CA_FILE"
        )
    return None
