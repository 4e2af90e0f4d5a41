"""Time, memory and pages of each container, from its cgroup's files of either version."""

from __future__ import annotations

import os
import re

from numaagent.readers.files import Files, Source
from numaagent.readers.hierarchies import Hierarchies
from numaagent.readers.kept import Kept
from numacore.topology import Topology
from numacore.usage import ContainerUse
from numacore.workload import Container

_PAGES = re.compile(rb"N(\d+)=(\d+)")
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


class _Paths:
    """The files of one container; None = its controller is not here, or the group has no such file."""

    __slots__ = ("memory", "pages", "per_cpu", "time")

    def __init__(self, trees: Hierarchies, path: str | None) -> None:
        def file(controller: str, second: str, first: str) -> str | None:
            tree = trees.by_controller.get(controller)
            if tree is None or path is None:
                return None
            return f"{tree.path}{path}/{second if tree.version == 2 else first}"

        self.time = file("cpuacct", "cpu.stat", "cpuacct.usage")
        self.memory = file("memory", "memory.current", "memory.usage_in_bytes")
        self.pages = file("memory", "memory.numa_stat", "memory.numa_stat")
        accounting = trees.by_controller.get("cpuacct")
        first = accounting is not None and accounting.version == 1
        self.per_cpu = file("cpuacct", "", "cpuacct.usage_percpu") if first else None


class Reader:
    """Reads use of the containers that it was told, in their order."""

    def __init__(self, files: Files, kept: Kept) -> None:
        self._files = files
        self._kept = kept
        self._paths: list[_Paths] = []
        self._cpus: list[tuple[int, list[int]]] = []
        self._nodes: tuple[int, ...] = ()
        self._first = False

    def watch(self, trees: Hierarchies, topology: Topology, containers: tuple[Container, ...]) -> None:
        """Which containers to read from now on."""
        self._paths = [_Paths(trees, each.cgroup) for each in containers]
        self._nodes = topology.numa_ids
        self._cpus = [(node.id, list(node.cpus)) for node in topology.nodes]
        memory = trees.by_controller.get("memory")
        self._first = memory is not None and memory.version == 1

    def read(self) -> ContainerUse:
        """Use of every container now; None where it has ended or cannot be read."""
        source = self._files.reader("containers-use")
        time = tuple(self._time(source, each.time) for each in self._paths)
        memory = tuple(_whole(self._data(source, each.memory)) for each in self._paths)
        parse = _pages_v1 if self._first else _pages_v2
        pages = [parse(self._data(source, each.pages)) for each in self._paths]
        per_cpu = [self._per_cpu(self._data(source, each.per_cpu)) for each in self._paths]
        return ContainerUse(
            cpu_time=time,
            memory=memory,
            pages=self._columns(pages),
            cpu_time_by_numa=self._columns(per_cpu),
        )

    def wanted(self) -> set[str]:
        """Every file that is read."""
        return {
            path
            for each in self._paths
            for path in (each.time, each.memory, each.pages, each.per_cpu)
            if path
        }

    def _data(self, source: Source, path: str | None) -> bytes | None:
        return None if path is None else self._kept.data(source, path)

    def _time(self, source: Source, path: str | None) -> int | None:
        data = self._data(source, path)
        if data is None:
            return None
        if data.startswith(b"usage_usec "):
            return _whole(data[11 : data.find(b"\n")])
        nanoseconds = _whole(data)
        return None if nanoseconds is None else nanoseconds // 1000

    def _per_cpu(self, data: bytes | None) -> dict[int, int] | None:
        """`cpuacct.usage_percpu` prints nanoseconds of every possible CPU in order."""
        fields = data.split() if data else []
        if not fields or not all(map(bytes.isdigit, fields)):
            return None
        times = list(map(int, fields))
        return {
            node: sum(times[cpu] for cpu in cpus if cpu < len(times)) // 1000 for node, cpus in self._cpus
        }

    def _columns(self, rows: list[dict[int, int] | None]) -> dict[int, tuple[int | None, ...]]:
        if not any(rows):
            return {}
        return {node: tuple(row.get(node) if row else None for row in rows) for node in self._nodes}


def _whole(data: bytes | None) -> int | None:
    data = (data or b"").strip()
    return int(data) if data.isdigit() and len(data) < 19 else None


def _pages_v2(data: bytes | None) -> dict[int, int] | None:
    """Bytes by NUMA node, anonymous and file (Documentation/admin-guide/cgroup-v2.rst, memory.numa_stat)."""
    if not data:
        return None
    found: dict[int, int] = {}
    seen = 0
    for line in data.split(b"\n"):
        if line.startswith((b"anon ", b"file ")):
            seen += 1
            for node, amount in _PAGES.findall(line):
                key = int(node)
                found[key] = found.get(key, 0) + int(amount)
            if seen == 2:
                break
    return found or None


def _pages_v1(data: bytes | None) -> dict[int, int] | None:
    """Pages by NUMA node (Documentation/admin-guide/cgroup-v1/memory.rst 5.6), the groups below included if told."""
    lines = {line.partition(b"=")[0]: line for line in (data or b"").split(b"\n")}
    prefix = b"hierarchical_" if b"hierarchical_anon" in lines else b""
    found: dict[int, int] = {}
    for name in (b"anon", b"file"):
        for node, pages in _PAGES.findall(lines.get(prefix + name, b"")):
            found[int(node)] = found.get(int(node), 0) + int(pages) * _PAGE_SIZE
    return found or None
