"""Rows of lists, straight from the database: tuples of columns become the dicts that the API answers with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import numpy as np
from django.db.models import Q
from django.db.models.expressions import ExpressionWrapper
from django.db.models.fields import BooleanField
from django.urls import reverse
from numpy.typing import NDArray

from monitoring import hot, selectors
from monitoring.api import shapes
from monitoring.models import NodeEvent

Row = dict[str, Any]
Keys = Mapping[str, Any]
"""What `Columns.needed` names, of one row."""


class Seen(NamedTuple):
    """How fresh what a row says is."""

    last_seen: datetime | None
    age: float | None
    source: str | None
    state: str


class Moment(NamedTuple):
    """What rows are seen against: our clock, and when each node was last heard (by its key), as far as is known."""

    now: datetime
    heard: Mapping[int, float]
    stale_after: float

    def seen(self, node: int, stored: datetime | None) -> Seen:
        """A node's freshness; `stored`: when the database heard of it, None = never."""
        heard = self.heard.get(node)
        if heard is None:
            if stored is None:
                return Seen(None, None, None, "no-data")
            age = (self.now - stored).total_seconds()
            return Seen(stored, max(0.0, round(age, 3)), "store", "no-data")
        age = max(0.0, round(self.now.timestamp() - heard, 3))
        state = "stale" if age > self.stale_after else "ok"
        return Seen(datetime.fromtimestamp(round(heard, 3), UTC), age, "exporter", state)


def moment(now: datetime, clusters: Iterable[int], nodes: Iterable[int] | None = None) -> Moment:
    """Now, with what is heard of these clusters' nodes, or of `nodes` among them.

    A store that cannot be reached leaves all at what the database has.
    """
    wanted = None if nodes is None else np.fromiter(nodes, np.int64)
    heard: dict[int, float] = {}
    try:
        for cluster in set(clusters):
            for block in hot.store().cells(cluster):
                heard.update(_heard(block, wanted))
    except hot.StoreError:
        heard = {}
    return Moment(now, heard, selectors.configuration.stale_after())


def _heard(block: hot.Cells, wanted: NDArray[np.int64] | None) -> dict[int, float]:
    if wanted is None:
        return block.heard()
    nodes, received = np.frombuffer(block.nodes, "<i4"), np.frombuffer(block.received, "<f8")
    mask = np.isin(nodes, wanted)
    return dict(zip(nodes[mask].tolist(), received[mask].tolist(), strict=True))


class Columns(NamedTuple):
    """How the rows of a list come about: from columns of the database, or made of columns that are read anyway."""

    stored: dict[str, Any]
    """Column or expression by field."""
    blank: frozenset[str]
    """Fields whose "" is null."""
    make: Callable[[Keys, Moment], Row]
    made: tuple[str, ...]
    """What `make` makes."""
    needed: dict[str, str]
    """Columns by the names under which `make` finds them: `node` and `cluster` (keys) among them, if there are such."""

    def names(self) -> list[str]:
        return [*self.stored, *self.made]

    def choose(self, fields: Sequence[str] | None) -> Columns:
        """Only these fields."""
        if fields is None:
            return self
        return self._replace(
            stored={name: each for name, each in self.stored.items() if name in fields},
            made=tuple(name for name in self.made if name in fields),
        )

    def expressions(self) -> list[Any]:
        return [*self.stored.values(), *self.needed.values()]

    def moment(self, now: datetime, found: Sequence[Sequence[Any]]) -> Moment:
        """What these rows are seen against."""
        width, names = len(self.stored), list(self.needed)
        if "node" not in names:
            return Moment(now, {}, 0.0)
        node, cluster = width + names.index("node"), width + names.index("cluster")
        return moment(now, {each[cluster] for each in found}, {each[node] for each in found})

    def rows(self, found: Iterable[Sequence[Any]], seen: Moment) -> list[Row]:
        """The rows of what `expressions` selected."""
        return [self._row(each, seen) for each in found]

    def _row(self, values: Sequence[Any], seen: Moment) -> Row:
        row: Row = dict(zip(self.stored, values, strict=False))
        for name in self.blank & row.keys():
            row[name] = row[name] or None
        if self.made:
            made = self.make(dict(zip(self.needed, values[len(self.stored) :], strict=True)), seen)
            row.update(made if len(made) == len(self.made) else {name: made[name] for name in self.made})
        return row


def columns(
    kind: type[msgspec.Struct],
    *,
    blank: Iterable[str],
    renamed: Mapping[str, Any],
    make: Callable[[Keys, Moment], Row],
    made: tuple[str, ...],
    needed: dict[str, str],
) -> Columns:
    """Columns for a type: each field from the column of its name, unless it is renamed or made."""
    stored = {name: renamed.get(name, name) for name in kind.__struct_fields__ if name not in made}
    return Columns(stored, frozenset(blank), make, made, needed)


def path(*parts: str) -> str:
    """An address of this API."""
    return _root() + "".join(f"{quote(part, safe='')}/" for part in parts)


@cache
def _root() -> str:
    return reverse("api:root")


def of_node(cluster: str, node: str) -> str:
    """The address of a node, as `path` makes it; lists have thousands of them."""
    return f"{_root()}clusters/{cluster}/nodes/{quote(node, safe='')}/"


def _of_node(keys: Keys, moment: Moment) -> Row:
    seen = moment.seen(keys["node"], keys["last_seen"])
    return {**seen._asdict(), "address": of_node(keys["slug"], keys["name"])}


def _of_container(keys: Keys, moment: Moment) -> Row:
    seen = moment.seen(keys["node"], keys["updated"])
    address = of_node(keys["slug"], keys["name"])
    told = [each for each in keys["told_by_api"].split(",") if each]
    return {
        "told_by_api": told,
        "age": seen.age,
        "source": seen.source,
        "address": f"{address}containers/",
    }


NODES = columns(
    shapes.NodeRow,
    blank=("uid", "topology_policy", "topology_scope", "cpu_policy", "memory_policy"),
    renamed={"cluster": "cluster__slug", "topology": "topology_id"},
    make=_of_node,
    made=("last_seen", "age", "source", "state", "address"),
    needed={
        "node": "pk",
        "cluster": "cluster_id",
        "last_seen": "last_seen",
        "slug": "cluster__slug",
        "name": "name",
    },
)
NODE_SORTS = {
    "name": "name",
    "cluster": "cluster__slug",
    **{
        name: name
        for name in (
            *(
                "last_seen",
                "first_seen",
                "numa_nodes",
                "cpus",
                "memory_total",
                "memory_used",
                "busy",
                "pinned",
            ),
            *(
                "cpu_allocation",
                "memory_allocation",
                "topology_policy",
                "containers",
                "crossing",
                "worst_cost",
            ),
            *("problems", "contradictions"),
        )
    },
}

CONTAINERS = columns(
    shapes.ContainerRow,
    blank=(
        *("namespace", "pod", "pod_uid", "name", "runtime", "qos", "kind", "cpus", "cpu_nodes"),
        *("device_nodes", "pinning", "owner_kind", "owner"),
    ),
    renamed={
        "id": "container_id",
        "owner": "owner_name",
        "cluster": "node__cluster__slug",
        "node": "node__name",
    },
    make=_of_container,
    made=("told_by_api", "age", "source", "address"),
    needed={
        "node": "node_id",
        "cluster": "node__cluster_id",
        "updated": "updated",
        "slug": "node__cluster__slug",
        "name": "node__name",
        "told_by_api": "told_by_api",
    },
)
CONTAINER_SORTS = {
    "id": "id",
    "node": "node__name",
    **{
        name: name
        for name in (
            *(
                "namespace",
                "pod",
                "name",
                "cost",
                "locality",
                "remote_pages",
                "cpu_use",
                "memory",
                "cpu_count",
            ),
            *("kind", "updated"),
        )
    },
}

ENDPOINTS = columns(
    shapes.EndpointRow,
    blank=("name", "ca", "server_name", "error", "remedy", "conflict"),
    renamed={
        "id": "pk",
        "cluster": "cluster__slug",
        "node": "node__name",
        "has_token": ExpressionWrapper(~Q(token=""), output_field=BooleanField()),
    },
    make=lambda keys, _moment: {"address": path("endpoints", str(keys["key"]))},
    made=("address",),
    needed={"key": "pk"},
)
ENDPOINT_SORTS = {name: name for name in ("url", "state", "last_ok", "failures", "name")} | {"id": "id"}

EVENTS = columns(
    shapes.EventRow,
    blank=(),
    renamed={},
    make=lambda keys, _moment: {"text": str(NodeEvent.Code(keys["code"]).label)},
    made=("text",),
    needed={"code": "code"},
)
EVENT_SORTS = {"at": "at"}
