"""Memory, huge pages and allocation counters of each NUMA node.

Kernel: Documentation/ABI/stable/sysfs-devices-node, Documentation/admin-guide/numastat.rst,
Documentation/ABI/testing/sysfs-kernel-mm-hugepages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from numaagent.config import Roots
from numaagent.readers import columns, kerneltext
from numaagent.readers.files import Files, Source
from numacore.topology import HugePages, Topology
from numacore.usage import MemoryUse

COUNTERS = ("numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node")
Fetch = Callable[[str], bytes | None]
"""Gives a file's content, or None."""
_POOL = re.compile(r"hugepages-(\d+)kB", re.ASCII)
FIELDS = tuple(
    (name, f"{before}{name}:".encode())
    for before, name in (
        ("", "MemTotal"),
        ("", "MemFree"),
        ("", "MemUsed"),
        ("", "FilePages"),
        ("\n", "Cached"),
        ("", "AnonPages"),
        ("", "HugePages_Total"),
        ("", "HugePages_Free"),
    )
)
"""Fields with what stands before them; `Cached` must not be found in `SwapCached`."""


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
            HugePages(pool.page_size, columns.whole(fetch(pool.total)), columns.whole(fetch(pool.free)))
            for pool in place.pools
        )
    if place.default_page is None or "HugePages_Total" not in table:
        return ()
    return (HugePages(place.default_page, table["HugePages_Total"], table.get("HugePages_Free")),)


def _table(data: bytes) -> dict[str, int]:
    """The fields of a `meminfo` that are used, bytes; a search for each beats splitting forty lines."""
    found = {}
    for name, key in FIELDS:
        start = data.find(key)
        if start >= 0:
            amount = _amount(data[start + len(key) : data.find(b"\n", start + 1)])
            if amount is not None:
                found[name] = amount
    return found


def _amount(text: bytes) -> int | None:
    fields = text.split()
    if len(fields) == 2 and fields[1] == b"kB" and fields[0].isdigit() and len(fields[0]) < 16:
        return int(fields[0]) * 1024
    return kerneltext.size(text.decode(errors="replace"))


def _counters(data: bytes) -> dict[str, int]:
    fields = data.split()
    known = dict(zip(fields[::2], fields[1::2], strict=False))
    return {
        name: count for name in COUNTERS if (count := columns.whole(known.get(name.encode()))) is not None
    }
