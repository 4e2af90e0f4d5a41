"""Clocks and scales: CPU time and resident memory of processes from /proc, and figures over several rounds.

CPU time is what a process used, not how long it took: on a machine with other guests wall-clock times wander by a
factor of two and CPU times by a few per cent.
"""

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

ROUNDS = 7
"""Rounds of a comparison; both sides take turns within each."""
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process since it started, threads that ended included.

    The scheduler's own count has nanoseconds and knows living threads only; the accounting in `stat` has hundredths of
    a second and forgets nobody. The larger of both is right within a tick.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    coarse = (int(fields[11]) + int(fields[12])) / TICKS
    fine = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            fine += int((task / "schedstat").read_text().split()[0]) / 1e9
    return fine if fine > coarse - 2 / TICKS else coarse


def resident(pid: int) -> int:
    """Resident memory now, bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no memory any more")


class Spread(msgspec.Struct, frozen=True):
    """Median of several rounds, with the least and the most."""

    median: float
    least: float
    most: float

    def shown(self, unit: str, factor: float = 1.0, digits: int = 2) -> str:
        low, high = self.least * factor, self.most * factor
        return f"{self.median * factor:.{digits}f} {unit} [{low:.{digits}f}-{high:.{digits}f}]"


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of all lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Used:
    """CPU seconds that a process used within a `spent` block; 0 until it ends."""

    seconds = 0.0


@contextlib.contextmanager
def spent(pid: int) -> Iterator[Used]:
    used = Used()
    before = cpu_seconds(pid)
    yield used
    used.seconds = cpu_seconds(pid) - before


def in_turns(sides: Sequence[Callable[[], float]], rounds: int = ROUNDS) -> list[Spread]:
    """Calls every side once per round, in changing order, after one round that does not count."""
    found: list[list[float]] = [[] for _ in sides]
    for turn in range(rounds + 1):
        order = list(range(len(sides)))
        for index in order[turn % len(order) :] + order[: turn % len(order)]:
            value = sides[index]()
            if turn:
                found[index].append(value)
    return [spread(values) for values in found]


def wait_until(ready: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} took longer than {seconds:.0f} s")
        time.sleep(0.05)
