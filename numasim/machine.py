"""A server as data, and the plan language in which server models are written down.

A plan names NUMA nodes with their cores; `build` numbers the CPUs as the firmware of such a machine does and gives the
core's own values, so that what an exporter reads back can be compared field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from numacore.cpuset import EMPTY, CpuSet, union
from numacore.topology import Attributes, Cache, Cpu, NumaNode, Topology, single_node

GIB = 1 << 30
Span = Literal["core", "cluster", "complex", "numa", "socket"]
"""Whose CPUs share one cache."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A server: what its kernel tells of it, and the little that only the trees need."""

    name: str
    title: str
    topology: Topology
    attributes: Attributes
    cpu_model: str
    page_size: int = 4096
    core_kinds: dict[str, CpuSet] = {}
    """CPUs of each kind of core on a hybrid machine, by the name of its performance counters."""

    @property
    def with_memory(self) -> tuple[int, ...]:
        """NUMA nodes that have memory."""
        return tuple(node for node in self.topology.numa_ids if self.attributes.memory.get(node))

    @property
    def with_cpus(self) -> tuple[int, ...]:
        """NUMA nodes that have CPUs."""
        return tuple(node.id for node in self.topology.nodes if node.cpus)

    @property
    def local(self) -> tuple[int, ...]:
        """NUMA nodes whose memory is near CPUs; of a machine without any, those that have memory."""
        return tuple(node for node in self.with_memory if node in self.with_cpus) or self.with_memory


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One NUMA node of a plan; no socket = memory only. `memory` in GiB."""

    id: int
    memory: float
    socket: int | None = None
    cores: int = 0


class Level(msgspec.Struct, frozen=True):
    """One level of cache: `size` in KiB, shared by the CPUs of `span`."""

    level: int
    kind: Literal["Data", "Instruction", "Unified"]
    size: int
    span: Span


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A regular machine. CPUs are numbered core by core over all parts, sibling threads after all cores
    (`adjacent` = siblings next to each other instead)."""

    parts: tuple[Part, ...]
    levels: tuple[Level, ...]
    distances: tuple[tuple[int, ...], ...]
    threads: int = 1
    adjacent: bool = False
    core_step: int = 1
    """Core ids advance by this (POWER counts threads)."""
    first_core: int = 0
    has_die: bool = True
    cluster: int | None = None
    """Cores of one cluster where the kernel knows clusters."""
    complex: int | None = None
    """Cores that share a last-level cache smaller than the NUMA node."""
    first_cpu: dict[int, int] = {}
    """First CPU id of a part, where ids do not simply go on."""
    offline: CpuSet = EMPTY


def build(plan: Plan) -> Topology:
    """The topology of a plan."""
    slots = list(_slots(plan))
    cpus = tuple(sorted((_cpu(plan, slot) for slot in slots), key=lambda cpu: cpu.id))
    online = CpuSet(cpu.id for cpu in cpus if cpu.online)
    nodes = tuple(
        NumaNode(
            id=part.id,
            cpus=CpuSet(slot.cpu for slot in slots if slot.part is part) & online,
            distances=plan.distances[i],
        )
        for i, part in enumerate(plan.parts)
    )
    return Topology(cpus=cpus, nodes=nodes, caches=_caches(plan, slots, online))


def without_numa(topology: Topology) -> Topology:
    """The same machine under a kernel that knows no NUMA nodes."""
    return single_node(topology.cpus, topology.caches)


def memory(plan: Plan) -> dict[int, int | None]:
    """Memory of each NUMA node, bytes. A little is the firmware's own, so no node has a round number."""
    return {part.id: _usable(part) for part in plan.parts}


def _usable(part: Part) -> int:
    taken = 0.0 if part.memory == 0 else 0.004 + 0.0007 * (part.id % 5)
    return int(part.memory * GIB * (1 - taken)) // 65536 * 65536


class _Slot(msgspec.Struct, frozen=True):
    """One hardware thread of a plan: `core` counts within the socket, `place` within the part."""

    cpu: int
    part: Part
    core: int
    place: int


def _slots(plan: Plan) -> Iterator[_Slot]:
    total = sum(part.cores for part in plan.parts)
    in_socket: dict[int | None, int] = {}
    passed = 0
    for part in plan.parts:
        start = in_socket.get(part.socket, 0)
        for place in range(part.cores):
            for thread in range(plan.threads):
                position = passed + place
                cpu = position * plan.threads + thread if plan.adjacent else position + thread * total
                if part.id in plan.first_cpu:
                    cpu = plan.first_cpu[part.id] + place * plan.threads + thread
                yield _Slot(cpu, part, start + place, place)
        in_socket[part.socket] = start + part.cores
        passed += part.cores


def _cpu(plan: Plan, slot: _Slot) -> Cpu:
    if slot.cpu in plan.offline:
        return Cpu(id=slot.cpu, online=False)
    return Cpu(
        id=slot.cpu,
        socket=slot.part.socket,
        die=0 if plan.has_die else None,
        cluster=plan.first_core + slot.core // plan.cluster if plan.cluster else None,
        core=plan.first_core + slot.core * plan.core_step,
        numa=slot.part.id,
    )


def _span_key(plan: Plan, span: Span) -> Callable[[_Slot], tuple[object, ...]]:
    size = {"core": 1, "cluster": plan.cluster or 1, "complex": plan.complex or 1}
    if span == "socket":
        return lambda slot: (slot.part.socket,)
    if span == "numa":
        return lambda slot: (slot.part.id,)
    cores = size[span]
    return lambda slot: (slot.part.id, slot.place // cores)


def _caches(plan: Plan, slots: list[_Slot], online: CpuSet) -> tuple[Cache, ...]:
    found: list[Cache] = []
    for level in plan.levels:
        key = _span_key(plan, level.span)
        groups: dict[tuple[object, ...], list[int]] = {}
        for slot in slots:
            groups.setdefault(key(slot), []).append(slot.cpu)
        shared = (CpuSet(ids) & online for ids in groups.values())
        found += (
            Cache(level=level.level, kind=level.kind, cpus=cpus, size=level.size * 1024)
            for cpus in shared
            if cpus
        )
    return sort_caches(found)


def sort_caches(caches: Iterable[Cache]) -> tuple[Cache, ...]:
    """Caches by level, kind and first CPU."""
    return tuple(sorted(caches, key=lambda cache: (cache.level, cache.kind, next(iter(cache.cpus)))))


def merge(topologies: Iterable[Topology], shared: Cache) -> Topology:
    """One NUMA node out of several kinds of core and the cache that all share: a hybrid machine."""
    parts = list(topologies)
    cpus = tuple(sorted((cpu for part in parts for cpu in part.cpus), key=lambda cpu: cpu.id))
    node = NumaNode(id=0, cpus=union(part.online for part in parts), distances=(10,))
    caches = [cache for part in parts for cache in part.caches]
    return Topology(cpus=cpus, nodes=(node,), caches=sort_caches([*caches, shared]))
