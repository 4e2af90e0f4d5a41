"""Per-CPU times of one exporter as arrays, and what moved between two readings of them."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from numacore.cpuset import CpuSet, CpuSetError
from numacore.topology import Topology
from numacore.usage import IDLE_SLIP, busy_share
from numacore.wire import WireError

Numbers = NDArray[np.int64]
Sums = tuple[list[int | None], list[int | None]]
"""Busy and idle ticks of each NUMA node; None = unknown, or no CPU there."""


class CpuColumns(msgspec.Struct, gc=False):
    """`CpuTimes` with its columns still as text."""

    cpus: str
    busy: msgspec.Raw
    idle: msgspec.Raw


class Reading(msgspec.Struct, gc=False):
    """Counters of one reading: per CPU, and per NUMA node."""

    monotonic: float
    boot_id: str | None
    cpus: str
    times: Numbers | None
    """Two rows, busy and idle, a column per CPU in the order of their ids; None = unreadable, or not told."""
    sums: Sums | None
    """None = to be made of `times`."""
    remote: list[int | None]


class Places:
    """Which columns of the per-CPU times belong to which NUMA node."""

    def __init__(self, topology: Topology, cpus: str) -> None:
        try:
            listed = list(CpuSet.parse(cpus))
        except CpuSetError as error:
            raise WireError(f"section usage cannot be read: {error} - at `$.cpu.cpus`") from error
        self.cpus, self.topology, self.count = cpus, topology, len(listed)
        self.width = len(topology.nodes)
        numa_of = {cpu: i for i, node in enumerate(topology.nodes) for cpu in node.cpus}
        nowhere = self.width
        self._group: NDArray[np.intp] = np.array([numa_of.get(cpu, nowhere) for cpu in listed], np.intp)
        """Of each column; one more than there are NUMA nodes for CPUs of none."""
        self._sizes: list[int] = np.bincount(self._group, minlength=nowhere + 1).tolist()
        self._commas = b"[" + b"," * (self.count - 1) + b"]"

    def times(self, cpu: CpuColumns) -> Numbers:
        """The times as numbers. Raises WireError."""
        both = self._listed(cpu.busy, "busy") + b"," + self._listed(cpu.idle, "idle")
        if not self.count:
            return np.zeros((2, 0), np.int64)
        # Told how many there are, numpy makes room only once; it would invent those that are missing.
        return np.fromstring(both, np.int64, 2 * self.count, sep=",").reshape(2, self.count)

    def _listed(self, raw: msgspec.Raw, column: str) -> bytes:
        """The inside of a JSON array that has a whole number for each CPU, none below 0. That it is JSON is known."""
        text = bytes(raw)
        inside = text[1:-1].strip()
        left = text.translate(None, b"0123456789 \t\r\n")
        if left == self._commas and bool(inside) == bool(self.count):
            return inside
        wanted = (
            "as many times as CPUs are needed"
            if left.replace(b",", b"") == b"[]"
            else "expected whole numbers"
        )
        raise WireError(f"section usage: {wanted} - at `$.cpu.{column}`")

    def shares(self, before: Numbers, after: Numbers) -> list[float | None]:
        """Mean busy share of each NUMA node, as `usage.numa_busy` defines it."""
        if not self.count:
            return [None] * self.width
        moved = after - before
        if least(moved) >= 0 and least(passed := moved[0] + moved[1]) > 0:
            sums, counts = self._by_numa(moved[0] / passed), self._sizes
        else:
            sums, counts = self._known_shares(*moved)
        return [sums[i] / counts[i] if counts[i] else None for i in range(self.width)]

    def sums(self, times: Numbers) -> Sums:
        """The times by NUMA node."""
        busy, idle = (
            [
                int(total) if size else None
                for total, size in zip(self._by_numa(row), self._sizes, strict=True)
            ]
            for row in times.astype(np.float64)
        )
        return busy[: self.width], idle[: self.width]

    def _known_shares(self, busy: Numbers, idle: Numbers) -> tuple[list[float], list[int]]:
        """Sums of the shares that are known, and how many, where some counters ran backwards or stood still."""
        known = (busy >= 0) & (idle >= -IDLE_SLIP)
        passed = busy + np.maximum(idle, 0)
        known &= passed > 0
        share = np.divide(busy, passed, out=np.zeros(len(busy)), where=known)
        counts = np.bincount(self._group[known], minlength=self.width + 1)
        return self._by_numa(share), counts.tolist()

    def _by_numa(self, values: NDArray[np.float64]) -> list[float]:
        sums: list[float] = np.bincount(self._group, values, self.width + 1).tolist()
        return sums


def least(numbers: Numbers) -> int:
    """The least of them; there is one."""
    found: int = np.minimum.reduce(numbers, axis=None)
    return found


def shares_of_sums(before: Sums, after: Sums) -> list[float | None]:
    """Busy share of each NUMA node: of all ticks of its CPUs. The mean of its CPUs' shares is the same within a tick, for
    time passes alike on all of them."""
    return [
        None if b0 is None or i0 is None or b1 is None or i1 is None else busy_share(b1 - b0, i1 - i0)
        for b0, i0, b1, i1 in zip(*before, *after, strict=True)
    ]


def same_times(last: Numbers, now: Numbers) -> bool:
    """Whether all counters are the same. The first ones tell nearly always, and telling costs next to nothing then."""
    return bool(now.size and last[1, 0] == now[1, 0] and (last == now).all())


def elapsed(last: Reading, now: Reading) -> float | None:
    """Seconds between two readings of one boot; None if they are no sequence (a reboot, a clock that went back)."""
    seconds = now.monotonic - last.monotonic
    return seconds if last.boot_id == now.boot_id and seconds > 0 else None


def rate(before: int | None, after: int | None, seconds: float) -> float | None:
    return None if before is None or after is None or after < before else (after - before) / seconds
