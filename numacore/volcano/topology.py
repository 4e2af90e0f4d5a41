"""What a Numatopology object says of a node, and its CPUs sorted by NUMA node, socket and core.

Fields: volcano staging/src/volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1/numatopo_types.go. Sets of CPUs are integers with a bit per id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache, reduce
from operator import or_

import msgspec

from numacore.cpuset import EMPTY, CpuSet
from numacore.hints import mask_of

MAX_NUMA_ID = 63
"""Largest NUMA id that Volcano can put into a mask (kubelet, cm/topologymanager/bitmask)."""


class Cpu(msgspec.Struct, frozen=True):
    """Where a CPU lies. `core` as the resource-exporter writes it: unique in its socket, often not on the machine."""

    numa: int = 0
    socket: int = 0
    core: int = 0


class Numatopology(msgspec.Struct, frozen=True):
    """`allocatable`: CPUs that no container owns, reserved ones included. `reserved`: CPUs, None = not said."""

    cpu_manager: str = ""
    topology_manager: str = ""
    cpus: Mapping[int, Cpu] = {}
    allocatable: CpuSet = EMPTY
    reserved: Fraction | None = None


class Index:
    """The CPUs of a node by what they share.

    `per_socket` and `per_core` are divisions without remainder (kubelet, cm/cpumanager/topology `CPUsPerSocket`); cores are counted by
    socket and id (volcano, cpu_mng.go `getPhysicalCoresNum`) but looked up by id alone.
    """

    def __init__(self, cpus: Mapping[int, Cpu]) -> None:
        self.every = 0
        self.numa: dict[int, int] = {}
        self.sockets: dict[int, int] = {}
        self.cores: dict[int, int] = {}
        self._sockets_of: dict[int, int] = {}
        for number, cpu in sorted(cpus.items()):
            bit = 1 << number
            self.every |= bit
            self.numa[cpu.numa] = self.numa.get(cpu.numa, 0) | bit
            self.sockets[cpu.socket] = self.sockets.get(cpu.socket, 0) | bit
            self.cores[cpu.core] = self.cores.get(cpu.core, 0) | bit
            self._sockets_of.setdefault(cpu.core, cpu.socket)
        self.per_socket = len(cpus) // max(1, len(self.sockets))
        self.per_core = len(cpus) // max(1, len({(cpu.socket, cpu.core) for cpu in cpus.values()}))
        self.nodes = tuple(sorted(self.numa))
        self.mask = mask_of(self.nodes)

    def socket_of(self, core: int) -> int:
        """The socket of the lowest CPU that carries this core id."""
        return self._sockets_of[core]

    def in_nodes(self, nodes: int) -> int:
        """The CPUs of the NUMA nodes in a mask."""
        return union(cpus for node, cpus in self.numa.items() if nodes >> node & 1)

    def free_per_node(self, free: int) -> tuple[int, ...]:
        """How many of `free` lie in each of `nodes`; CPUs that the object does not describe count as NUMA node 0."""
        strangers = (free & ~self.every).bit_count()
        return tuple(
            (self.numa[node] & free).bit_count() + (strangers if node == 0 else 0) for node in self.nodes
        )

    def nodes_of(self, cpus: int) -> int:
        """How many NUMA nodes a set of CPUs touches."""
        return sum(1 for node in self.numa.values() if node & cpus)


def index_of(cpus: Mapping[int, Cpu]) -> Index:
    """The index of a node's CPUs; equal machines share one."""
    return _index(tuple(cpus.items()))


@lru_cache(maxsize=64)
def _index(cpus: tuple[tuple[int, Cpu], ...]) -> Index:
    return Index(dict(cpus))


def union(sets: Iterable[int]) -> int:
    """The union of sets of CPUs."""
    return reduce(or_, sets, 0)


def reserved_count(reserved: Fraction | None) -> int:
    """How many CPUs Volcano takes for reserved: the ceiling of thousandths, rounded up (cpu_mng.go)."""
    return 0 if reserved is None else -(-milli(reserved) // 1000)


def milli(amount: Fraction) -> int:
    """apimachinery `Quantity.MilliValue`: thousandths, rounded up."""
    return -(-amount.numerator * 1000 // amount.denominator)
