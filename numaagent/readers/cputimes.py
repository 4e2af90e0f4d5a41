"""Time that each CPU spent in each state, from `/proc/stat` (proc_stat(5))."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Annotated

import msgspec

from numaagent.config import Roots
from numaagent.readers import columns
from numaagent.readers.files import Files, Source, read_all
from numacore.cpuset import MAX_ID, CpuSet
from numacore.usage import CpuTimes

MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Columns in the order of the file; the two after them count guests, which are in user and nice already."""
COLUMNS = len(MODES) + 1
_LIMIT = 4 * 1024 * 1024
_Row = Annotated[list[columns.Count], msgspec.Meta(min_length=5)]
_decoder = msgspec.json.Decoder(list[_Row])


class Reader:
    """Reads `/proc/stat` through one descriptor."""

    def __init__(self, files: Files, roots: Roots) -> None:
        self._files = files
        self._path = f"{roots.proc}/stat"
        self._descriptor: int | None = None
        self._ids: tuple[tuple[int, ...], CpuSet] = ((), CpuSet())

    def rows(self) -> list[list[int]]:
        """For each CPU that the kernel counts its id and its ticks in each mode; empty where it is unreadable."""
        source = self._files.reader("cpu-times")
        data = self._data(source)
        return _rows(source, self._path, data) if data else []

    def times(self, rows: list[list[int]]) -> CpuTimes | None:
        """The counters of the wire, from rows; None where there are none."""
        if not rows:
            return None
        modes = list(zip(*rows, strict=False))
        if modes[0] != self._ids[0]:
            self._ids = (modes[0], CpuSet(modes[0]))
        _, user, nice, system, idle, iowait, irq, softirq, steal = modes[:9]
        return CpuTimes(
            cpus=self._ids[1],
            busy=tuple(map(sum, zip(user, nice, system, irq, softirq, steal, strict=True))),
            idle=tuple(map(sum, zip(idle, iowait, strict=True))),
        )

    def close(self) -> None:
        """Closes the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _data(self, source: Source) -> bytes | None:
        try:
            if self._descriptor is None:
                self._descriptor = self._files.open(self._path)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            return read_all(self._descriptor, _LIMIT)
        except OSError as error:
            source.refused(self._path, error)
            self.close()
            return None


def _rows(source: Source, path: str, data: bytes) -> list[list[int]]:
    """The lines `cpu0 1 2 3 ...` become `[0,1,2,3,...]` of one JSON text: parsed at the speed of a C parser."""
    _, *lines = (b"\n" + data).replace(b"\ncpu ", b"\n", 1).split(b"\ncpu")
    if not lines:
        source.fail(path, "it lists no CPU")
        return []
    lines[-1] = lines[-1].partition(b"\n")[0]
    try:
        rows = _decoder.decode(b"[[" + b"],[".join(lines).replace(b" ", b",") + b"]]")
    except msgspec.DecodeError:
        source.fail(path, "its lines of CPUs are not numbers")
        return []
    ids = [row[0] for row in rows]
    if ids[-1] > MAX_ID or any(left >= right for left, right in pairwise(ids)):
        source.fail(path, "its CPUs are not in ascending order, or too many")
        return []
    lengths = set(map(len, rows))
    return rows if len(lengths) == 1 and min(lengths) >= COLUMNS else [_even(row) for row in rows]


def _even(row: list[int]) -> list[int]:
    """Kernels before 2.6.11 count fewer modes."""
    return (row + [0] * COLUMNS)[:COLUMNS]
