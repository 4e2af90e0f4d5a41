"""Where a pod's exclusive CPUs, memory and devices go: a plain reading of the kubelet's managers.

It is good enough to make believable nodes and no more; what a kubelet would really decide is the engine's to tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

import msgspec

from numacore.cpuset import EMPTY, CpuSet, union
from numacore.topology import Device, Topology
from numacore.workload import DeviceClaim
from numasim.kubelet import MIB, Settings
from numasim.kubeletstate import Block
from numasim.machine import Machine
from numasim.workload import Pod, Want

Mask = tuple[int, ...]
LARGEST_MASK = 4
"""NUMA nodes of one pod at most; more would only try combinations in vain."""


class Free(msgspec.Struct):
    """What a node still has to give."""

    cpus: CpuSet
    memory: dict[int, int]
    """Bytes by NUMA node."""
    huge: dict[int, dict[int, int]]
    """Pages by NUMA node and size."""
    devices: list[Device]


class Place(msgspec.Struct, frozen=True):
    """What one container got."""

    cpus: CpuSet = EMPTY
    mask: Mask = ()
    """NUMA nodes that the topology manager chose; empty = no choice was made."""
    blocks: tuple[Block, ...] = ()
    claims: tuple[DeviceClaim, ...] = ()
    devices: tuple[Device, ...] = ()
    huge: dict[int, dict[int, int]] = {}
    """Huge pages by NUMA node and size."""


def everything(machine: Machine, settings: Settings, cpus: CpuSet) -> Free:
    """What a node has before anything runs. `cpus`: those that may become exclusive."""
    attributes = machine.attributes
    huge = {
        node: {row.page_size: row.total for row in rows if row.total}
        for node, rows in attributes.hugepages.items()
        if any(row.total for row in rows)
    }
    memory = {node: allocatable_memory(machine, settings, node) for node in machine.topology.numa_ids}
    devices = [device for device in attributes.devices if device.kind in ("accelerator", "network")]
    return Free(cpus=cpus, memory=memory, huge=huge, devices=devices)


def allocatable_memory(machine: Machine, settings: Settings, node: int) -> int:
    """Bytes of a NUMA node that the memory manager may give out: no huge pages, nothing kept for the system."""
    apart = sum(row.page_size * (row.total or 0) for row in machine.attributes.hugepages.get(node, ()))
    return (machine.attributes.memory.get(node) or 0) - apart - settings.reserved_memory.get(node, 0) * MIB


def place(
    topology: Topology, settings: Settings, free: Free, pod: Pod, resources: Mapping[str, str]
) -> list[Place] | None:
    """A place for each container of a pod, taken out of `free`; None = the kubelet would refuse the pod.

    `resources`: resource name of each kind of device.
    """
    mask = _mask(topology, settings, free, pod)
    if mask is None:
        return None
    return [_give(topology, settings, free, pod, want, mask, resources) for want in pod.containers]


def whole_cpus(settings: Settings, pod: Pod, want: Want) -> int:
    """Exclusive CPUs that the static policy owes a container."""
    whole = settings.cpu_policy == "static" and pod.guaranteed and want.cpu >= 1 and want.cpu == int(want.cpu)
    return int(want.cpu) if whole else 0


def take(topology: Topology, pool: CpuSet, count: int) -> CpuSet:
    """CPUs out of a pool: whole cores before single threads, and a NUMA node with little left before others."""
    left = sorted(
        (n for n in topology.nodes if n.cpus & pool), key=lambda n: (len(n.cpus & pool) < count, n.id)
    )
    cores = sorted(cpus.bits for _, cpus in topology.cores())
    chosen: list[int] = []
    for node in left:
        here = node.cpus & pool
        inside = [CpuSet.of_bits(bits) for bits in cores if bits & node.cpus.bits]
        whole = [cpu for core in inside if core <= here for cpu in core]
        loose = [cpu for cpu in here if cpu not in set(whole)]
        chosen += whole + loose if count > 1 else loose + whole
        if len(chosen) >= count:
            break
    return CpuSet(chosen[:count])


def _mask(topology: Topology, settings: Settings, free: Free, pod: Pod) -> Mask | None:
    """NUMA nodes for a pod; () = anywhere, None = refused."""
    cpus = sum(whole_cpus(settings, pod, want) for want in pod.containers)
    policy = settings.topology_policy
    if policy == "none" or not (cpus or _asks_for_more(pod)):
        return (
            () if cpus <= len(free.cpus) and _devices_fit(free, pod, None) and _huge_fits(free, pod) else None
        )
    fitting = _fitting(topology, settings, free, pod, cpus)
    if policy == "best-effort":
        return next(fitting, None)
    least = 1 if policy == "single-numa-node" else _least(topology, settings, cpus)
    return next((mask for mask in fitting if len(mask) == least), None)


def _asks_for_more(pod: Pod) -> bool:
    return any(want.devices or want.huge for want in pod.containers)


def _fitting(topology: Topology, settings: Settings, free: Free, pod: Pod, cpus: int) -> Iterator[Mask]:
    nodes = [node for node in topology.nodes if node.cpus]
    sizes = range(1, min(len(nodes), LARGEST_MASK) + 1)
    for mask in (mask for size in sizes for mask in combinations(nodes, size)):
        ids = tuple(node.id for node in mask)
        room = len(union(node.cpus for node in mask) & free.cpus)
        if room >= cpus and _devices_fit(free, pod, ids) and _memory_fits(settings, free, pod, ids):
            yield ids


def _least(topology: Topology, settings: Settings, cpus: int) -> int:
    sizes = sorted((len(node.cpus - settings.reserved) for node in topology.nodes), reverse=True)
    total = 0
    for count, size in enumerate(sizes, start=1):
        total += size
        if total >= cpus:
            return count
    return len(sizes)


def _devices_fit(free: Free, pod: Pod, mask: Mask | None) -> bool:
    wanted = [(kind, count) for want in pod.containers for kind, count in want.devices.items()]
    return all(
        sum(d.kind == kind and (mask is None or d.numa is None or d.numa in mask) for d in free.devices)
        >= count
        for kind, count in wanted
    )


def _memory_fits(settings: Settings, free: Free, pod: Pod, mask: Mask) -> bool:
    if settings.memory_policy != "Static" or not pod.guaranteed:
        return all(any(_huge(free, node, want) for node in mask) for want in pod.containers if want.huge)
    # A group of NUMA nodes would bind each of them for everybody else too; this simulator avoids groups.
    return (
        len(mask) == 1
        and sum(want.memory for want in pod.containers) <= free.memory.get(mask[0], 0)
        and all(_huge(free, mask[0], want) for want in pod.containers)
    )


def _huge_fits(free: Free, pod: Pod) -> bool:
    return all(any(_huge(free, node, want) for node in free.huge) for want in pod.containers if want.huge)


def _huge(free: Free, node: int, want: Want) -> bool:
    have = free.huge.get(node, {})
    return all(have.get(size, 0) >= pages for size, pages in want.huge.items())


def _give(
    topology: Topology,
    settings: Settings,
    free: Free,
    pod: Pod,
    want: Want,
    mask: Mask,
    resources: Mapping[str, str],
) -> Place:
    count = whole_cpus(settings, pod, want)
    inside = union(node.cpus for node in topology.nodes if node.id in mask) if mask else free.cpus
    cpus = take(topology, free.cpus & inside, count)
    free.cpus -= cpus
    devices = tuple(_take_devices(free, want, mask))
    return Place(
        cpus=cpus,
        mask=mask,
        blocks=_take_memory(settings, free, pod, want, mask),
        huge=_take_huge(free, want, mask),
        claims=tuple(_claims(devices, resources)),
        devices=devices,
    )


def _take_devices(free: Free, want: Want, mask: Mask) -> Iterator[Device]:
    for kind, count in want.devices.items():
        fitting = [
            d for d in free.devices if d.kind == kind and (not mask or d.numa is None or d.numa in mask)
        ]
        for device in fitting[:count]:
            free.devices.remove(device)
            yield device


def _claims(devices: Iterable[Device], resources: Mapping[str, str]) -> Iterator[DeviceClaim]:
    """As the kubelet's socket lists them: an entry for each resource and NUMA node."""
    groups: dict[tuple[str, int | None], list[str]] = {}
    for device in devices:
        groups.setdefault((resources[device.kind], device.numa), []).append(device.address)
    for (resource, numa), ids in groups.items():
        yield DeviceClaim(resource, tuple(ids), () if numa is None else (numa,))


def _take_huge(free: Free, want: Want, mask: Mask) -> dict[int, dict[int, int]]:
    taken: dict[int, dict[int, int]] = {}
    for size, pages in want.huge.items():
        home = next(node for node in mask or free.huge if free.huge.get(node, {}).get(size, 0) >= pages)
        free.huge[home][size] -= pages
        taken.setdefault(home, {})[size] = pages
    return taken


def give_back(free: Free, place: Place) -> None:
    """Returns what a container had."""
    free.cpus |= place.cpus
    free.devices = sorted([*free.devices, *place.devices], key=lambda device: device.address)
    for block in place.blocks:
        if block.kind == "memory":
            free.memory[block.numa[0]] += block.size
    for node, sizes in place.huge.items():
        for size, pages in sizes.items():
            free.huge[node][size] += pages


def _take_memory(settings: Settings, free: Free, pod: Pod, want: Want, mask: Mask) -> tuple[Block, ...]:
    if settings.memory_policy != "Static" or not pod.guaranteed or not mask:
        return ()
    free.memory[mask[0]] -= want.memory
    kinds = [("memory", want.memory), *((huge_name(s), s * n) for s, n in want.huge.items())]
    return tuple(Block(mask, kind, size) for kind, size in kinds)


def huge_name(size: int) -> str:
    """Resource name of huge pages of a size in bytes."""
    return (
        f"hugepages-{size >> 30}Gi"
        if size >= 1 << 30
        else f"hugepages-{size >> 20}Mi"
        if size >= 1 << 20
        else f"hugepages-{size >> 10}Ki"
    )
