"""A machine as the kernel describes it: CPUs, cores, sockets, caches, NUMA nodes and their distances.

A `Topology` is what has an identity (`Topology.hash`): two servers of one model share it, and it is stored once. What
may change while it stays the same machine, memory sizes, huge pages, devices, measured latencies, are `Attributes`
beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Annotated, Literal

import msgspec

from numacore.cpuset import MAX_ID, CpuSet, union

LOCAL_DISTANCE = 10
"""Distance of a NUMA node to itself (ACPI 6.5, 5.2.17 SLIT). Relative: 20 means twice the cost, not 20 ns."""
UNREACHABLE = 255
"""Distance of two NUMA nodes that cannot reach each other (same table)."""

Id = Annotated[int, msgspec.Meta(ge=0, le=MAX_ID)]
"""Id of a CPU or NUMA node. The bounds of these types hold where a value is read from the wire."""
Amount = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Bytes, ticks, pages: never negative, and no larger than databases keep."""
Label = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""Number of a socket, die, cluster or core: the kernel's or firmware's choice."""
Distance = Annotated[int, msgspec.Meta(ge=0, le=UNREACHABLE)]


class TopologyError(ValueError):
    """A topology that contradicts itself. The message names the field and the values."""


class Cpu(msgspec.Struct, frozen=True, omit_defaults=True):
    """One logical CPU (hardware thread). `None` = the kernel does not say; an offline CPU knows little of itself.

    Core ids are unique in a socket only, as the kernel prints them. Where they do not tell the cores apart (they repeat
    or count half cores on some AMD machines and mean something else on s390), `sibling` is the lowest CPU of the core.
    """

    id: Id
    socket: Label | None = None
    die: Label | None = None
    cluster: Label | None = None
    core: Label | None = None
    numa: Id | None = None
    online: bool = True
    sibling: Id | None = None


class Cache(msgspec.Struct, frozen=True, omit_defaults=True):
    """One cache and the CPUs that share it. `size` in bytes."""

    level: Amount
    kind: Literal["Data", "Instruction", "Unified"]
    cpus: CpuSet
    size: Amount | None = None


class NumaNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """One NUMA node: its id (sparse ids are common) and its online CPUs (none on a memory-only node).

    `distances` to every NUMA node of the machine, in ascending order of their ids; `None` = the firmware does not say.
    """

    id: Id
    cpus: CpuSet
    distances: tuple[Distance, ...] | None = None


class Topology(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """A machine's CPUs and NUMA nodes, both ascending by id, and its caches.

    `numa` is false where the kernel knows no NUMA nodes: the machine then counts as one NUMA node, 0, with every CPU,
    as the kubelet sees it (cadvisor does the same), so that nothing above needs to know the difference.
    """

    cpus: tuple[Cpu, ...]
    nodes: tuple[NumaNode, ...]
    caches: tuple[Cache, ...] = ()
    numa: bool = True

    def __post_init__(self) -> None:
        _check_ids("CPU", [cpu.id for cpu in self.cpus])
        _check_ids("NUMA node", [node.id for node in self.nodes])
        for node in self.nodes:
            if node.distances is not None and len(node.distances) != len(self.nodes):
                raise TopologyError(
                    f"NUMA node {node.id} has {len(node.distances)} distances, the machine {len(self.nodes)} NUMA nodes"
                )

    @cached_property
    def hash(self) -> str:
        """Content hash over NUMA ids, CPUs with core, die, cluster and socket, caches and distances."""
        return content_hash(_ENCODER.encode(self))

    @cached_property
    def online(self) -> CpuSet:
        """CPUs that are online."""
        return CpuSet(cpu.id for cpu in self.cpus if cpu.online)

    @cached_property
    def offline(self) -> CpuSet:
        """CPUs that are present and offline."""
        return CpuSet(cpu.id for cpu in self.cpus if not cpu.online)

    @cached_property
    def numa_ids(self) -> tuple[int, ...]:
        """Ids of the NUMA nodes, ascending."""
        return tuple(node.id for node in self.nodes)

    @cached_property
    def sockets(self) -> tuple[int, ...]:
        """Ids of the sockets that the kernel names, ascending."""
        return tuple(sorted({cpu.socket for cpu in self.cpus if cpu.socket is not None}))

    @cached_property
    def _by_id(self) -> dict[int, Cpu]:
        return {cpu.id: cpu for cpu in self.cpus}

    def cpu(self, cpu_id: int) -> Cpu | None:
        """The CPU of that id, or None."""
        return self._by_id.get(cpu_id)

    @cached_property
    def _distances(self) -> dict[tuple[int, int], int]:
        rows = ((node.id, node.distances) for node in self.nodes if node.distances is not None)
        return {(a, b): value for a, row in rows for b, value in zip(self.numa_ids, row, strict=True)}

    def distance(self, a: int, b: int) -> int | None:
        """Distance from NUMA node `a` to `b`, or None where it is unknown. It need not be symmetric."""
        return self._distances.get((a, b))

    def numa_of(self, cpus: CpuSet) -> tuple[int, ...]:
        """Ids of the NUMA nodes that these CPUs lie in, ascending. CPUs in no NUMA node do not count."""
        return tuple(node.id for node in self.nodes if node.cpus & cpus)

    def cores(self) -> Iterator[tuple[tuple[int | None, int | None, int | None], CpuSet]]:
        """The online cores as ((socket, die, core), their CPUs); a CPU whose core is unknown is a core by itself."""
        groups: dict[tuple[int | None, ...], list[Cpu]] = {}
        for cpu in self.cpus:
            if cpu.online:
                apart = cpu.id if cpu.core is None and cpu.sibling is None else cpu.sibling
                key = (cpu.socket, cpu.die, cpu.core, apart) if apart is None else (apart,)
                groups.setdefault(key, []).append(cpu)
        for first, *others in groups.values():
            yield (first.socket, first.die, first.core), CpuSet([first.id, *(cpu.id for cpu in others)])

    def socket_of_node(self, numa_id: int) -> int | None:
        """The socket of a NUMA node's CPUs, or None: a memory-only node, or CPUs of several sockets."""
        found = {cpu.socket for cpu in self.cpus if cpu.numa == numa_id and cpu.online}
        return found.pop() if len(found) == 1 else None

    def threads_per_core(self) -> int | None:
        """Most threads that an online core has, or None where no core is known."""
        return max((len(cpus) for (_, _, core), cpus in self.cores() if core is not None), default=None)


class HugePages(msgspec.Struct, frozen=True):
    """Huge pages of one size on one NUMA node, in pages. `None` = unreadable."""

    page_size: Amount
    """bytes"""
    total: Amount | None = None
    free: Amount | None = None


class Device(msgspec.Struct, frozen=True, omit_defaults=True):
    """A PCI device. `numa` None = the firmware does not say (sysfs -1)."""

    address: str
    kind: Literal["network", "storage", "accelerator", "other"]
    numa: Id | None = None
    names: tuple[str, ...] = ()
    """Kernel names that people know: eth2, nvme0n1, mlx5_0, renderD128."""
    vendor: str | None = None
    """PCI ids in hexadecimal, `vendor:device`."""
    driver: str | None = None


class Performance(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the firmware promises between a NUMA node's memory and its best initiators (HMAT).

    Kernel: Documentation/ABI/stable/sysfs-devices-node, `nodeX/accessY/initiators/`. Access class 0 are the nearest
    initiators of any kind, class 1 the nearest CPUs. Nanoseconds and MB/s.
    """

    node: Id
    access: Amount
    initiators: tuple[Id, ...] = ()
    read_latency: Amount | None = None
    write_latency: Amount | None = None
    read_bandwidth: Amount | None = None
    write_bandwidth: Amount | None = None


class Attributes(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a machine has beside its topology and may change without becoming another machine."""

    memory: dict[Id, Amount | None] = {}
    """Total memory of each NUMA node, bytes."""
    hugepages: dict[Id, tuple[HugePages, ...]] = {}
    """Configured huge pages by NUMA node."""
    devices: tuple[Device, ...] = ()
    performance: tuple[Performance, ...] = ()
    memory_tiers: dict[Id, Label] = {}
    """Memory tier of a NUMA node where the kernel has tiers (CXL, HBM); a lower number is faster."""
    hostname: str | None = None
    arch: str | None = None
    kernel: str | None = None
    os: str | None = None
    model: str | None = None
    """What the firmware or the CPU calls the machine, for people."""


def content_hash(data: bytes) -> str:
    """SHA-256 of bytes, cut to 32 hexadecimal digits (128 bits: no accident makes two alike)."""
    return hashlib.sha256(data).hexdigest()[:32]


def enc_hook(value: object) -> object:
    """How values of the core are written: a CpuSet as its list format."""
    if isinstance(value, CpuSet):
        return str(value)
    raise NotImplementedError(f"no JSON form for {type(value).__name__}")


def dec_hook(kind: type, value: object) -> object:
    """How values of the core are read. Raises ValueError, which msgspec reports with the path of the field."""
    if kind is CpuSet:
        if not isinstance(value, str):
            raise CpuSetTypeError(f"expected a list of ids such as '0-3,8', got {type(value).__name__}")
        # Most containers of a node name the same few sets; a long list is not worth keeping.
        return _parsed(value) if len(value) <= _SHORT else CpuSet.parse(value)
    raise NotImplementedError(f"no JSON form for {kind.__name__}")


_SHORT = 200
_parsed = lru_cache(maxsize=4096)(CpuSet.parse)


class CpuSetTypeError(ValueError):
    """A cpuset that is no text."""


_ENCODER = msgspec.json.Encoder(enc_hook=enc_hook, order="sorted")


def single_node(cpus: tuple[Cpu, ...], caches: tuple[Cache, ...] = ()) -> Topology:
    """The topology of a machine without NUMA: one NUMA node, 0, with every online CPU."""
    owned = tuple(msgspec.structs.replace(cpu, numa=0) if cpu.online else cpu for cpu in cpus)
    node = NumaNode(
        id=0, cpus=union([CpuSet([c.id]) for c in owned if c.online]), distances=(LOCAL_DISTANCE,)
    )
    return Topology(cpus=owned, nodes=(node,), caches=caches, numa=False)


def _check_ids(what: str, ids: list[int]) -> None:
    for left, right in pairwise(ids):
        if left >= right:
            raise TopologyError(f"{what} ids are not ascending and unique: {left} before {right}")
