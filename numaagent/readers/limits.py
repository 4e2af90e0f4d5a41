"""Where a group may run and how much it may use, from its cgroup files of either version."""

from __future__ import annotations

import math

import msgspec

from numaagent.readers import groups
from numaagent.readers.cgroupnames import Group
from numaagent.readers.files import Files, Source
from numaagent.readers.hierarchies import Hierarchies, Hierarchy
from numaagent.readers.kept import Kept
from numacore.cpuset import CpuSet, CpuSetError
from numacore.workload import QOS, Container, Max

UNLIMITED = 1 << 60
"""Version 1 prints the largest multiple of a page for "no limit"."""
MAX_SETS = 4096
_LIST = 1 << 14
"""Bytes of a list of CPUs that are read; every second of 2,048 CPUs prints 10 KiB."""
MIN_SHARES = 2
"""Smallest `cpu.shares`; the kubelet writes it for a request of nothing."""


class _Known(msgspec.Struct):
    """A group with the containers that it was read as, and where its CPUs and NUMA nodes in force stand."""

    base: Container
    cpus: str | None
    mems: str | None


class Reader:
    """Reads containers again and again: where they may run each time, how much they may use now and then."""

    def __init__(self, files: Files, kept: Kept) -> None:
        self._files = files
        self._kept = kept
        self._known: dict[str, _Known] = {}
        self._groups: list[Group] = []
        self._paths: list[str] = []
        self._sets: dict[bytes, CpuSet | None] = {}

    def containers(self, trees: Hierarchies, groups: list[Group], *, anew: bool) -> list[Container]:
        """The containers of these groups, in their order; `anew`: read everything again."""
        source = self._files.reader("limits")
        if anew or groups != self._groups:
            before = {} if anew else self._known
            self._known = {each.path: before.get(each.path) or _known(source, trees, each) for each in groups}
            self._groups = groups
            self._paths = [path for each in self._known.values() for path in (each.cpus, each.mems) if path]
            self._kept.watch(set(self._paths))
        found = dict(zip(self._paths, self._kept.column(source, self._paths, _LIST), strict=True))
        return [self._current(source, trees, self._known[each.path], found) for each in groups]

    def _current(
        self, source: Source, trees: Hierarchies, known: _Known, found: dict[str, bytes | None]
    ) -> Container:
        """The container with its sets as they are now; the same object as before if nothing changed."""
        cpus, mems = self._set(found.get(known.cpus or "")), self._set(found.get(known.mems or ""))
        base = known.base
        if (known.cpus and not cpus) or (known.mems and not mems):
            tree = trees.by_controller.get("cpuset")
            cpus, mems = (
                groups.nearest(source, tree, base.cgroup or "", what)[0] for what in ("cpus", "mems")
            )
        if cpus != base.cpus or mems != base.mems:
            known.base = msgspec.structs.replace(base, cpus=cpus, mems=mems)
        return known.base

    def _set(self, data: bytes | None) -> CpuSet | None:
        """Most containers share a few sets, so each text is parsed once."""
        if data is None:
            return None
        if data not in self._sets:
            if len(self._sets) > MAX_SETS:
                self._sets.clear()
            self._sets[data] = _parsed(data)
        return self._sets[data]


def _parsed(data: bytes) -> CpuSet | None:
    try:
        return CpuSet.parse(data.decode().strip("\0 \n")) or None
    except (CpuSetError, UnicodeDecodeError):
        return None


def _known(source: Source, trees: Hierarchies, group: Group) -> _Known:
    tree = trees.by_controller.get("cpuset")
    (cpus, cpus_path), (mems, mems_path) = (
        groups.nearest(source, tree, group.path, what) for what in ("cpus", "mems")
    )
    limit = _cpu_limit(source, trees.by_controller.get("cpu"), group.path)
    base = Container(
        id=group.id,
        cgroup=group.path,
        runtime=group.runtime,
        pod_uid=group.pod_uid,
        name=group.name,
        kubernetes=group.kubernetes,
        qos=group.qos,
        cpus=cpus,
        mems=mems,
        cpu_limit=limit,
        cpu_request=_cpu_request(source, trees.by_controller.get("cpu"), group.path, group.qos, limit),
        memory_limit=_memory_limit(source, trees.by_controller.get("memory"), group.path),
    )
    return _Known(base, cpus_path, mems_path)


def _cpu_limit(source: Source, tree: Hierarchy | None, path: str) -> float | Max | None:
    if tree is None:
        return None
    if tree.version == 2:
        quota, _, period = (source.text(f"{tree.path}{path}/cpu.max") or "").partition(" ")
    else:
        quota = source.text(f"{tree.path}{path}/cpu.cfs_quota_us") or ""
        period = source.text(f"{tree.path}{path}/cpu.cfs_period_us") or ""
    if quota in ("max", "-1"):
        return "max"
    if quota.isdecimal() and period.isdecimal() and int(period) > 0:
        return int(quota) / int(period)
    return None


def _cpu_request(
    source: Source, tree: Hierarchy | None, path: str, qos: QOS | None, limit: float | Max | None
) -> float | None:
    """Only where it is exact: weights of version 2 are rounded and do not lead back to the request."""
    if qos is None or tree is None:
        return None
    if qos == "BestEffort":
        return 0.0
    if tree.version == 1:
        shares = source.number(f"{tree.path}{path}/cpu.shares")
        return None if shares is None else _of_shares(shares)
    return limit if qos == "Guaranteed" and isinstance(limit, float) else None


def _of_shares(shares: int) -> float:
    """The kubelet writes floor(millicores x 1024 / 1000) (cm/helpers_linux.go); this is its inverse."""
    return 0.0 if shares <= MIN_SHARES else math.ceil(shares * 1000 / 1024) / 1000


def _memory_limit(source: Source, tree: Hierarchy | None, path: str) -> int | Max | None:
    if tree is None:
        return None
    name = "memory.max" if tree.version == 2 else "memory.limit_in_bytes"
    text = source.text(f"{tree.path}{path}/{name}")
    if text == "max" or (text and text.isdecimal() and int(text) >= UNLIMITED):
        return "max"
    return int(text) if text and text.isdecimal() else None
