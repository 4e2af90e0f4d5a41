"""Commands and files on the emulated machine, as root, over one connection that stays open: a handshake costs it a second."""

import shlex
import subprocess
from pathlib import Path

from tests.node import network

PATIENCE_SECONDS = 600.0
"""Of one command, which takes a second on a machine that does nothing else."""


class CommandError(Exception):
    """A command on the node failed."""


class Shell:
    """`key`: the private key; `folder`: where the connection's socket lies, with a short path."""

    def __init__(self, key: Path, folder: Path) -> None:
        self._socket = folder / "ssh"
        self._options = [
            *("-q", "-F", "none", "-i", str(key), "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"),
            # The machine is new and nobody else is at the end of this wire.
            *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
            *("-o", "ControlMaster=auto", "-o", f"ControlPath={self._socket}", "-o", "ControlPersist=600"),
            *("-o", "ServerAliveInterval=20", "-o", "ServerAliveCountMax=6"),
        ]
        self._target = f"root@{network.NODE}"

    def run(self, command: str, *, given: bytes | None = None, timeout: float = PATIENCE_SECONDS) -> str:
        """What the command writes. Raises CommandError when it ends with anything but 0."""
        return self.raw(command, given=given, timeout=timeout).decode(errors="replace")

    def raw(self, command: str, *, given: bytes | None = None, timeout: float = PATIENCE_SECONDS) -> bytes:
        done = self._ssh(command, given, timeout)
        if done.returncode:
            said = (done.stdout + done.stderr).decode(errors="replace")
            raise CommandError(f"{command!r} ended with {done.returncode} on the node:\n{said}")
        return done.stdout

    def succeeds(self, command: str, timeout: float = PATIENCE_SECONDS) -> bool:
        return self._ssh(command, None, timeout).returncode == 0

    def get(self, path: str) -> bytes:
        return self.raw(f"cat {shlex.quote(path)}")

    def put(self, path: str, content: bytes | str, mode: int = 0o644) -> None:
        """Writes a file, its folder made where it is missing; not in one step, as nobody reads these files meanwhile."""
        there = shlex.quote(path)
        folder = shlex.quote(str(Path(path).parent))
        given = content.encode() if isinstance(content, str) else content
        self.run(f"mkdir -p {folder} && cat > {there} && chmod {mode:o} {there}", given=given)

    def hang_up(self) -> None:
        """The connection ends; the next command makes a new one."""
        subprocess.run(["ssh", *self._options, "-O", "exit", self._target], capture_output=True)
        self._socket.unlink(missing_ok=True)

    def _ssh(self, command: str, given: bytes | None, timeout: float) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["ssh", *self._options, self._target, command],
            input=given if given is not None else b"",
            capture_output=True,
            timeout=timeout,
        )
