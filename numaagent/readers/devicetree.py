"""Caches from the device tree, for POWER kernels that have none in sysfs (before 2.6.29, and some partitions).

Devicetree Specification 3.8 and LoPAPR: a core has `ibm,ppc-interrupt-server#s`, the hardware ids of its threads, sizes
of its first caches, and a handle of the next one. Numbers are big-endian words of 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from numaagent.config import Roots
from numaagent.readers.files import Source
from numacore.cpuset import CpuSet
from numacore.topology import Cache

HANDLES = ("phandle", "linux,phandle", "ibm,phandle")
NEXT = ("l2-cache", "next-level-cache")
DEEPEST = 5


def read(source: Source, roots: Roots, online: list[int]) -> tuple[Cache, ...]:
    """The caches of online CPUs; none where there is no such tree."""
    folder = f"{roots.proc}/device-tree/cpus"
    places = [f"{folder}/{name}" for name in sorted(source.folders(folder))]
    servers = {place: _words(source, f"{place}/ibm,ppc-interrupt-server#s") for place in places}
    if not any(servers.values()):
        return ()
    cpu_of = _hardware(source, roots, online)
    handles = {handle: place for place in places for handle in _first(source, place, HANDLES)}
    sizes: dict[tuple[int, str, str], int] = {}
    shared: dict[tuple[int, str, str], set[int]] = {}
    for core, ids in servers.items():
        cpus = {cpu_of[each] for each in ids if each in cpu_of}
        for level, place in _chain(source, core, handles) if cpus else ():
            for kind, size in _sizes(source, level, place):
                sizes[level, kind, place] = size
                shared.setdefault((level, kind, place), set()).update(cpus)
    return tuple(
        _cache(level, kind, size, shared[level, kind, place]) for (level, kind, place), size in sizes.items()
    )


def _cache(level: int, kind: str, size: int, cpus: set[int]) -> Cache:
    kinds: dict[str, Literal["Data", "Instruction", "Unified"]] = {
        "d": "Data",
        "i": "Instruction",
        "u": "Unified",
    }
    return Cache(level, kinds[kind], CpuSet(cpus), size)


def _hardware(source: Source, roots: Roots, online: list[int]) -> dict[int, int]:
    """CPUs by their hardware ids: the kernel numbers CPUs in its own order."""
    base = f"{roots.sysfs}/devices/system/cpu"
    ids = ((cpu, source.number(f"{base}/cpu{cpu}/physical_id")) for cpu in online)
    return {cpu if id_ is None else id_: cpu for cpu, id_ in ids}


def _chain(source: Source, core: str, handles: dict[int, str]) -> Iterator[tuple[int, str]]:
    """The core itself as level 1, and the caches behind it."""
    place: str | None = core
    for level in range(1, DEEPEST):
        if place is None:
            return
        yield level, place
        place = next((handles[handle] for handle in _first(source, place, NEXT) if handle in handles), None)


def _sizes(source: Source, level: int, place: str) -> Iterator[tuple[str, int]]:
    data = sum(_words(source, f"{place}/d-cache-size")[:1])
    instructions = sum(_words(source, f"{place}/i-cache-size")[:1])
    unified = level > 1 and (source.exists(f"{place}/cache-unified") or instructions in (0, data))
    for kind, size in [("u", data)] if unified else [("d", data), ("i", instructions)]:
        if size:
            yield kind, size


def _first(source: Source, place: str, names: tuple[str, ...]) -> list[int]:
    return next((found[:1] for name in names if (found := _words(source, f"{place}/{name}"))), [])


def _words(source: Source, path: str) -> list[int]:
    data = source.data(path) or b""
    return [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data) - len(data) % 4, 4)]
