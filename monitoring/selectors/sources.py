"""What each source says of a node, fact by fact beside each other: whom to believe, how old it is, and where two contradict.

Best first: our exporter, Volcano's Numatopology, NodeResourceTopology, the API server's Node object. The best one that tells a fact
is believed; another that says otherwise is a contradiction and is shown, never averaged away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from monitoring.models import KubernetesNode, Node, SourceView
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.report import NodeReport

Source = Literal["exporter", "numatopology", "noderesourcetopology", "api"]
ORDER: tuple[Source, ...] = ("exporter", "numatopology", "noderesourcetopology", "api")
Value = str | float | dict[str, Any]


class Told(msgspec.Struct, frozen=True):
    """One source's word. `age`: seconds since it was confirmed (exporter) or last changed (others); None = unknown."""

    source: Source
    value: Value
    age: float | None


class Fact(msgspec.Struct, frozen=True):
    """One fact with everybody who tells it, the best first. `contradicted` = not all say the same."""

    name: str
    told: tuple[Told, ...]
    contradicted: bool


class Said(msgspec.Struct, frozen=True):
    """Everything that one source says."""

    source: Source
    values: Mapping[str, Value]
    age: float | None


def facts_of(said: Sequence[Said]) -> list[Fact]:
    """The facts that anybody tells, in a fixed order; `said` as `voices` has it."""
    found = []
    for name in NAMES:
        told = tuple(
            Told(each.source, each.values[name], each.age)
            for source in ORDER
            for each in said
            if each.source == source and name in each.values
        )
        if told:
            found.append(Fact(name, told, _contradicted(name, told)))
    return found


def voices(
    node: Node, facts: Facts | None, report: NodeReport | None, age: float | None, now: datetime
) -> list[Said]:
    """Who says anything about a node. `facts` and `report` None = its exporter was never heard."""
    found = []
    if facts is not None and report is not None:
        found.append(Said("exporter", _exporter(facts, report), age))
    for view in SourceView.objects.filter(node=node).exclude(source=SourceView.Source.CONFIGZ):
        source: Source = "numatopology" if view.source == "numatopology" else "noderesourcetopology"
        found.append(Said(source, view.values, (now - view.changed).total_seconds()))
    told = KubernetesNode.objects.filter(node=node).first()
    if told is not None:
        found.append(Said("api", _api(told), (now - told.updated).total_seconds()))
    return found


class Running(msgspec.Struct, frozen=True):
    """What a kubelet said of its own configuration when it was asked last, `age` seconds ago. `settings` None = it could not be: `cause` and
    a code of what to do (`monitoring.kube.errors`)."""

    settings: Mapping[str, Any] | None
    cause: str
    remedy: str
    age: float


def running(node: Node, now: datetime) -> Running | None:
    """None = nobody asks this kubelet."""
    view = SourceView.objects.filter(node=node, source=SourceView.Source.CONFIGZ).first()
    if view is None:
        return None
    told = view.values
    return Running(
        told.get("settings"),
        told.get("cause", ""),
        told.get("remedy", ""),
        (now - view.changed).total_seconds(),
    )


def _exporter(facts: Facts, report: NodeReport) -> dict[str, Value]:
    policy = report.policy
    owned = report.exclusive
    topology = facts.topology
    found: dict[str, Value | None] = {
        "topology_policy": policy.topology if policy else None,
        "topology_scope": policy.scope if policy else None,
        "cpu_policy": (policy.cpu_in_force or policy.cpu) if policy else None,
        "cpus": {str(node.id): str(node.cpus) for node in topology.nodes if node.cpus},
        "free_cpus": None if owned is None else str(topology.online - owned),
        "memory_capacity": {
            str(numa): float(size) for numa, size in facts.attributes.memory.items() if size is not None
        },
        "distances": {
            str(a): {str(b): d for b in topology.numa_ids if (d := topology.distance(a, b)) is not None}
            for a in topology.numa_ids
        },
        "kubelet_version": facts.kubelet.version if facts.kubelet else None,
    }
    return {name: value for name, value in found.items() if value not in (None, "", {})}


def _api(told: KubernetesNode) -> dict[str, Value]:
    found: dict[str, Value] = {
        "kubelet_version": told.kubelet_version,
        "allocatable_cpu": str(told.allocatable.get("cpu", "")),
        "allocatable_memory": str(told.allocatable.get("memory", "")),
    }
    return {name: value for name, value in found.items() if value}


def _same(a: Value, b: Value) -> bool:
    return a == b


def _same_cpus(a: Value, b: Value) -> bool:
    return CpuSet.parse(str(a)) == CpuSet.parse(str(b))


def _same_lists(a: Value, b: Value) -> bool:
    """NUMA nodes without CPUs are told by some and left out by others."""
    assert isinstance(a, dict)
    assert isinstance(b, dict)
    return all(_same_cpus(a.get(numa, ""), b.get(numa, "")) for numa in {*a, *b})


def _same_where_both(a: Value, b: Value) -> bool:
    """What both tell is the same; a zone that one leaves out says nothing."""
    assert isinstance(a, dict)
    assert isinstance(b, dict)
    return all(a[numa] == b[numa] for numa in {*a} & {*b})


def _same_distances(a: Value, b: Value) -> bool:
    assert isinstance(a, dict)
    assert isinstance(b, dict)
    return all(_same_where_both(a[numa], b[numa]) for numa in {*a} & {*b})


NAMES: dict[str, Callable[[Value, Value], bool] | None] = {
    "topology_policy": _same,
    "topology_scope": _same,
    "cpu_policy": _same,
    "cpus": _same_lists,
    "free_cpus": _same_cpus,
    "reserved_cpus": _same,
    "cpu_capacity": _same_where_both,
    "cpu_allocatable": None,
    "cpu_available": None,
    "memory_capacity": None,
    "memory_allocatable": None,
    "memory_available": None,
    "distances": _same_distances,
    "kubelet_version": _same,
    "pods": None,
    "allocatable_cpu": None,
    "allocatable_memory": None,
}
"""Facts, and when two words about one are the same; None = it changes all the time, or each counts it another way."""


def _contradicted(name: str, told: tuple[Told, ...]) -> bool:
    same = NAMES[name]
    if same is None:
        return False
    try:
        return not all(same(told[0].value, each.value) for each in told[1:])
    except (ValueError, AssertionError):  # a word that is none: it cannot be the same
        return True
