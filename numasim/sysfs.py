"""Writes `/sys` of a machine as its kernel would: CPUs, caches, NUMA nodes, HMAT, memory tiers, huge pages, PCI, DMI.

What changes while it runs (meminfo, numastat) is another room's: `usage`.
"""

from __future__ import annotations

from itertools import groupby

from numacore.cpuset import CpuSet
from numacore.topology import Cache, Cpu, NumaNode, Performance, Topology
from numasim import sysdevices
from numasim.files import Tree, mask
from numasim.machine import Machine

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
CACHE_NAMES = {"Data": 0, "Instruction": 1}


def write(tree: Tree, machine: Machine) -> None:
    """Writes everything of `/sys` that stays as it is."""
    topology = machine.topology
    _write_lists(tree, machine)
    _write_cpus(tree, topology)
    if topology.numa:
        _write_nodes(tree, machine)
        _write_tiers(tree, machine)
    _write_hugepages(tree, machine)
    for device in machine.attributes.devices:
        sysdevices.write(tree, device, topology)
    _write_model(tree, machine)


def possible(topology: Topology) -> int:
    """How many CPUs masks have room for."""
    return topology.cpus[-1].id + 1


def _write_lists(tree: Tree, machine: Machine) -> None:
    topology = machine.topology
    present = topology.online | topology.offline
    threads = topology.threads_per_core() or 1
    tree.put_all(
        CPU,
        {
            "online": topology.online,
            "offline": topology.offline,
            "present": present,
            "possible": present,
            "kernel_max": 8191,
            "isolated": "",
        },
    )
    tree.put_all(
        f"{CPU}/smt",
        {"active": int(threads > 1), "control": "on" if threads > 1 else "notsupported"},
    )
    for kind, cpus in machine.core_kinds.items():
        tree.put_all(f"sys/devices/{kind}", {"cpus": cpus})


def _write_cpus(tree: Tree, topology: Topology) -> None:
    width = possible(topology)
    groups = _Groups(topology)
    caches = _caches_by_cpu(topology)
    for cpu in topology.cpus:
        tree.folder(f"{CPU}/cpu{cpu.id}")
        if cpu.id:
            tree.put_all(f"{CPU}/cpu{cpu.id}", {"online": int(cpu.online)})
        if cpu.online:
            tree.put_all(f"{CPU}/cpu{cpu.id}/topology", groups.files(cpu, width))
            for index, (number, cache) in enumerate(caches.get(cpu.id, [])):
                tree.put_all(f"{CPU}/cpu{cpu.id}/cache/index{index}", _cache_files(cache, number, width))


class _Groups:
    """CPUs that share a core, die, cluster or socket."""

    def __init__(self, topology: Topology) -> None:
        self._members: dict[tuple[object, ...], CpuSet] = {}
        online = [cpu for cpu in topology.cpus if cpu.online]
        for key_of in (self._core, self._cluster, self._die, self._socket):
            for key, cpus in groupby(sorted(online, key=key_of), key=key_of):
                self._members[key] = CpuSet(cpu.id for cpu in cpus)

    def files(self, cpu: Cpu, width: int) -> dict[str, object]:
        """Files of `cpuN/topology`."""
        core, socket = self._members[self._core(cpu)], self._members[self._socket(cpu)]
        found: dict[str, object] = {
            "core_id": cpu.core,
            "physical_package_id": cpu.socket,
            "thread_siblings": mask(core, width),
            "thread_siblings_list": core,
            "core_cpus_list": core,
            "core_siblings": mask(socket, width),
            "core_siblings_list": socket,
            "package_cpus_list": socket,
        }
        if cpu.die is not None:
            found |= {"die_id": cpu.die, "die_cpus_list": self._members[self._die(cpu)]}
        if cpu.cluster is not None:
            found |= {"cluster_id": cpu.cluster, "cluster_cpus_list": self._members[self._cluster(cpu)]}
        return found

    @staticmethod
    def _core(cpu: Cpu) -> tuple[int, ...]:
        return (0, cpu.socket or 0, cpu.core or 0)

    @staticmethod
    def _cluster(cpu: Cpu) -> tuple[int, ...]:
        return (1, cpu.socket or 0, -1 if cpu.cluster is None else cpu.cluster)

    @staticmethod
    def _die(cpu: Cpu) -> tuple[int, ...]:
        return (2, cpu.socket or 0, cpu.die or 0)

    @staticmethod
    def _socket(cpu: Cpu) -> tuple[int, ...]:
        return (3, cpu.socket or 0)


def _caches_by_cpu(topology: Topology) -> dict[int, list[tuple[int, Cache]]]:
    numbers: dict[tuple[int, str], int] = {}
    found: dict[int, list[tuple[int, Cache]]] = {}
    for cache in topology.caches:
        kind = (cache.level, cache.kind)
        numbers[kind] = numbers.get(kind, -1) + 1
        for cpu in cache.cpus:
            found.setdefault(cpu, []).append((numbers[kind], cache))
    return found


def _cache_files(cache: Cache, number: int, width: int) -> dict[str, object]:
    size = cache.size or 0
    ways = 16 if cache.level > 1 else 8
    return {
        "level": cache.level,
        "type": cache.kind,
        "size": f"{size // 1024}K",
        "id": number,
        "coherency_line_size": 64,
        "ways_of_associativity": ways,
        "number_of_sets": size // (64 * ways),
        "shared_cpu_list": cache.cpus,
        "shared_cpu_map": mask(cache.cpus, width),
    }


def _write_nodes(tree: Tree, machine: Machine) -> None:
    topology, memory = machine.topology, machine.attributes.memory
    ids = CpuSet(topology.numa_ids)
    with_memory = CpuSet(node for node, size in memory.items() if size)
    tree.put_all(
        NODE,
        {
            "online": ids,
            "possible": ids,
            "has_cpu": CpuSet(node.id for node in topology.nodes if node.cpus),
            "has_memory": with_memory,
            "has_normal_memory": with_memory,
            "has_generic_initiator": "",
        },
    )
    for node in topology.nodes:
        _write_node(tree, node, possible(topology))
    for entry in machine.attributes.performance:
        _write_performance(tree, entry)


def _write_node(tree: Tree, node: NumaNode, width: int) -> None:
    folder = f"{NODE}/node{node.id}"
    tree.put_all(folder, {"cpulist": node.cpus, "cpumap": mask(node.cpus, width)})
    if node.distances is not None:
        tree.put_all(folder, {"distance": " ".join(map(str, node.distances))})
    for cpu in node.cpus:
        tree.link(f"{folder}/cpu{cpu}", f"../../cpu/cpu{cpu}")


def _write_performance(tree: Tree, entry: Performance) -> None:
    access = f"{NODE}/node{entry.node}/access{entry.access}"
    tree.put_all(
        f"{access}/initiators",
        {
            "read_latency": entry.read_latency,
            "write_latency": entry.write_latency,
            "read_bandwidth": entry.read_bandwidth,
            "write_bandwidth": entry.write_bandwidth,
        },
    )
    for near in entry.initiators:
        tree.link(f"{access}/initiators/node{near}", f"../../../node{near}")
        tree.link(
            f"{NODE}/node{near}/access{entry.access}/targets/node{entry.node}", f"../../../node{entry.node}"
        )


def _write_tiers(tree: Tree, machine: Machine) -> None:
    tiers: dict[int, list[int]] = {}
    for node, tier in machine.attributes.memory_tiers.items():
        tiers.setdefault(tier, []).append(node)
    for tier, nodes in tiers.items():
        tree.put_all(f"sys/devices/virtual/memory_tiering/memory_tier{tier}", {"nodelist": CpuSet(nodes)})


def _write_hugepages(tree: Tree, machine: Machine) -> None:
    totals: dict[int, list[int]] = {}
    for node, sizes in machine.attributes.hugepages.items():
        for pages in sizes:
            total, free = totals.setdefault(pages.page_size, [0, 0])
            totals[pages.page_size] = [total + (pages.total or 0), free + (pages.free or 0)]
            if machine.topology.numa:
                folder = f"{NODE}/node{node}/hugepages/hugepages-{pages.page_size // 1024}kB"
                tree.put_all(folder, {"nr_hugepages": pages.total, "surplus_hugepages": 0})
    for size, (total, free) in totals.items():
        tree.put_all(
            f"sys/kernel/mm/hugepages/hugepages-{size // 1024}kB",
            {"nr_hugepages": total, "free_hugepages": free, "resv_hugepages": 0, "surplus_hugepages": 0},
        )


def _write_model(tree: Tree, machine: Machine) -> None:
    model = machine.attributes.model or ""
    if machine.attributes.arch == "ppc64le":
        tree.put("proc/device-tree/model", model + "\0")
    else:
        vendor, _, product = model.partition(" ")
        tree.put_all("sys/class/dmi/id", {"product_name": product, "sys_vendor": vendor})
