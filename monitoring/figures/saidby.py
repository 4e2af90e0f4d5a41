"""What each source says of a node, as a table: a row for each fact, a column for each source; and a node as Kubernetes has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.utils.dateparse import parse_datetime
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from monitoring.figures import amounts
from monitoring.models import KubernetesNode
from monitoring.selectors.sources import ORDER, Fact, Said

SOURCES: dict[str, Promise] = {
    "exporter": gettext_lazy("numa-exporter"),
    "numatopology": gettext_lazy("Numatopology (Volcano)"),
    "noderesourcetopology": gettext_lazy("NodeResourceTopology"),
    "api": gettext_lazy("Node object"),
}
FACTS: dict[str, Promise] = {
    "topology_policy": gettext_lazy("Topology manager policy"),
    "topology_scope": gettext_lazy("Topology manager scope"),
    "cpu_policy": gettext_lazy("CPU manager policy"),
    "cpus": gettext_lazy("CPUs by NUMA node"),
    "free_cpus": gettext_lazy("CPUs that nobody owns"),
    "reserved_cpus": gettext_lazy("Reserved CPUs"),
    "cpu_capacity": gettext_lazy("CPUs by NUMA node, number"),
    "cpu_allocatable": gettext_lazy("Allocatable CPUs by NUMA node"),
    "cpu_available": gettext_lazy("Available CPUs by NUMA node"),
    "memory_capacity": gettext_lazy("Memory by NUMA node"),
    "memory_allocatable": gettext_lazy("Allocatable memory by NUMA node"),
    "memory_available": gettext_lazy("Available memory by NUMA node"),
    "distances": gettext_lazy("Distances"),
    "kubelet_version": gettext_lazy("Version of the kubelet"),
    "pods": gettext_lazy("Pods with CPUs of their own"),
    "allocatable_cpu": gettext_lazy("Allocatable CPUs of the node"),
    "allocatable_memory": gettext_lazy("Allocatable memory of the node"),
}
CONDITIONS_GOOD = {"Ready": "True"}
"""Any other condition of a node is good when it is False."""


class Column(NamedTuple):
    """One source; `age` in seconds, None = unknown."""

    source: str
    label: str
    age: float | None


class Cell(NamedTuple):
    """What one source says of one fact; `differs` from what is believed."""

    text: str
    lines: tuple[str, ...]
    differs: bool
    believed: bool


class Row(NamedTuple):
    name: str
    label: str
    cells: tuple[Cell | None, ...]
    contradicted: bool


class Condition(NamedTuple):
    """One condition of a node. `good` None = its state is unknown."""

    type: str
    status: str
    good: bool | None
    reason: str
    message: str
    since: datetime | None


def columns(said: Sequence[Said]) -> list[Column]:
    """The sources that say anything, the best first."""
    ages = {each.source: each.age for each in said}
    return [Column(source, str(SOURCES[source]), ages[source]) for source in ORDER if source in ages]


def rows(facts: Iterable[Fact], said: Sequence[Said]) -> list[Row]:
    """The facts in words, in the order of `columns`."""
    sources = [each.source for each in columns(said)]
    return [_row(fact, sources) for fact in facts]


def _row(fact: Fact, sources: list[str]) -> Row:
    told = {each.source: each for each in fact.told}
    best = fact.told[0]
    cells: list[Cell | None] = []
    for source in sources:
        each = told.get(source)  # type: ignore[call-overload]  # a plain text is looked up among literals
        if each is None:
            cells.append(None)
            continue
        lines = lines_of(fact.name, each.value)
        differs = fact.contradicted and lines != lines_of(fact.name, best.value)
        cells.append(Cell(" · ".join(lines), lines, differs, each is best and len(told) > 1))
    return Row(fact.name, str(FACTS.get(fact.name, fact.name)), tuple(cells), fact.contradicted)


def lines_of(name: str, value: Any) -> tuple[str, ...]:
    """A value of a fact, a line for each NUMA node where it has some."""
    if not isinstance(value, Mapping):
        return (_plain(name, value),)
    by_numa = sorted(value.items(), key=lambda item: (len(item[0]), item[0]))
    if name == "distances":
        return tuple(f"{numa}: {_distances(each)}" for numa, each in by_numa)
    return tuple(f"{numa}: {_plain(name, each)}" for numa, each in by_numa)


def _distances(row: Any) -> str:
    if not isinstance(row, Mapping):
        return str(row)
    ordered = sorted(row.items(), key=lambda item: (len(item[0]), item[0]))
    return ", ".join(f"{other} → {distance}" for other, distance in ordered)


def _plain(name: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name.startswith("memory"):
            return amounts.size(float(value))
        return number_format(value, 0 if float(value).is_integer() else 2)
    return str(value)


def conditions(told: KubernetesNode) -> list[Condition]:
    """A node's conditions, bad ones first."""
    found = [_condition(each) for each in told.conditions]
    return sorted(found, key=lambda each: (each.good is True, each.type != "Ready"))


def _condition(told: Mapping[str, Any]) -> Condition:
    status = told.get("status", "Unknown")
    wanted = CONDITIONS_GOOD.get(told["type"], "False")
    since = told.get("since")
    return Condition(
        told["type"],
        status,
        None if status not in ("True", "False") else status == wanted,
        told.get("reason", ""),
        told.get("message", ""),
        parse_datetime(since) if since else None,
    )


def resources(told: KubernetesNode) -> list[tuple[str, str, str]]:
    """Resources with their capacity and what of it pods may have, as Kubernetes writes them; "" = not said."""
    names = sorted({*told.capacity, *told.allocatable}, key=lambda name: (name not in FIRST, name))
    return [(name, str(told.capacity.get(name, "")), str(told.allocatable.get(name, ""))) for name in names]


FIRST = ("cpu", "memory")


def taints(told: KubernetesNode) -> list[str]:
    """As kubectl writes them."""
    return [
        f"{each.get('key')}={each['value']}:{each.get('effect')}"
        if each.get("value")
        else f"{each.get('key')}:{each.get('effect')}"
        for each in told.taints
    ]


def labels(told: KubernetesNode) -> list[str]:
    return [f"{name}={value}" if value else name for name, value in sorted(told.labels.items())]
