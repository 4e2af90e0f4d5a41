"""CPU caches from sysfs (Documentation/ABI/testing/sysfs-devices-system-cpu, `cpuX/cache/indexY`)."""

from __future__ import annotations

from typing import Literal

from numaagent.readers.files import Source
from numaagent.readers.kerneltext import numbered, size
from numacore.cpuset import CpuSet
from numacore.topology import Cache

Kind = Literal["Data", "Instruction", "Unified"]
_KINDS: dict[str | None, Kind] = {"Data": "Data", "Instruction": "Instruction", "Unified": "Unified"}


def read(source: Source, base: str, online: list[int]) -> tuple[Cache, ...]:
    """Each cache once. One whose sharing nobody tells belongs to the CPU that lists it, unless another CPU claims it."""
    shared: dict[tuple[int, Kind, CpuSet], Cache] = {}
    lonely: list[Cache] = []
    for cpu in online:
        folder = f"{base}/cpu{cpu}/cache"
        for index in numbered("index", source.names(folder)):
            _one(source, f"{folder}/index{index}", cpu, shared, lonely)
    claimed = {(cache.level, cache.kind, cpu) for cache in shared.values() for cpu in cache.cpus}
    alone = [cache for cache in lonely if (cache.level, cache.kind, *cache.cpus) not in claimed]
    return tuple(sorted([*shared.values(), *alone], key=_order))


def _one(
    source: Source, folder: str, cpu: int, shared: dict[tuple[int, Kind, CpuSet], Cache], lonely: list[Cache]
) -> None:
    level = source.number(f"{folder}/level", required=True)
    kind = _KINDS.get(source.text(f"{folder}/type", required=True))
    if level is None or level < 1 or kind is None:
        return
    cpus = _sharers(source, folder, cpu)
    if cpus is None:
        lonely.append(Cache(level, kind, CpuSet([cpu]), _size(source, folder)))
    elif (level, kind, cpus) not in shared:
        shared[level, kind, cpus] = Cache(level, kind, cpus, _size(source, folder))


def _sharers(source: Source, folder: str, cpu: int) -> CpuSet | None:
    cpus = source.mask_or_ids(f"{folder}/shared_cpu_map", f"{folder}/shared_cpu_list")
    if not cpus or cpu in cpus:
        return cpus or None
    cpus = source.ids(f"{folder}/shared_cpu_list")
    if cpus is None or cpu not in cpus:
        source.fail(f"{folder}/shared_cpu_map", f"it leaves out CPU {cpu}, whose cache it describes")
        return None
    return cpus


def _size(source: Source, folder: str) -> int | None:
    text = source.text(f"{folder}/size")
    return (size(text) or None) if text else None


def _order(cache: Cache) -> tuple[int, str, int]:
    return cache.level, cache.kind, min(cache.cpus)
