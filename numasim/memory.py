"""On which NUMA nodes a container's memory lies, and how much of each is taken already."""

from __future__ import annotations

import math
import random

from numasim import wave
from numasim.machine import Machine
from numasim.placement import Place
from numasim.workload import Pod, Want

Shares = dict[int, wave.Wave]
"""Share of a container's memory by NUMA node, moving a little."""


class Memory:
    """The memory of one machine."""

    def __init__(self, machine: Machine, rng: random.Random) -> None:
        self._topology, self._attributes, self._rng = machine.topology, machine.attributes, rng
        self._taken = dict.fromkeys(machine.topology.numa_ids, 0)
        self.nodes = machine.with_memory
        # A GPU's own memory is not given to programs that do not ask for it; a slower tier is.
        tiers = bool(machine.attributes.memory_tiers)
        self._usual = [node for node in self.nodes if tiers or node in machine.with_cpus]

    def take(self, pod: Pod, want: Want, place: Place) -> Shares:
        """Finds where a container's memory lies, and counts it as taken."""
        shares = self._shares(pod, want, place)
        self._count(shares, want.memory)
        return shares

    def give_back(self, shares: Shares, size: int) -> None:
        """Counts a container's memory as free again."""
        self._count(shares, -size)

    def _count(self, shares: Shares, size: int) -> None:
        for node, share in shares.items():
            self._taken[node] += int(share.mean * size)

    def _shares(self, pod: Pod, want: Want, place: Place) -> Shares:
        pinned = {node for block in place.blocks for node in block.numa}
        homes = [node for node in pinned or self._topology.numa_of(place.cpus) if node in self.nodes]
        if not homes and place.cpus:
            homes = [self._nearest(self._topology.numa_of(place.cpus)[0])]
        full = any(self._left(node) < want.memory for node in homes)
        if not homes or ((pod.habit == "anywhere" or full) and not pinned):
            return self._anywhere(want)
        if pod.habit == "drifted" and not pinned and set(self._usual) - set(homes):
            return self._drifted(homes)
        return {node: wave.Wave(1 / len(homes)) for node in homes}

    def _left(self, node: int) -> int:
        total = self._attributes.memory.get(node) or 0
        apart = sum(
            pages.page_size * (pages.total or 0) for pages in self._attributes.hugepages.get(node, ())
        )
        return total * 17 // 20 - apart - self._taken[node]

    def _nearest(self, node: int) -> int:
        return min(self.nodes, key=lambda other: (self._topology.distance(node, other) or 0, other))

    def _anywhere(self, want: Want) -> Shares:
        """First touch: where there is room, on up to three NUMA nodes."""
        wide = [node for node in self._usual if self._left(node) > want.memory] or self._usual
        chosen = self._rng.sample(wide, min(len(wide), self._rng.choice([1, 2, 2, 3])))
        parts = [self._rng.uniform(0.2, 1.0) for _ in chosen]
        return {node: wave.Wave(part / sum(parts)) for node, part in zip(chosen, parts, strict=True)}

    def _drifted(self, homes: list[int]) -> Shares:
        """Part of the memory on another NUMA node, a little more or less over the minutes."""
        away = self._rng.choice([node for node in self._usual if node not in homes])
        lost = self._rng.uniform(0.15, 0.55)
        speed, phase = math.tau / self._rng.uniform(120, 400), self._rng.uniform(0, math.tau)
        back = wave.Wave((1 - lost) / len(homes), ((-0.04 / len(homes), speed, phase),))
        return {**dict.fromkeys(homes, back), away: wave.Wave(lost, ((0.04, speed, phase),))}
