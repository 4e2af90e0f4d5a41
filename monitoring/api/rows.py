"""Rows of lists, straight from the database: tuples of columns become the dicts that the API answers with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from django.db.models import F, Q, TextField, Value
from django.db.models.expressions import Combinable, ExpressionWrapper
from django.db.models.fields import BooleanField
from django.db.models.functions import NullIf
from django.urls import reverse

from monitoring import hot, selectors
from monitoring.api import shapes
from monitoring.models import NodeEvent

Row = dict[str, Any]
MadeOf = Callable[[Row, "Moment"], Any]


class Moment(NamedTuple):
    """What rows are seen against: our clock, and when each node was last heard (by its key), as far as is known."""

    now: datetime
    heard: Mapping[int, float]
    stale_after: float

    def last_seen(self, node: int, stored: datetime) -> datetime:
        heard = self.heard.get(node)
        return stored if heard is None else datetime.fromtimestamp(round(heard, 3), UTC)

    def age(self, node: int, stored: datetime) -> float:
        seen = self.heard.get(node, stored.timestamp())
        return max(0.0, round(self.now.timestamp() - seen, 3))

    def source(self, node: int) -> str:
        return "exporter" if node in self.heard else "store"

    def state(self, node: int, stored: datetime) -> str:
        if node not in self.heard:
            return "no-data"
        return "stale" if self.age(node, stored) > self.stale_after else "ok"


def moment(now: datetime, clusters: Iterable[int]) -> Moment:
    """Now, with what is heard of these clusters' nodes; a store that cannot be reached leaves all at "store"."""
    try:
        store = hot.store()
        blocks = [block for cluster in set(clusters) for block in store.cells(cluster)]
        heard = {node: at for block in blocks for node, at in block.heard().items()}
    except hot.StoreError:
        heard = {}
    return Moment(now, heard, selectors.configuration.stale_after())


class Columns(NamedTuple):
    """How the rows of a list come about: from columns of the database, or made of columns that are read anyway."""

    stored: dict[str, Combinable]
    made: dict[str, MadeOf]
    needed: dict[str, str]
    """Columns by the names under which `made` finds them."""

    def names(self) -> list[str]:
        return [*self.stored, *self.made]

    def choose(self, fields: Sequence[str] | None) -> Columns:
        """Only these fields."""
        if fields is None:
            return self
        return Columns(
            {name: each for name, each in self.stored.items() if name in fields},
            {name: each for name, each in self.made.items() if name in fields},
            self.needed,
        )

    def expressions(self) -> list[Combinable]:
        return [*self.stored.values(), *(F(column) for column in self.needed.values())]

    def rows(self, found: Iterable[Sequence[Any]], seen: Moment) -> list[Row]:
        """The rows of what `expressions` selected."""
        width = len(self.stored)
        made = []
        for each in found:
            row: Row = dict(zip(self.stored, each, strict=False))
            known = dict(zip(self.needed, each[width:], strict=True))
            for name, make in self.made.items():
                row[name] = make(known, seen)
            made.append(row)
        return made


def columns(
    kind: type[msgspec.Struct],
    *,
    blank: Iterable[str],
    renamed: Mapping[str, Combinable],
    made: dict[str, MadeOf],
    needed: dict[str, str],
) -> Columns:
    """Columns for a type: each field from the column of its name, unless renamed or made. "" in `blank` ones is null."""
    stored: dict[str, Combinable] = {}
    for name in kind.__struct_fields__:
        if name in renamed:
            stored[name] = renamed[name]
        elif name not in made:
            stored[name] = NullIf(F(name), Value(""), output_field=TextField()) if name in blank else F(name)
    return Columns(stored, made, needed)


def path(*parts: str) -> str:
    """An address of this API."""
    return reverse("api:root") + "".join(f"{quote(part, safe='')}/" for part in parts)


NODES = columns(
    shapes.NodeRow,
    blank=("uid", "topology_policy", "topology_scope", "cpu_policy", "memory_policy"),
    renamed={"cluster": F("cluster__slug"), "topology": F("topology_id")},
    made={
        "last_seen": lambda row, seen: seen.last_seen(row["key"], row["last_seen"]),
        "state": lambda row, seen: seen.state(row["key"], row["last_seen"]),
        "source": lambda row, seen: seen.source(row["key"]),
        "age": lambda row, seen: seen.age(row["key"], row["last_seen"]),
        "address": lambda row, _seen: path("clusters", row["cluster"], "nodes", row["name"]),
    },
    needed={"key": "pk", "last_seen": "last_seen", "cluster": "cluster__slug", "name": "name"},
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
        *("device_nodes", "pinning"),
    ),
    renamed={"id": F("container_id"), "cluster": F("node__cluster__slug"), "node": F("node__name")},
    made={
        "age": lambda row, seen: seen.age(row["key"], row["updated"]),
        "source": lambda row, seen: seen.source(row["key"]),
        "address": lambda row, _seen: path("clusters", row["cluster"], "nodes", row["node"], "containers"),
    },
    needed={
        "key": "node_id",
        "updated": "updated",
        "cluster": "node__cluster__slug",
        "node": "node__name",
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
    blank=("name", "error", "remedy", "conflict"),
    renamed={
        "id": F("pk"),
        "cluster": F("cluster__slug"),
        "node": F("node__name"),
        "has_token": ExpressionWrapper(~Q(token=""), output_field=BooleanField()),
    },
    made={"address": lambda row, _seen: path("endpoints", str(row["key"]))},
    needed={"key": "pk"},
)
ENDPOINT_SORTS = {name: name for name in ("url", "state", "last_ok", "failures", "name")} | {"id": "id"}

EVENTS = columns(
    shapes.EventRow,
    blank=(),
    renamed={},
    made={"text": lambda row, _seen: str(NodeEvent.Code(row["code"]).label)},
    needed={"code": "code"},
)
EVENT_SORTS = {"at": "at"}
