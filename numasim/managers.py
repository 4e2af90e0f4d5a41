"""A node's resources in the books of the kubelet's managers: what there is, who has what, how much is left."""

from __future__ import annotations

from numacore.cpuset import CpuSet
from numacore.topology import HugePages
from numasim import placement
from numasim.kubelet import MIB
from numasim.kubeletstate import Block, Entries, NodeTable, Table
from numasim.node import Node


def cpu_entries(node: Node) -> Entries:
    """Exclusive CPUs by pod uid and container name."""
    found: dict[str, dict[str, CpuSet]] = {}
    for each in node.containers():
        if each.place.cpus:
            found.setdefault(each.pod.uid, {})[each.want.name] = each.place.cpus
    return found


def memory_entries(node: Node) -> dict[str, dict[str, tuple[Block, ...]]]:
    """Memory blocks by pod uid and container name."""
    found: dict[str, dict[str, tuple[Block, ...]]] = {}
    for each in node.containers():
        if each.place.blocks:
            found.setdefault(each.pod.uid, {})[each.want.name] = each.place.blocks
    return found


def memory_tables(node: Node) -> dict[int, NodeTable]:
    """Memory of every NUMA node; empty without the policy Static."""
    if node.settings.memory_policy != "Static":
        return {}
    return {numa: _table(node, numa) for numa in node.topology.numa_ids}


def _table(node: Node, numa: int) -> NodeTable:
    machine, settings = node.spec.machine, node.settings
    blocks = [block for each in node.containers() for block in each.place.blocks if block.numa == (numa,)]
    given = sum(block.size for block in blocks if block.kind == "memory")
    room = placement.allocatable_memory(machine, settings, numa)
    total, kept = machine.attributes.memory.get(numa) or 0, settings.reserved_memory.get(numa, 0) * MIB
    tables = {"memory": Table(total, kept, room, given, room - given)}
    for pages in machine.attributes.hugepages.get(numa, ()):
        name, size = placement.huge_name(pages.page_size), pages.page_size * (pages.total or 0)
        used = sum(block.size for block in blocks if block.kind == name)
        tables[name] = Table(size, 0, size, used, size - used)
    return NodeTable(len(blocks), tables, (numa,))


def hugepages(node: Node) -> dict[int, tuple[HugePages, ...]]:
    """Huge pages by NUMA node, with those that containers use taken off the free ones."""
    used: dict[tuple[int, int], int] = {}
    for each in node.containers():
        for numa, sizes in each.place.huge.items():
            for size, pages in sizes.items():
                used[numa, size] = used.get((numa, size), 0) + pages
    return {
        numa: tuple(
            HugePages(row.page_size, row.total, (row.total or 0) - used.get((numa, row.page_size), 0))
            for row in rows
        )
        for numa, rows in node.spec.machine.attributes.hugepages.items()
    }
