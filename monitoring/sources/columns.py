"""Per-CPU times of one exporter as arrays, and what moved between two readings of them."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from numacore.cpuset import CpuSet, CpuSetError
from numacore.topology import Topology
from numacore.usage import IDLE_SLIP
from numacore.wire import WireError

Numbers = NDArray[np.int64]


class CpuColumns(msgspec.Struct, gc=False):
    """`CpuTimes` with its columns still as text."""

    cpus: str
    busy: msgspec.Raw
    idle: msgspec.Raw


class Reading(msgspec.Struct):
    """Counters of one reading: per CPU, and per NUMA node."""

    monotonic: float
    boot_id: str | None
    cpus: str
    times: Numbers | None
    """Two rows, busy and idle, a column per CPU in NUMA order; None = unreadable."""
    remote: list[int | None]


class Places:
    """Which columns of the per-CPU times belong to which NUMA node."""

    def __init__(self, topology: Topology, cpus: str) -> None:
        try:
            listed = list(CpuSet.parse(cpus))
        except CpuSetError as error:
            raise WireError(f"section usage cannot be read: {error} - at `$.cpu.cpus`") from error
        self.cpus, self.topology, self.count = cpus, topology, len(listed)
        position = {cpu: i for i, cpu in enumerate(listed)}
        groups = [[position[cpu] for cpu in node.cpus if cpu in position] for node in topology.nodes]
        order = [place for group in groups for place in group]
        self.order = None if order == list(range(self.count)) else np.array(order, np.intp)
        self.with_cpus = [i for i, group in enumerate(groups) if group]
        starts = np.cumsum([0, *(len(groups[i]) for i in self.with_cpus)])
        self.starts = starts[:-1]
        self.counts = [len(groups[i]) for i in self.with_cpus]
        self.width = len(groups)

    def arranged(self, cpu: CpuColumns) -> Numbers:
        """The times as numbers, NUMA node after NUMA node. Raises WireError."""
        both = np.empty((2, self.count), np.int64)
        both[0], both[1] = _numbers(cpu.busy, self.count, "busy"), _numbers(cpu.idle, self.count, "idle")
        return both if self.order is None else both[:, self.order]

    def shares(self, before: Numbers, after: Numbers) -> list[float | None]:
        """Mean busy share of each NUMA node, as `usage.numa_busy` defines it."""
        found: list[float | None] = [None] * self.width
        if not len(self.starts):
            return found
        moved = after - before
        if least(moved) >= 0 and least(passed := moved[0] + moved[1]) > 0:
            sums, counts = np.add.reduceat(moved[0] / passed, self.starts).tolist(), self.counts
        else:
            sums, counts = self._known_shares(*moved)
        for i, total, count in zip(self.with_cpus, sums, counts, strict=True):
            if count:
                found[i] = total / count
        return found

    def _known_shares(self, busy: Numbers, idle: Numbers) -> tuple[list[float], list[int]]:
        """Sums of the shares that are known, and how many, where some counters ran backwards or stood still."""
        known = (busy >= 0) & (idle >= -IDLE_SLIP)
        passed = busy + np.maximum(idle, 0)
        known &= passed > 0
        share = np.divide(busy, passed, out=np.zeros(len(busy)), where=known)
        counts = np.add.reduceat(known, self.starts, dtype=np.int64)
        return np.add.reduceat(share, self.starts).tolist(), counts.tolist()


def least(numbers: Numbers) -> int:
    """The least of them; there is one."""
    found: int = np.minimum.reduce(numbers, axis=None)
    return found


def _numbers(raw: msgspec.Raw, count: int, column: str) -> Numbers:
    """A JSON array of whole numbers, none below 0."""
    text = bytes(raw)
    if text.translate(None, b"0123456789, \t\r\n") != b"[]":
        raise WireError(f"section usage: expected whole numbers - at `$.cpu.{column}`")
    found = np.fromstring(text[1:-1], np.int64, sep=",") if count else np.zeros(0, np.int64)
    if len(found) != count:
        raise WireError(f"section usage: as many times as CPUs are needed - at `$.cpu.{column}`")
    return found


def same_reading(last: Reading, now: Reading) -> bool:
    """Whether the exporter told the reading that it told before: idle counters never stand still otherwise."""
    if last.boot_id != now.boot_id:
        return False
    if last.monotonic == now.monotonic:
        return True
    if last.times is None or now.times is None or last.cpus != now.cpus or not now.times.size:
        return False
    # The first counters tell nearly always, and telling costs next to nothing then.
    return bool(last.times[1, 0] == now.times[1, 0] and (last.times == now.times).all())


def elapsed(last: Reading, now: Reading) -> float | None:
    """Seconds between two readings of one boot; None if they are no sequence (a reboot, a clock that went back)."""
    seconds = now.monotonic - last.monotonic
    return seconds if last.boot_id == now.boot_id and seconds > 0 else None


def rate(before: int | None, after: int | None, seconds: float) -> float | None:
    return None if before is None or after is None or after < before else (after - before) / seconds
