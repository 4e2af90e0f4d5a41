"""CPUs, cores, sockets, caches, NUMA nodes and distances from sysfs.

Kernel: Documentation/admin-guide/cputopology.rst, Documentation/ABI/stable/sysfs-devices-node,
Documentation/ABI/testing/sysfs-devices-system-cpu. Every file there is optional on some architecture or age of kernel.
"""

from __future__ import annotations

import msgspec

from numaagent.config import Roots
from numaagent.readers import caches, cpuinfo, devicetree
from numaagent.readers.files import Files, Source
from numaagent.readers.kerneltext import numbered
from numacore import topology
from numacore.cpuset import EMPTY, CpuSet, union
from numacore.topology import UNREACHABLE, Cpu, NumaNode, Topology

LARGEST_LABEL = 1 << 31
NO_CLUSTER = 65_535
"""What x86 prints for a CPU whose cluster the firmware does not tell."""


def read(files: Files, roots: Roots) -> Topology:
    """The machine's topology; what is unknown is None, and its cause among the problems."""
    source = files.reader("topology")
    base = f"{roots.sysfs}/devices/system"
    cpus = _cpus(source, base, roots)
    online = [cpu.id for cpu in cpus if cpu.online]
    found = caches.read(source, f"{base}/cpu", online) or devicetree.read(source, roots, online)
    nodes = _nodes(source, base)
    if not nodes:
        return topology.single_node(cpus, found)
    cpus = tuple(_placed(source, base, nodes, cpu) for cpu in cpus)
    return Topology(cpus=cpus, nodes=_with_distances(source, base, nodes, cpus), caches=found)


def signature(files: Files, roots: Roots) -> tuple[str | None, ...]:
    """What changes when CPUs or NUMA nodes come or go; cheap enough to look at often."""
    source = Source(files, "topology")
    base = f"{roots.sysfs}/devices/system"
    names = ("cpu/online", "cpu/present", "node/online", "node/has_cpu")
    return tuple(source.text(f"{base}/{name}") for name in names)


def _cpus(source: Source, base: str, roots: Roots) -> tuple[Cpu, ...]:
    folders = CpuSet(numbered("cpu", source.names(f"{base}/cpu", required=True)))
    listed = source.ids(f"{base}/cpu/online")
    # Some architectures have folders for CPUs that are possible and not there.
    present = (source.ids(f"{base}/cpu/present") or folders) | (listed or EMPTY)
    if not present:
        present = CpuSet(cpuinfo.ids(source, roots)) or union(_nodes(source, base).values())
    online = CpuSet(cpu for cpu in present if _is_online(source, f"{base}/cpu/cpu{cpu}", cpu, listed))
    cpus = tuple(_cpu(source, f"{base}/cpu/cpu{cpu}", cpu, cpu in online) for cpu in present)
    cpus = cpuinfo.complete(source, roots, cpus)
    together = {cpu.id: _siblings(source, f"{base}/cpu/cpu{cpu.id}/topology") for cpu in cpus if cpu.online}
    return _with_cores(_with_sockets(cpus, source, base), together)


def _is_online(source: Source, folder: str, cpu: int, listed: CpuSet | None) -> bool:
    """CPUs that cannot go offline have no `online` file."""
    if listed is not None and cpu not in listed:
        return False
    return source.number(f"{folder}/online") != 0


def _cpu(source: Source, folder: str, cpu: int, online: bool) -> Cpu:
    if not online:
        return Cpu(id=cpu, online=False)

    def number(name: str) -> int | None:
        found = source.number(f"{folder}/topology/{name}")
        return found if found is not None and 0 <= found < LARGEST_LABEL else None

    cluster = number("cluster_id")
    return Cpu(
        id=cpu,
        socket=number("physical_package_id"),
        die=number("die_id"),
        cluster=None if cluster == NO_CLUSTER else cluster,
        core=number("core_id"),
    )


def _siblings(source: Source, folder: str) -> CpuSet | None:
    """The CPUs of one's core; `core_cpus` is the name since 5.3."""
    found = source.mask_or_ids(f"{folder}/core_cpus", f"{folder}/core_cpus_list")
    return found or source.mask_or_ids(f"{folder}/thread_siblings", f"{folder}/thread_siblings_list")


def _with_sockets(cpus: tuple[Cpu, ...], source: Source, base: str) -> tuple[Cpu, ...]:
    """Sockets that have no number but are told apart by `core_siblings` are numbered by their lowest CPU."""
    nameless = [cpu.id for cpu in cpus if cpu.online and cpu.socket is None]
    if len(nameless) < sum(cpu.online for cpu in cpus) or not nameless:
        return cpus
    groups: dict[CpuSet, int] = {}
    number: dict[int, int] = {}
    for cpu in nameless:
        folder = f"{base}/cpu/cpu{cpu}/topology"
        together = source.mask_or_ids(f"{folder}/package_cpus", f"{folder}/package_cpus_list")
        together = together or source.mask_or_ids(f"{folder}/core_siblings", f"{folder}/core_siblings_list")
        if together and cpu in together:
            number[cpu] = groups.setdefault(together, len(groups))
    if all(len(group) == 1 for group in groups):
        return cpus  # where the kernel knows nothing it prints each CPU alone
    return tuple(msgspec.structs.replace(cpu, socket=number.get(cpu.id)) for cpu in cpus)


def _with_cores(cpus: tuple[Cpu, ...], together: dict[int, CpuSet | None]) -> tuple[Cpu, ...]:
    """Adds the sibling group where core ids are missing or do not tell the cores apart.

    They repeat in each NUMA node of a socket, or count half cores, on some AMD machines, and name sockets on s390.
    """
    online = CpuSet(cpu.id for cpu in cpus if cpu.online)
    groups: dict[tuple[int | None, int | None, int | None], list[int]] = {}
    for cpu in cpus:
        if cpu.online:
            groups.setdefault((cpu.socket, cpu.die, cpu.core), []).append(cpu.id)
    same = {cpu: CpuSet(ids) for ids in groups.values() for cpu in ids}
    told = {cpu: group & online for cpu, group in together.items() if group and cpu in group}
    if all(told[cpu] == same[cpu] for cpu in told):
        return cpus
    return tuple(
        msgspec.structs.replace(cpu, sibling=min(told[cpu.id])) if cpu.online and cpu.id in told else cpu
        for cpu in cpus
    )


def _nodes(source: Source, base: str) -> dict[int, CpuSet]:
    """Every NUMA node with the CPUs that the kernel lists for it, offline ones possibly among them."""
    folder = f"{base}/node"
    return {
        node: _node_cpus(source, f"{folder}/node{node}") for node in numbered("node", source.names(folder))
    }


def _node_cpus(source: Source, folder: str) -> CpuSet:
    listed = source.mask_or_ids(f"{folder}/cpumap", f"{folder}/cpulist")
    return CpuSet(numbered("cpu", source.names(folder))) if listed is None else listed


def _placed(source: Source, base: str, nodes: dict[int, CpuSet], cpu: Cpu) -> Cpu:
    """The CPU with its NUMA node. Offline CPUs leave the node's map, their links in the folders stay."""
    numa = next((node for node, cpus in nodes.items() if cpu.id in cpus), None)
    if numa is None:
        linked = numbered("node", source.names(f"{base}/cpu/cpu{cpu.id}"))
        numa = next((node for node in linked if node in nodes), None)
    if numa is None:
        links = (node for node in nodes if source.link(f"{base}/node/node{node}/cpu{cpu.id}"))
        numa = next(links, None)
    return msgspec.structs.replace(cpu, numa=numa)


def _with_distances(
    source: Source, base: str, nodes: dict[int, CpuSet], cpus: tuple[Cpu, ...]
) -> tuple[NumaNode, ...]:
    by_node = {node: [cpu.id for cpu in cpus if cpu.numa == node and cpu.online] for node in nodes}
    return tuple(
        NumaNode(
            node, CpuSet(by_node[node]), _distances(source, f"{base}/node/node{node}/distance", len(nodes))
        )
        for node in nodes
    )


def _distances(source: Source, path: str, count: int) -> tuple[int, ...] | None:
    text = source.text(path, required=True)
    if text is None:
        return None
    fields = text.split()
    if not all(field.isdecimal() for field in fields):
        source.fail(path, f"{text[:40]!r} is not a row of distances")
        return None
    if any(int(field) > UNREACHABLE for field in fields):
        source.fail(path, f"a distance is larger than {UNREACHABLE}: not used")
        return None
    if len(fields) != count:
        source.fail(path, f"it has {len(fields)} distances, the machine has {count} NUMA nodes: not used")
        return None
    return tuple(int(field) for field in fields)
