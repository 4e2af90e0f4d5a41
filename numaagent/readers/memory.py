"""Memory, huge pages and allocation counters of each NUMA node.

Kernel: Documentation/ABI/stable/sysfs-devices-node, Documentation/admin-guide/numastat.rst,
Documentation/ABI/testing/sysfs-kernel-mm-hugepages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from numaagent.config import Roots
from numaagent.readers import kerneltext
from numaagent.readers.files import Files, Source
from numacore.topology import HugePages, Topology
from numacore.usage import MemoryUse

COUNTERS = ("numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node")
Fetch = Callable[[str], bytes | None]
"""Gives a file's content, or None."""
_POOL = re.compile(r"hugepages-(\d+)kB", re.ASCII)
_FIELD = re.compile(
    rb"\b(MemTotal|MemFree|MemUsed|FilePages|Cached|AnonPages|HugePages_Total|HugePages_Free):\s*(\d+ *[A-Za-z]*)"
)


class Pool(msgspec.Struct, frozen=True):
    """Huge pages of one size: where their counts are."""

    page_size: int
    total: str
    free: str


class Place(msgspec.Struct, frozen=True):
    """Where one NUMA node's memory is told. `default_page`: size of the huge pages that meminfo counts."""

    node: int
    meminfo: str
    numastat: str
    pools: tuple[Pool, ...]
    default_page: int | None

    def files(self) -> Iterator[str]:
        """Every file that is read."""
        yield from (self.meminfo, self.numastat)
        for pool in self.pools:
            yield from (pool.total, pool.free)


def places(files: Files, roots: Roots, topology: Topology) -> tuple[Place, ...]:
    """Where the memory of each NUMA node is told; a machine with only one may tell it in `/proc/meminfo`."""
    source = files.reader("memory-places")
    only = len(topology.nodes) == 1
    return tuple(_place(source, roots, node, only) for node in topology.numa_ids)


def use(fetch: Fetch, place: Place) -> MemoryUse:
    """Memory of one NUMA node now."""
    table = _table(fetch(place.meminfo) or b"")
    total, free, used = table.get("MemTotal"), table.get("MemFree"), table.get("MemUsed")
    if used is None and total is not None and free is not None:
        used = max(total - free, 0)
    return MemoryUse(
        total=total,
        free=free,
        used=used,
        file=table.get("FilePages", table.get("Cached")),
        anon=table.get("AnonPages"),
        hugepages=_pools(fetch, place, table),
        counters=_counters(fetch(place.numastat) or b""),
    )


def _place(source: Source, roots: Roots, node: int, only: bool) -> Place:
    folder = f"{roots.sysfs}/devices/system/node/node{node}"
    meminfo = f"{folder}/meminfo"
    if only and not source.exists(meminfo):
        meminfo = f"{roots.proc}/meminfo"
    found = _listed(source, f"{folder}/hugepages")
    if not found and only:
        found = _listed(source, f"{roots.sysfs}/kernel/mm/hugepages")
    machine = kerneltext.meminfo(source.text(f"{roots.proc}/meminfo") or "")
    return Place(node, meminfo, f"{folder}/numastat", found, machine.get("Hugepagesize"))


def _listed(source: Source, folder: str) -> tuple[Pool, ...]:
    sizes = sorted(int(match[1]) for name in source.names(folder) if (match := _POOL.fullmatch(name)))
    names = ((kb, f"{folder}/hugepages-{kb}kB") for kb in sizes)
    return tuple(Pool(kb * 1024, f"{name}/nr_hugepages", f"{name}/free_hugepages") for kb, name in names)


def _pools(fetch: Fetch, place: Place, table: dict[str, int]) -> tuple[HugePages, ...]:
    """Kernels before 2.6.32 count only pages of the default size, in meminfo."""
    if place.pools:
        return tuple(
            HugePages(pool.page_size, _count(fetch(pool.total)), _count(fetch(pool.free)))
            for pool in place.pools
        )
    if place.default_page is None or "HugePages_Total" not in table:
        return ()
    return (HugePages(place.default_page, table["HugePages_Total"], table.get("HugePages_Free")),)


def _table(data: bytes) -> dict[str, int]:
    found = {}
    for name, value in _FIELD.findall(data):
        amount = kerneltext.size(value.decode())
        if amount is not None:
            found[name.decode()] = amount
    return found


def _counters(data: bytes) -> dict[str, int]:
    fields = data.split()
    known = dict(zip(fields[::2], fields[1::2], strict=False))
    return {name: count for name in COUNTERS if (count := _count(known.get(name.encode()))) is not None}


def _count(data: bytes | None) -> int | None:
    data = (data or b"").strip(b"\0 \t\r\n")
    return int(data) if data.isdigit() and len(data) < 19 else None
