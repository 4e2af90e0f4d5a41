"""Programs that tests start: found or skipped, ready before the test goes on, gone when its block ends.

For tests/stack.py and conftest files. A program gets a signal when the test run dies, whatever it dies of. A missing
program skips the test, and the end of the run names it (tests/conftest.py).
"""

import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 40.0
STOP_SECONDS = 15.0
NOT_HERE = "This machine lacks"
"""Beginning of every skip that is about the machine and not about the code."""


def program(name: str, places: str = "") -> Path:
    """Where the program is: on the PATH, or in the last of the folders that match `places` (a glob below /)."""
    elsewhere = [folder / name for folder in sorted(Path("/").glob(places))] if places else []
    candidates = [Path(found) for found in [shutil.which(name)] if found]
    candidates += [path for path in reversed(elsewhere) if path.exists()]
    if not candidates:
        pytest.skip(f"{NOT_HERE} {name}")
    return candidates[0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def answers(url: str, context: ssl.SSLContext | None = None) -> bool:
    """Whether somebody says 200 there."""
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as response:
            return bool(response.status == 200)
    except urllib.error.HTTPError as refusal:
        refusal.close()  # an error that is an answer holds its connection
    except OSError:
        pass
    return False


def prefix(user: str, death: signal.Signals = signal.SIGTERM) -> list[str]:
    """What ties a program's life to ours and, for root, gives up root; `death` is the signal that it gets when we are gone."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return []
    change = [f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user and os.getuid() == 0 else []
    return [setpriv, *change, "--pdeathsig", death.name.removeprefix("SIG")]


class Server:
    """A program, its log, and what a test may do to it; `user` counts for root only."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        ready: Callable[["Server"], bool],
        *,
        environment: Mapping[str, str] | None = None,
        user: str = "",
        stop_signal: signal.Signals = signal.SIGTERM,
        death_signal: signal.Signals = signal.SIGTERM,
        patience: float = START_SECONDS,
    ) -> None:
        self.command = [*prefix(user, death_signal), *command]
        self.environment = environment
        self.ready = ready
        self.stop_signal = stop_signal
        self.patience = patience
        self.log = folder / f"{Path(command[0]).name}-{time.monotonic_ns()}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the program and returns when it is ready."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Starts the program, for callers that start several before they wait for the first."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Returns when the program that was launched is ready; fails with the end of its log when it is not."""
        assert self.process is not None
        deadline = time.monotonic() + self.patience
        while not self.ready(self):
            if self.process.poll() is not None:
                pytest.fail(f"{self.command} ended with {self.process.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                pytest.fail(f"{self.command} was not ready after {self.patience:.0f} s:\n{self.tail()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends the program politely; what then still runs, its children included, is killed."""
        if self.process is None:
            return
        self.process.send_signal(self.stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Ends the program and its children at once, as a lost machine would."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def written(self) -> str:
        return self.log.read_text(errors="replace")

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.written().splitlines()[-lines:])


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    try:
        server.start()
        yield server
    finally:
        server.stop()
