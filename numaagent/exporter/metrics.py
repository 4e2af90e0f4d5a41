"""`/metrics`: counters and memory as they are now, figures of the exporter's own last interval.

What is unknown is left out, never 0. Figures of containers change once in an interval, so their text is made once in an
interval; distances and ownership likewise.
"""

from __future__ import annotations

import os
import platform
import resource
import time
from collections.abc import Iterator

from numaagent.exporter import families as f
from numaagent.exporter.exposition import Family, Value, block, labels
from numaagent.exporter.node import VERSION, Interval, Node, Reading
from numaagent.readers.cputimes import MODES
from numacore.report import ContainerReport, Policy
from numacore.usage import TICK, MemoryUse
from numacore.workload import Cross

Samples = Iterator[tuple[str, Value]]
CROSSINGS: tuple[Cross, ...] = ("cpu", "memory", "device")


class Page:
    """Makes the page of one node."""

    def __init__(self, node: Node, started: float) -> None:
        self._node = node
        self._started = started
        self._slow: dict[bool, tuple[Interval | None, str]] = {}

    def text(self, now: float, wall: float, openmetrics: bool) -> bytes:
        """The whole page."""
        reading = self._node.read(now, wall)
        node = self._node.name(reading.survey)
        parts = [
            self._figures(node, openmetrics),
            block(f.MEMORY_USAGE, _memory(node, reading, ("total", "used", "free")), openmetrics),
            block(f.CPU_SECONDS, _cpu_seconds(node, reading), openmetrics),
            block(
                f.MEMORY_BYTES, _memory(node, reading, ("total", "used", "free", "file", "anon")), openmetrics
            ),
            block(f.NUMASTAT, _numastat(node, reading), openmetrics),
            block(f.ERRORS, self._errors(node), openmetrics),
            _itself(self._started, openmetrics),
            "# EOF\n" if openmetrics else "",
        ]
        return "".join(parts).encode()

    def _figures(self, node: str, openmetrics: bool) -> str:
        interval = self._node.interval
        known = self._slow.get(openmetrics)
        if known is None or known[0] is not interval:
            text = _figures(node, interval, openmetrics) if interval else ""
            known = self._slow[openmetrics] = (interval, text)
        return known[1]

    def _errors(self, node: str) -> Samples:
        for reader, count in sorted(self._node.files.problems.totals().items()):
            yield labels({"node": node, "reader": reader}), count


def _figures(node: str, interval: Interval, openmetrics: bool) -> str:
    report = interval.report()
    named = _named(node, report.containers)
    busy = ((labels({"node": node, "numa_node": str(each.id)}), each.busy) for each in report.numa)
    owners = (
        (labels({"node": node, "numa_node": str(each.id), "state": state}), count)
        for each in report.numa
        for state, count in sorted(each.owners.items())
    )
    policy = _policy(report.policy)
    parts = [
        block(f.CPU_USAGE, ((text, value) for text, value in busy if value is not None), openmetrics),
        block(f.CPUS, owners, openmetrics),
        block(f.DISTANCE, _distances(node, interval), openmetrics),
        block(f.POLICY, [(labels({"node": node, **policy}), 1)] if policy else [], openmetrics),
        block(f.ALLOCATION, _allocations(interval, named), openmetrics),
        block(f.CROSS, _crossings(named), openmetrics),
        block(f.LOCALITY, _closed(named, "locality"), openmetrics),
        block(f.COST, _closed(named, "cost"), openmetrics),
        block(f.LAST_READING, [(labels({"node": node}), interval.reading.taken)], openmetrics),
    ]
    return "".join(parts)


def _policy(policy: Policy | None) -> dict[str, str]:
    """Labels of the topology manager's policy; none where it is unknown."""
    if policy is None or policy.topology is None or policy.scope is None:
        return {}
    return {"policy": policy.topology, "scope": policy.scope}


def _named(node: str, containers: tuple[ContainerReport, ...]) -> dict[str, ContainerReport]:
    """Containers by their labels without the closing brace; of two with the same names only one can be shown."""
    found = {}
    for each in containers:
        known = each.container
        who = {
            "node": node,
            "namespace": known.namespace or "",
            "pod": known.pod or "",
            "container": (known.name if known.kubernetes else None) or known.id,
        }
        found[labels(who)[:-1]] = each
    return found


def _allocations(interval: Interval, named: dict[str, ContainerReport]) -> Samples:
    topology = interval.reading.survey.machine.value.topology
    for who, each in named.items():
        if each.kind != "floating" and each.cpus:
            for node in topology.nodes:
                if owned := len(node.cpus & each.cpus):
                    yield _on(who, node.id, "cpu"), owned
        for numa, size in (each.pages or {}).items():
            yield _on(who, numa, "memory"), size
        assigned: dict[tuple[int, str], int] = {}
        for given in each.container.memory_blocks:
            if given.kind != "memory" and len(given.numa) == 1:
                key = (given.numa[0], given.kind)
                assigned[key] = assigned.get(key, 0) + given.size
        for (numa, kind), size in assigned.items():
            yield _on(who, numa, kind), size


def _on(who: str, numa: int, resource_name: str) -> str:
    return f'{who},numa_node="{numa}",resource="{resource_name}"}}'


def _crossings(named: dict[str, ContainerReport]) -> Samples:
    for who, each in named.items():
        if each.cross is not None:
            for kind in CROSSINGS:
                yield f'{who},kind="{kind}"}}', int(kind in each.cross)


def _closed(named: dict[str, ContainerReport], figure: str) -> Samples:
    for who, each in named.items():
        value = each.locality if figure == "locality" else each.cost
        if value is not None:
            yield f"{who}}}", value


def _distances(node: str, interval: Interval) -> Samples:
    topology = interval.reading.survey.machine.value.topology
    for start in topology.nodes:
        for end, distance in zip(topology.numa_ids, start.distances or (), strict=False):
            yield labels({"node": node, "from": str(start.id), "to": str(end)}), distance


def _memory(node: str, reading: Reading, states: tuple[str, ...]) -> Samples:
    for numa, use in reading.usage.value.memory.items():
        for state in states:
            value = _state(use, state)
            if value is not None:
                name = "anonymous" if state == "anon" else state
                yield labels({"node": node, "numa_node": str(numa), "state": name}), value


def _state(use: MemoryUse, state: str) -> int | None:
    return {"total": use.total, "used": use.used, "free": use.free, "file": use.file, "anon": use.anon}[state]


def _cpu_seconds(node: str, reading: Reading) -> Samples:
    rows = {row[0]: row for row in reading.rows}
    for numa in reading.survey.machine.value.topology.nodes:
        mine = [rows[cpu] for cpu in numa.cpus if cpu in rows]
        ticks = [sum(column) for column in zip(*mine, strict=True)][1:]
        for mode, count in zip(MODES, ticks, strict=False):
            yield labels({"node": node, "numa_node": str(numa.id), "mode": mode}), round(count * TICK, 2)


def _numastat(node: str, reading: Reading) -> Samples:
    for numa, use in reading.usage.value.memory.items():
        for counter, count in use.counters.items():
            yield labels({"node": node, "numa_node": str(numa), "counter": counter}), count


def _itself(started: float, openmetrics: bool) -> str:
    """The exporter's own process, under the names that every Prometheus client uses."""
    with open("/proc/self/statm", encoding="ascii") as file:
        virtual, resident = (int(field) * resource.getpagesize() for field in file.read().split()[:2])
    build = {"version": VERSION, "python": platform.python_version()}
    shown: list[tuple[Family, str, Value]] = [
        (f.BUILD, labels(build), 1),
        (f.PROCESS_CPU, "", round(time.process_time(), 3)),
        (f.PROCESS_MEMORY, "", resident),
        (f.PROCESS_VIRTUAL, "", virtual),
        (f.PROCESS_FILES, "", len(os.listdir("/proc/self/fd"))),
        (f.PROCESS_MOST_FILES, "", resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        (f.PROCESS_START, "", started),
    ]
    return "".join(block(family, [(text, value)], openmetrics) for family, text, value in shown)
