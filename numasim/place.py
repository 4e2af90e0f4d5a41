"""Where the trees of a cluster are: a directory that one simulator has for itself, also after another was killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = ".numasim"
"""File that holds the process that a directory belongs to."""
PREFIX = "numasim-"
ROOM = 256 << 20
"""Bytes that must be free in memory; the trees of eight servers take a tenth of it."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108, directories in it get random names and are ours alone


class PlaceError(Exception):
    """A directory that cannot be used; the message says why and what helps."""


@contextmanager
def claimed(directory: Path | None) -> Iterator[Path]:
    """The directory, made where it is missing and emptied of what a killed simulator left; removed at the end.

    None = one of its own, in memory where there is room: hundreds of files move each second, and disks need not know.

    Raises:
        PlaceError: it holds something that no simulator made, or belongs to one that runs.
    """
    place = _own() if directory is None else directory
    place.mkdir(parents=True, exist_ok=True)
    _check(place)
    _empty(place)
    (place / MARK).write_text(f"{os.getpid()}\n")
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _own() -> Path:
    bases = [Path(tempfile.gettempdir())]
    if os.access(SHARED_MEMORY, os.W_OK):
        bases.insert(0, SHARED_MEMORY)
    for left in (left for base in bases for left in base.glob(f"{PREFIX}*")):
        owner = _owner(left)
        if owner is not None and left.owner() == Path("/proc/self").owner() and not _runs(owner):
            shutil.rmtree(left, ignore_errors=True)
    roomy = shutil.disk_usage(bases[0]).free > ROOM
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=bases[0] if roomy else bases[-1]))


def _check(place: Path) -> None:
    owner = _owner(place)
    if owner is None and any(place.iterdir()):
        raise PlaceError(f"{place} is not empty and not a simulator's: name an empty or new directory")
    if owner is not None and _runs(owner):
        raise PlaceError(
            f"{place} belongs to the simulator that runs as process {owner}: end it or name another"
        )


def _empty(place: Path) -> None:
    for inside in place.iterdir():
        if inside.is_dir() and not inside.is_symlink():
            shutil.rmtree(inside)
        else:
            inside.unlink()


def _owner(place: Path) -> int | None:
    try:
        return int((place / MARK).read_text())
    except (OSError, ValueError):
        return None


def _runs(process: int) -> bool:
    """Whether a simulator runs under this number, which may be somebody else's by now."""
    try:
        return b"numasim" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
