"""Programs that `manage.py local` starts beside itself: kept running while it runs, never left behind after it."""

import ctypes
import logging
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

log = logging.getLogger(__name__)

DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
END_SECONDS = 5.0
RESTART_SECONDS = (1, 2, 5, 10, 30)
libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """In the child: Linux ends it when its parent is gone, even when that was killed."""
    if hasattr(libc, "prctl"):
        libc.prctl(DIE_WITH_PARENT, signal.SIGTERM)


class Child:
    """One program, started again with growing pauses when it ends by itself."""

    def __init__(self, name: str, command: Sequence[str], log_file: Path) -> None:
        self.name = name
        self.command = command
        self.log_file = log_file
        self.stopping = threading.Event()
        self.started = threading.Event()
        self.failures = 0
        # The thread that starts a child must live as long as the child, or Linux takes its end for the parent's.
        self.thread = threading.Thread(target=self.keep, name=name, daemon=True)

    def start(self) -> None:
        self.thread.start()
        self.started.wait()

    def keep(self) -> None:
        while not self.stopping.is_set():
            with self.log_file.open("ab") as output:
                code = self.run(output.fileno())
            if not self.stopping.is_set():
                self.pause(code)

    def run(self, output: int) -> int:
        with subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Ctrl-C reaches a whole session; ours ends its children itself, in order.
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of libc, which takes no lock
        ) as process:
            self.started.set()
            while process.poll() is None and not self.stopping.wait(0.2):
                continue
            self.end(process)
            return process.returncode

    def pause(self, code: int) -> None:
        seconds = RESTART_SECONDS[min(self.failures, len(RESTART_SECONDS) - 1)]
        self.failures += 1
        log.error("%s ended with %s, again in %s s; see %s", self.name, code, seconds, self.log_file)
        self.stopping.wait(seconds)

    def end(self, process: "subprocess.Popen[bytes]") -> None:
        if process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()

    def stop(self) -> None:
        self.stopping.set()
        self.thread.join(END_SECONDS + 2)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
