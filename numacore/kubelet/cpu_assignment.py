"""Which CPUs a container gets out of the free ones: packed, by uncore cache, or spread over cores.

Kubelet 1.37, cm/cpumanager/cpu_assignment.go. Sets of CPUs are integers with a bit per CPU.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from numacore import hints
from numacore.kubelet.errors import AllocationError
from numacore.kubelet.machine import CpuTopology, union


class Accumulator(msgspec.Struct):
    """`cpuAccumulator`: takes CPUs out of `free` until `needed` is 0.

    Each element is tried in the order of its free CPUs, fewest first: containers go where least is left.
    """

    topology: CpuTopology
    free: int
    needed: int
    taken: int = 0

    @property
    def satisfied(self) -> bool:
        return self.needed < 1

    @property
    def failed(self) -> bool:
        return self.needed > self.free.bit_count()

    @property
    def numa_first(self) -> bool:
        """Whether NUMA nodes lie above sockets (`numaFirst`, else `socketsFirst`)."""
        return self.topology.sockets >= len(self.topology.in_numa)

    def take(self, cpus: int) -> None:
        """Counts every CPU of `cpus`, also one that was taken before, as the kubelet does."""
        self.taken |= cpus
        self.free &= ~cpus
        self.needed -= cpus.bit_count()

    def _sorted(self, groups: dict[int, int], within: int = -1) -> list[int]:
        """Elements with a free CPU in `within`, fewest free CPUs in all first, then by id (`sort`)."""
        here = self.free & within
        counted = [((cpus & self.free).bit_count(), each) for each, cpus in groups.items() if cpus & here]
        return [each for _, each in sorted(counted)]

    def numa_nodes(self) -> list[int]:
        """`sortAvailableNUMANodes`."""
        if self.numa_first:
            return self._sorted(self.topology.in_numa)
        in_socket = self.topology.in_socket
        return [each for s in self.sockets() for each in self._sorted(self.topology.in_numa, in_socket[s])]

    def sockets(self) -> list[int]:
        """`sortAvailableSockets`."""
        if not self.numa_first:
            return self._sorted(self.topology.in_socket)
        in_numa = self.topology.in_numa
        return [each for n in self.numa_nodes() for each in self._sorted(self.topology.in_socket, in_numa[n])]

    def uncore_caches(self) -> list[int]:
        """`sortAvailableUncoreCaches`."""
        in_numa = self.topology.in_numa
        return [each for n in self.numa_nodes() for each in self._sorted(self.topology.in_uncore, in_numa[n])]

    def cores(self) -> list[int]:
        """`sortAvailableCores`."""
        if self.numa_first:
            parents = [self.topology.in_socket[each] for each in self.sockets()]
        else:
            parents = [self.topology.in_numa[each] for each in self.numa_nodes()]
        return [core for parent in parents for core in self._sorted(self.topology.in_core, parent)]

    def cpus(self, spread: bool) -> list[int]:
        """`sortAvailableCPUsSpread`: by socket; `sortAvailableCPUsPacked`: by core."""
        if spread:
            parents = [self.topology.in_socket[each] for each in self.sockets()]
        else:
            parents = [self.topology.in_core[each] for each in self.cores()]
        return [cpu for parent in parents for cpu in hints.nodes_of(parent & self.free)]

    def _take_whole(self, elements: Iterable[int]) -> None:
        for cpus in elements:
            if self.needed >= cpus.bit_count():
                self.take(cpus)

    def take_full_numa_nodes(self) -> None:
        groups = (self.topology.in_numa[each] for each in self.numa_nodes())
        self._take_whole([cpus for cpus in groups if cpus & ~self.free == 0])

    def take_full_sockets(self) -> None:
        """A socket is free by count: on a machine of unequal sockets the average decides, as in the kubelet."""
        groups = (self.topology.in_socket[each] for each in self.sockets())
        per_socket = self.topology.per_socket
        self._take_whole([cpus for cpus in groups if (cpus & self.free).bit_count() == per_socket])

    def take_full_uncore_caches(self) -> None:
        groups = (self.topology.in_uncore[each] for each in self.uncore_caches())
        self._take_whole([cpus for cpus in groups if cpus & ~self.free == 0])

    def take_full_cores(self) -> None:
        """A core is free by count too: with a thread offline somewhere, `CPUsPerCore` may fit no full core."""
        groups = (self.topology.in_core[each] for each in self.cores())
        per_core = self.topology.per_core
        self._take_whole([cpus for cpus in groups if (cpus & self.free).bit_count() == per_core])

    def take_uncore_caches(self) -> None:
        """`takeUncoreCache`: whole caches, else all of the rest from one cache."""
        for uncore in self.uncore_caches():
            if self.needed >= self.topology.per_uncore:
                self.take_full_uncore_caches()
            if not self.satisfied:
                self._take_partial_uncore(self.topology.in_uncore[uncore])
            if self.satisfied:
                return

    def _take_partial_uncore(self, uncore: int) -> None:
        """`takePartialUncore`: the first cores of the cache; of an odd number of CPUs the last sibling stays free."""
        per_core = self.topology.per_core
        in_core = self.topology.in_core
        cores = [core for core, cpus in in_core.items() if cpus & uncore & self.free]
        wanted = -(-self.needed // per_core)
        cpus = union(in_core[core] for core in cores[:wanted]) & self.free
        if self.needed % 2 and per_core > 1 and cpus.bit_count() > self.needed:
            cpus &= ~(1 << cpus.bit_length() - 1)
        if cpus.bit_count() == self.needed:
            self.take(cpus)

    def take_remaining(self, spread: bool) -> None:
        """`takeRemainingCPUs`: single threads."""
        for cpu in self.cpus(spread):
            self.take(1 << cpu)
            if self.satisfied:
                return


def accumulator(topology: CpuTopology, available: int, number: int) -> Accumulator:
    """A new accumulator. Raises AllocationError: not enough CPUs."""
    made = Accumulator(topology, available & topology.all, number)
    if not made.satisfied and made.failed:
        raise not_enough(number, available)
    return made


def not_enough(number: int, available: int) -> AllocationError:
    return AllocationError(
        f"not enough cpus available to satisfy request: requested={number}, available={available.bit_count()}"
    )


def take_packed(
    topology: CpuTopology, available: int, number: int, *, spread: bool = False, uncore: bool = False
) -> int:
    """`takeByTopologyNUMAPacked`: whole NUMA nodes and sockets first, then caches, cores, single CPUs.

    Raises:
        AllocationError: not enough CPUs.
    """
    acc = accumulator(topology, available, number)
    first, second = acc.take_full_numa_nodes, acc.take_full_sockets
    steps = [first, second] if acc.numa_first else [second, first]
    if uncore:
        steps.append(acc.take_uncore_caches)
    if not spread:
        steps.append(acc.take_full_cores)
    steps.append(lambda: acc.take_remaining(spread))
    for step in steps:
        if acc.satisfied:
            break
        step()
    if not acc.satisfied:
        raise AllocationError("failed to allocate cpus")
    return acc.taken
