"""What moves on a simulated node, as the core's values: CPU times, memory of NUMA nodes, use of containers.

The trees print these values and the fleet sends them, so an exporter's reading of a tree can be held against them.
"""

from __future__ import annotations

from collections.abc import Sequence

from numacore.topology import HugePages
from numacore.usage import ContainerUse, CpuTimes, MemoryUse
from numasim import managers
from numasim.node import Node
from numasim.running import Running

HZ = 100
ANON = 0.8
"""Share of a container's pages that are anonymous; the rest is page cache."""


def elapsed_ticks(node: Node) -> int:
    """Ticks since the node started."""
    return int((node.uptime + node.now) * HZ)


def cpu_times(node: Node) -> CpuTimes:
    """Ticks of every online CPU."""
    busy = tuple(int(seconds * HZ) for seconds in node.meter.busy(node.now))
    elapsed = elapsed_ticks(node)
    return CpuTimes(node.topology.online, busy, tuple(max(0, elapsed - ticks) for ticks in busy))


def pages_of(node: Node, each: Running) -> dict[int, int]:
    """Pages of a container by NUMA node."""
    size = each.want.memory * each.want.fill.at(node.now) / node.spec.machine.page_size
    return {numa: int(size * share.at(node.now)) for numa, share in each.pages.items()}


def anonymous(pages: int) -> int:
    """How many of a container's pages are anonymous."""
    return int(pages * ANON)


def containers(node: Node, running: Sequence[Running]) -> ContainerUse:
    """CPU time and memory of these containers."""
    size = node.spec.machine.page_size
    pages = [pages_of(node, each) for each in running]
    return ContainerUse(
        cpu_time=tuple(int(each.account.seconds(node.now) * 1e6) for each in running),
        memory=tuple(sum(each.values()) * size for each in pages),
        pages={
            numa: tuple(each.get(numa, 0) * size for each in pages) for numa in node.spec.machine.with_memory
        },
    )


def memory(node: Node) -> dict[int, MemoryUse]:
    """Memory of every NUMA node."""
    anon = dict.fromkeys(node.topology.numa_ids, 0)
    file = dict(anon)
    for each in node.containers():
        for numa, pages in pages_of(node, each).items():
            anon[numa] += anonymous(pages)
            file[numa] += pages - anonymous(pages)
    huge = managers.hugepages(node)
    return {numa: _memory(node, numa, anon[numa], file[numa], huge.get(numa, ())) for numa in anon}


def _memory(node: Node, numa: int, anon: int, file: int, huge: tuple[HugePages, ...]) -> MemoryUse:
    """Containers' pages, what the system itself takes, and the huge pages set aside."""
    size = node.spec.machine.page_size
    total = node.spec.machine.attributes.memory.get(numa) or 0
    anon, file = anon + total // 100 // size, file + total // 40 // size
    apart = sum(pages.page_size * (pages.total or 0) for pages in huge)
    used = min(total * 199 // 200, (anon + file) * size + apart + total // 100) // size * size
    return MemoryUse(
        total=total,
        free=total - used,
        used=used,
        file=file * size,
        anon=anon * size,
        hugepages=huge,
        counters=_counters(node, numa, total) if node.topology.numa else {},
    )


def _counters(node: Node, numa: int, total: int) -> dict[str, int]:
    """Allocations since boot: they go with the memory and with time; few go astray."""
    hit = int(node.uptime + node.now) * (total // (32 << 20))
    away = hit // (40 + 7 * (numa % 5))
    return {
        "numa_hit": hit,
        "numa_miss": away // 9,
        "numa_foreign": away // 11,
        "interleave_hit": 4000 + numa if total else 0,
        "local_node": hit - away,
        "other_node": away,
    }
