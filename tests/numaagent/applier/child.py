"""The applier as a process of its own that can be killed: not asked, but by SIGKILL, at a chosen point."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import sys
import time
import types
from collections.abc import Callable
from typing import Any

from numaagent.applier import command, health, journal, units, writing
from numaagent.applier.units import Waits

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def run(
    arguments: list[str],
    environ: dict[str, str],
    after: str = "",
    event: int = 0,
    counted: str = "",
    pruned: int = 0,
    full: str = "",
    largest: int = 0,
    said: str = "",
    call: float = 20.0,
    reload: float = 0.0,
    job: float = 40.0,
    hurry: float = 4.0,
) -> None:
    """Runs the applier. `after`: killed when this step is done; `event`: killed right before the n-th thing that it does to
    the node (a file opened to write, renamed, removed, a folder made, a call of systemd); `counted`: file for their number; `pruned`: killed right before the n-th thing of earlier changes that it removes; `full`: the step at which the disk is full; `largest`: bytes of a file from which on it is; `said`: file for what it prints; `call`, `reload`, `job`: seconds for an answer of systemd, for its answer when it reads all units, and for the end of a job; `hurry`: how much faster time
    passes while it looks whether the kubelet lasts. One that dies late has to be looked at with 1, or it dies too late."""
    os.environ.clear()
    os.environ.update(environ)
    if after:
        _kill_after(after)
    if event or counted:
        _count(event, counted)
    if pruned:
        _kill_pruning(pruned)
    if full:
        _fill(full)
    if largest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    health.time = types.SimpleNamespace(monotonic=lambda: time.monotonic() * hurry)  # type: ignore[attr-defined, assignment]
    with open(said or os.devnull, "w") as out, contextlib.redirect_stdout(out):
        status = command.main(
            arguments, environ, Waits(call=call, reload=max(call, reload), job=job, look=0.1)
        )
    sys.exit(status)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_after(step: str) -> None:
    note = journal.Journal.note
    begun: list[str] = []

    def noted(self: Any, following: Any, at: float) -> None:
        if begun and begun[-1] == step:
            _die()
        begun.append(following)
        note(self, following, at)

    journal.Journal.note = noted  # type: ignore[method-assign, assignment]


def _kill_pruning(nth: int) -> None:
    left = nth

    def hook(name: str, found: tuple[Any, ...]) -> None:
        nonlocal left
        if name in ("os.remove", "os.rmdir") and "/numaweb/changes/" in str(found[0]):
            left -= 1
            if not left:
                _die()

    sys.addaudithook(hook)


def _fill(step: str) -> None:
    note, stage = journal.Journal.note, writing.stage
    begun: list[str] = []

    def noted(self: Any, following: Any, at: float) -> None:
        begun.append(following)
        note(self, following, at)

    def staged(path: str, data: bytes, attributes: Any) -> None:
        if begun and begun[-1] == step:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        stage(path, data, attributes)

    journal.Journal.note = noted  # type: ignore[method-assign, assignment]
    writing.stage = staged  # type: ignore[assignment]


def _count(event: int, counted: str) -> None:
    done = 0

    def one(_what: str = "") -> None:
        nonlocal done
        done += 1
        if done == event:
            _die()
        if counted:
            with os.fdopen(os.open(counted, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
                file.write(str(done))

    busy = False

    def hook(name: str, found: tuple[Any, ...]) -> None:
        nonlocal busy
        writes = name == "open" and isinstance(found[2], int) and found[2] & _WRITES and found[0] != counted
        if not busy and (writes or name in ("os.rename", "os.remove", "os.mkdir", "os.rmdir")):
            busy = True
            one()
            busy = False

    sys.addaudithook(hook)
    ask: Callable[..., Any] = units.Systemd._ask

    async def asked(self: Any, *words: Any, **how: Any) -> Any:
        nonlocal busy
        busy = True
        one()
        busy = False
        return await ask(self, *words, **how)

    units.Systemd._ask = asked  # type: ignore[method-assign]
