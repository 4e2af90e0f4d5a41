"""Runs a command that dies with its parent, even when the parent is killed hard.

`python -m numasim.leash COMMAND ...`: asks the kernel for a signal at the parent's death (prctl(2), PR_SET_PDEATHSIG,
which survives exec) and becomes the command.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1


def start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Starts a command on a leash, its output in a file."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-S", "-E", __file__, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for the parent, which then ends its children
        )


def _become(parent: int, command: list[str]) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died before the kernel knew of our wish.
    if os.getppid() == parent:
        os.execv(command[0], command)  # noqa: S606, no shell is wanted


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
    sys.exit(1)
