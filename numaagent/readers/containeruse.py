"""Time, memory and pages of each container, from its cgroup's files of either version."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from numaagent.readers import columns
from numaagent.readers.files import Files, Source
from numaagent.readers.hierarchies import Hierarchies, Hierarchy
from numaagent.readers.kept import Kept
from numacore.topology import Topology
from numacore.usage import ContainerUse
from numacore.workload import Container

T = TypeVar("T")
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_SHORT = 64
"""Bytes that hold the first line of `cpu.stat`, and all of a file with one number."""


class _Column:
    """One file of every container that has a cgroup: its paths, and where its values go."""

    def __init__(self, tree: Hierarchy | None, name: str, groups: list[str | None]) -> None:
        self.count = len(groups)
        known = [(i, group) for i, group in enumerate(groups) if group is not None and tree is not None]
        self.at = [i for i, _ in known]
        self.paths = [f"{tree.path}{group}/{name}" for _, group in known if tree is not None]

    def spread(
        self,
        files: list[bytes | None],
        fast: Callable[[list[bytes]], Sequence[T | None] | None],
        slow: Callable[[bytes], T | None],
    ) -> tuple[T | None, ...]:
        """The value of each container in their order; None where there is no file or no value."""
        there = [data for data in files if data is not None]
        found = fast(there)
        if found is not None and len(there) == self.count:
            return tuple(found)
        values: list[T | None] = [None] * self.count
        several: Iterator[T | None] = iter(found) if found is not None else map(slow, there)
        for i, data in zip(self.at, files, strict=True):
            if data is not None:
                values[i] = next(several)
        return tuple(values)


class Reader:
    """Reads use of the containers that it was told, in their order."""

    def __init__(self, files: Files, kept: Kept) -> None:
        self._files = files
        self._kept = kept
        self._topology: Topology | None = None
        self._columns: dict[str, _Column] = {}
        self._second: dict[str, bool] = {}

    def watch(self, trees: Hierarchies, topology: Topology, containers: tuple[Container, ...]) -> None:
        """Which containers to read from now on."""
        groups = [each.cgroup for each in containers]
        time, memory = trees.by_controller.get("cpuacct"), trees.by_controller.get("memory")
        self._topology = topology
        self._second = {"time": _is_second(time), "memory": _is_second(memory)}
        self._columns = {
            "time": _Column(time, "cpu.stat" if _is_second(time) else "cpuacct.usage", groups),
            "memory": _Column(
                memory, "memory.current" if _is_second(memory) else "memory.usage_in_bytes", groups
            ),
            "pages": _Column(memory, "memory.numa_stat", groups),
            "per-cpu": _Column(None if _is_second(time) else time, "cpuacct.usage_percpu", groups),
        }

    def wanted(self) -> set[str]:
        """Every file that is read."""
        return {path for column in self._columns.values() for path in column.paths}

    def read(self) -> ContainerUse:
        """Use of every container now; None where it has ended or cannot be read."""
        source = self._files.reader("containers-use")
        return ContainerUse(
            cpu_time=self._time(source),
            memory=self._read(source, "memory", _SHORT, columns.wholes, columns.whole),
            pages=self._pages(source),
            cpu_time_by_numa=self._per_cpu(source),
        )

    def _read(
        self,
        source: Source,
        name: str,
        size: int,
        fast: Callable[[list[bytes]], Sequence[T | None] | None],
        slow: Callable[[bytes], T | None],
    ) -> tuple[T | None, ...]:
        column = self._columns[name]
        return column.spread(self._kept.column(source, column.paths, size), fast, slow)

    def _time(self, source: Source) -> tuple[int | None, ...]:
        if self._second["time"]:
            return self._read(source, "time", _SHORT, columns.first_values, _usage)
        nanoseconds = self._read(source, "time", _SHORT, columns.wholes, columns.whole)
        return tuple(None if each is None else each // 1000 for each in nanoseconds)

    def _pages(self, source: Source) -> dict[int, tuple[int | None, ...]]:
        assert self._topology is not None
        column, nodes = self._columns["pages"], self._topology.numa_ids
        if not self._second["memory"]:
            rows = self._read(source, "pages", 1 << 14, lambda _: None, _pages_v1)
            return _by_node(rows, nodes)
        files = self._kept.column(source, column.paths, 256 + 64 * len(nodes))
        there = [data for data in files if data is not None]
        found = columns.pages(there)
        if found is not None and len(there) == column.count:
            none = (0,) * column.count
            return {node: tuple(found[node]) if node in found else none for node in nodes}
        return _by_node(column.spread(files, lambda _: None, columns.pages_v2), nodes)

    def _per_cpu(self, source: Source) -> dict[int, tuple[int | None, ...]]:
        """`cpuacct.usage_percpu` prints nanoseconds of every possible CPU in order."""
        assert self._topology is not None
        if not self._columns["per-cpu"].paths:
            return {}
        cpus = [(node.id, list(node.cpus)) for node in self._topology.nodes]

        def parse(data: bytes) -> dict[int, int] | None:
            times = columns.wholes(data.split())
            if not times:
                return None
            return {node: sum(times[cpu] for cpu in mine if cpu < len(times)) // 1000 for node, mine in cpus}

        rows = self._read(source, "per-cpu", 1 << 16, lambda _: None, parse)
        return _by_node(rows, self._topology.numa_ids)


def _is_second(tree: Hierarchy | None) -> bool:
    return tree is None or tree.version == 2


def _usage(data: bytes) -> int | None:
    found = columns.first_values([data])
    return found[0] if found else None


def _pages_v1(data: bytes) -> dict[int, int] | None:
    return columns.pages_v1(data, _PAGE_SIZE)


def _by_node(
    rows: tuple[dict[int, int] | None, ...], nodes: tuple[int, ...]
) -> dict[int, tuple[int | None, ...]]:
    """Columns by NUMA node; a NUMA node without memory is not printed and holds nothing."""
    if not any(rows):
        return {}
    return {node: tuple(None if row is None else row.get(node, 0) for row in rows) for node in nodes}
