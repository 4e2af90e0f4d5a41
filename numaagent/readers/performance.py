"""Latency and bandwidth that the firmware promises (HMAT), and memory tiers.

Kernel: Documentation/admin-guide/mm/numaperf.rst, Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers.
"""

from __future__ import annotations

from numaagent.config import Roots
from numaagent.readers.files import Files, Source
from numaagent.readers.kerneltext import numbered
from numacore.topology import Performance, Topology


def read(files: Files, roots: Roots, topology: Topology) -> tuple[tuple[Performance, ...], dict[int, int]]:
    """(performance of each NUMA node and access class, memory tier of each NUMA node)."""
    source = files.reader("performance")
    base = f"{roots.sysfs}/devices/system/node"
    found = (_performance(source, base, node, access) for node in topology.numa_ids for access in (0, 1))
    return tuple(each for each in found if each), _tiers(source, roots, topology)


def _performance(source: Source, base: str, node: int, access: int) -> Performance | None:
    folder = f"{base}/node{node}/access{access}/initiators"
    if not source.exists(folder):
        return None

    def value(name: str) -> int | None:
        return source.number(f"{folder}/{name}") or None  # 0 = the table has no entry

    return Performance(
        node=node,
        access=access,
        initiators=tuple(numbered("node", source.names(folder))),
        read_latency=value("read_latency"),
        write_latency=value("write_latency"),
        read_bandwidth=value("read_bandwidth"),
        write_bandwidth=value("write_bandwidth"),
    )


def _tiers(source: Source, roots: Roots, topology: Topology) -> dict[int, int]:
    folder = f"{roots.sysfs}/devices/virtual/memory_tiering"
    tiers: dict[int, int] = {}
    for tier in numbered("memory_tier", source.names(folder)):
        for node in source.ids(f"{folder}/memory_tier{tier}/nodelist") or ():
            if node in topology.numa_ids:
                tiers[node] = tier
    return tiers
