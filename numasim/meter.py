"""CPU time of CPUs and containers, as a function of simulated time alone.

CPUs are in groups: the shared pool, or the CPUs of one exclusive container. A group's load is the sum of its members'
waves, spread over its CPUs by weights, and each CPU swings a little around that. Between two changes of the groups
all of it has closed integrals; at a change the sums so far are put aside.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from numacore.cpuset import CpuSet
from numasim import wave

LANES = 5
"""CPUs of a group swing in this many rhythms."""
ROUNDS = 12
"""Steps towards weights with mean 1; what is then missing is a few thousandths."""
FULL = 0.94
"""Share of a CPU that a group's load may reach on average; what is above is throttled."""


class Account:
    """A container's CPU seconds. `rate` < 1: its group is full and slows it down."""

    __slots__ = ("_base", "_by_cpu", "_load", "_rate", "_since", "_spread")

    def __init__(self, load: wave.Wave, now: float, spent: float) -> None:
        self._load, self._base, self._rate = load, spent, 1.0
        self._since = load.total(now)
        self._by_cpu: dict[int, float] = {}
        self._spread: dict[int, float] = {}

    def seconds(self, t: float) -> float:
        """CPU seconds spent until `t`."""
        return self._base + self._rate * (self._load.total(t) - self._since)

    def by_cpu(self, t: float) -> dict[int, float]:
        """CPU seconds spent on each CPU that it ever ran on."""
        found = dict(self._by_cpu)
        spent = self.seconds(t) - self._base
        for cpu, share in self._spread.items():
            found[cpu] = found.get(cpu, 0.0) + spent * share
        return found

    def settle(self, t: float, rate: float, spread: dict[int, float]) -> None:
        """Puts the sums so far aside and goes on at another rate, its time spread over CPUs by these shares."""
        if self._spread:
            self._by_cpu = self.by_cpu(t)
        else:
            self._by_cpu = {cpu: self.seconds(t) * share for cpu, share in spread.items()}
        self._base = self.seconds(t)
        self._since, self._rate, self._spread = self._load.total(t), rate, spread

    @property
    def load(self) -> wave.Wave:
        """What it would use if nothing slowed it down."""
        return self._load


class Group:
    """CPUs that share the load of some containers."""

    def __init__(self, cpus: CpuSet, accounts: Sequence[Account], weights: dict[int, float]) -> None:
        self.cpus = tuple(cpus)
        self._accounts = accounts
        high, low = sum(a.load.high for a in accounts), sum(a.load.low for a in accounts)
        self.rate = min(1.0, FULL * len(self.cpus) / high) if high else 1.0
        top = high * self.rate / len(self.cpus)
        self.weights = _weights([weights[cpu] for cpu in self.cpus], top)
        floor = 0.5 * low * self.rate / len(self.cpus)
        self.swings = [max(0.0, min(floor * weight, 1 - top * weight)) for weight in self.weights]

    def start(self, t: float) -> None:
        """Begins to count at `t`."""
        spread = {cpu: weight / len(self.cpus) for cpu, weight in zip(self.cpus, self.weights, strict=True)}
        for account in self._accounts:
            account.settle(t, self.rate, spread)
        self._from = self._sum(t)

    def seconds(self, t: float) -> float:
        """CPU seconds per CPU since the group began, at weight 1."""
        return (self._sum(t) - self._from) / len(self.cpus)

    def _sum(self, t: float) -> float:
        return sum(account.seconds(t) for account in self._accounts)


class Meter:
    """Busy seconds of every CPU."""

    def __init__(self, rng: random.Random, cpus: CpuSet, uptime: float) -> None:
        self._order = tuple(cpus)
        self._place = {cpu: i for i, cpu in enumerate(self._order)}
        self._busy = [uptime * rng.uniform(0.05, 0.35) for _ in self._order]
        self._weights = {cpu: 0.04 + rng.random() ** 4 for cpu in self._order}
        self._lanes = [wave.quick(rng) for _ in range(LANES)]
        self._groups: list[Group] = []
        self._since = 0.0

    def regroup(self, t: float, groups: Sequence[tuple[CpuSet, Sequence[Account]]]) -> None:
        """From `t` on these groups hold. A CPU in none of them idles."""
        self._busy, self._since = self.busy(t), t
        self._groups = [Group(cpus, accounts, self._weights) for cpus, accounts in groups if cpus]
        for group in self._groups:
            group.start(t)

    def busy(self, t: float) -> list[float]:
        """Busy seconds of each CPU until `t`, in the order of their ids."""
        found = list(self._busy)
        lanes = [lane.total(t) - lane.total(self._since) for lane in self._lanes]
        for group in self._groups:
            each = group.seconds(t)
            for cpu, weight, swing in zip(group.cpus, group.weights, group.swings, strict=True):
                found[self._place[cpu]] += each * weight + swing * lanes[cpu % LANES]
        return found


def _weights(raw: list[float], top: float) -> list[float]:
    """Weights with mean 1 of which none asks more of its CPU than `FULL` when the group's load is at its `top`.

    What a full CPU cannot take goes to the others, so a busy group gets even and a quiet one keeps its idle CPUs.
    """
    most = max(1.0, FULL / top) if top else float("inf")
    found = raw
    for _ in range(ROUNDS):
        scale = len(found) / sum(found)
        found = [min(most, weight * scale) for weight in found]
    missing = 1 - sum(found) / len(found)
    return [weight + missing for weight in found]
