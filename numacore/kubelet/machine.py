"""The machine as the kubelet sees it: NUMA nodes from cAdvisor, and the CPU topology that the CPU manager makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache

import msgspec

from numacore import hints
from numacore.cpuset import CpuSet
from numacore.kubelet.errors import NIL_POINTER, PanicError, StartError
from numacore.topology import Attributes, NumaNode, Topology

MASK_BITS = 64
"""NUMA node ids that fit the kubelet's masks."""


class Core(msgspec.Struct, frozen=True):
    """A physical core with its online threads. `uncore` = id of the last-level cache that not the whole NUMA node shares."""

    id: int
    socket: int
    threads: tuple[int, ...]
    uncore: int | None = None


class Node(msgspec.Struct, frozen=True):
    """A NUMA node: memory in bytes, pages by page size in KiB, distances by position; None = the firmware does not say."""

    id: int
    memory: int = 0
    hugepages: dict[int, int] = {}
    distances: tuple[int, ...] | None = None
    cores: tuple[Core, ...] = ()


class CpuInfo(msgspec.Struct, frozen=True):
    """Where one logical CPU sits. A core is named by its lowest CPU."""

    numa: int
    socket: int
    core: int
    uncore: int


class CpuTopology(msgspec.Struct, frozen=True, dict=True):
    """`CPUTopology` (kubelet 1.37, cm/cpumanager/topology/topology.go). Sets of CPUs are integers with a bit per CPU."""

    cpus: int
    cores: int
    """Number of cores, as cAdvisor counts them."""
    sockets: int
    by_cpu: dict[int, CpuInfo]

    @cached_property
    def all(self) -> int:
        return hints.mask_of(self.by_cpu)

    @cached_property
    def in_numa(self) -> dict[int, int]:
        """CPUs by NUMA node, ascending; nodes without CPUs are unknown to the CPU manager."""
        return self._grouped("numa")

    @cached_property
    def in_socket(self) -> dict[int, int]:
        return self._grouped("socket")

    @cached_property
    def in_core(self) -> dict[int, int]:
        return self._grouped("core")

    @cached_property
    def in_uncore(self) -> dict[int, int]:
        return self._grouped("uncore")

    def _grouped(self, attribute: str) -> dict[int, int]:
        groups: dict[int, int] = {}
        for cpu, info in self.by_cpu.items():
            key = getattr(info, attribute)
            groups[key] = groups.get(key, 0) | 1 << cpu
        return dict(sorted(groups.items()))

    @property
    def per_core(self) -> int:
        """`CPUsPerCore`: whole numbers, also where cores differ."""
        return self.cpus // self.cores if self.cores else 0

    @property
    def per_socket(self) -> int:
        return self.cpus // self.sockets if self.sockets else 0

    @property
    def per_uncore(self) -> int:
        return self.cpus // len(self.in_uncore) if self.in_uncore else 0

    def numa_cpus(self, mask: int) -> int:
        """CPUs of the NUMA nodes in a mask."""
        return union(cpus for numa, cpus in self.in_numa.items() if mask >> numa & 1)

    def sockets_of(self, mask: int) -> list[int]:
        """Sockets that the NUMA nodes in a mask touch."""
        cpus = self.numa_cpus(mask)
        return [socket for socket, within in self.in_socket.items() if within & cpus]


class Machine(msgspec.Struct, frozen=True, dict=True):
    """NUMA nodes, ascending by id (cAdvisor's MachineInfo)."""

    nodes: tuple[Node, ...]

    @cached_property
    def ids(self) -> tuple[int, ...]:
        return tuple(node.id for node in self.nodes)

    @cached_property
    def mask(self) -> int:
        """Every NUMA node."""
        return hints.mask_of(self.ids)

    @cached_property
    def memory(self) -> int:
        """Bytes of all NUMA nodes."""
        return sum(node.memory for node in self.nodes)

    @cached_property
    def topology(self) -> CpuTopology:
        """`Discover`. Raises StartError."""
        cores = [(node, core) for node in self.nodes for core in node.cores]
        if not any(core.threads for _, core in cores):
            raise StartError("could not detect number of cpus")
        by_cpu: dict[int, CpuInfo] = {}
        for node, core in cores:
            if not core.threads:
                raise StartError("no cpus provided")
            if len(set(core.threads)) != len(core.threads):
                raise StartError("cpus provided are not unique")
            uncore = core.socket if core.uncore is None else core.uncore
            info = CpuInfo(node.id, core.socket, min(core.threads), uncore)
            by_cpu |= dict.fromkeys(core.threads, info)
        return CpuTopology(
            cpus=sum(len(core.threads) for _, core in cores),
            cores=len(cores),
            sockets=len({core.socket for _, core in cores}),
            by_cpu=by_cpu,
        )


def union(sets: Iterable[int]) -> int:
    together = 0
    for each in sets:
        together |= each
    return together


def check_masks(nodes: Iterable[int]) -> None:
    """A NUMA node id of 64 or more has no bit in a mask: the kubelet follows a nil pointer. Raises PanicError."""
    if any(node >= MASK_BITS for node in nodes):
        raise PanicError(NIL_POINTER)


def of_topology(topology: Topology, attributes: Attributes) -> Machine:
    """The kubelet's view of a machine that the node told of: online CPUs only.

    Unknown amounts of memory or huge pages count as none: the kubelet would not start on them.
    """
    cores = _cores_of(topology)
    return Machine(
        tuple(_node(attributes, each, mine) for each, mine in zip(topology.nodes, cores, strict=True))
    )


def _node(attributes: Attributes, node: NumaNode, cores: tuple[Core, ...]) -> Node:
    pages = {each.page_size // 1024: each.total or 0 for each in attributes.hugepages.get(node.id, ())}
    return Node(node.id, attributes.memory.get(node.id) or 0, pages, node.distances, cores)


@lru_cache(maxsize=256)
def _cores_of(topology: Topology) -> tuple[tuple[Core, ...], ...]:
    """By NUMA node. In a cluster many machines are of one model, and each is asked for several times."""
    return tuple(_cores(topology, each) for each in topology.nodes)


def _cores(topology: Topology, node: NumaNode) -> tuple[Core, ...]:
    here = [(place, cpus & node.cpus) for place, cpus in topology.cores() if cpus & node.cpus]
    return tuple(
        Core(
            id=number if core is None else core,
            socket=socket or 0,
            threads=tuple(cpus),
            uncore=_uncore_cache(topology, cpus, len(here) * len(cpus)),
        )
        for number, ((socket, _, core), cpus) in enumerate(here)
    )


def _uncore_cache(topology: Topology, core: CpuSet, threads_of_node: int) -> int | None:
    """The first cache of level 3 or more that is not the NUMA node's by its number of CPUs; named by its lowest CPU.

    cAdvisor 0.60, lib/utils/sysinfo/sysinfo.go `addCacheInfo`: a cache of several NUMA nodes counts as one too.
    """
    large = (cache.cpus for cache in topology.caches if cache.level > 2 and cache.cpus & core)
    return next((min(cpus) for cpus in large if len(cpus) != threads_of_node), None)
