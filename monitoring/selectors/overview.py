"""A cluster at one glance: totals, what needs attention, how the components do, a tile for each node."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec
from django.conf import settings as project
from django.db import connection
from django.db.models import Count, F, Q, Sum

from monitoring import hot
from monitoring.models import Cluster, Container, Endpoint, Node
from monitoring.selectors import (
    attention,
    configuration,
    failures,
    inventory,
    kubernetes,
    ordering,
    storing,
)
from monitoring.selectors.attention import Attention
from monitoring.selectors.room import Room, room

WORST = 10


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the current nodes, as far as they are known: None where there are nodes and none of them tells."""

    nodes: int
    nodes_without_data: int
    numa_nodes: int | None
    cpus: dict[str, int | None]
    """CPUs by ownership: exclusive, reserved, shared, offline, unknown."""
    cpus_total: int | None
    cpus_idle: int | None
    busy: float | None
    """Mean over the CPUs of the nodes that tell."""
    pinned: int | None
    pinnable: int | None
    memory_total: int | None
    memory_used: int | None
    containers: int | None
    exclusive_containers: int | None
    crossing: int | None
    crossing_unknown: int | None
    exclusive_crossing: int | None


class Component(msgspec.Struct, frozen=True):
    """A part of the service. State absent = not configured, which is no fault."""

    name: Literal["exporter", "collector", "kubernetes", "prometheus", "database", "redis"]
    state: Literal["ok", "failing", "absent"]
    values: dict[str, Any] = {}
    cause: str = ""


class Tile(msgspec.Struct, frozen=True):
    """One node in the fleet. `slot` = index of its first cell in the planes, `cells` = how many it has."""

    name: str
    slot: int
    cells: int
    topology_policy: str
    state: Literal["ok", "stale", "no-data"]
    crossing: int | None
    age: float | None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the overview of a cluster shows."""

    cluster: Cluster
    totals: Totals
    oldest_age: float | None
    """Of the nodes that are not stale, seconds."""
    worst: list[Container]
    policies: dict[str, int]
    """Nodes by topology policy, "" = unknown, most first."""
    attention: list[Attention]
    attention_total: int
    refusals: failures.Recent
    room: Room
    untold: int
    """Running pods that no exporter tells of."""
    components: list[Component]
    tiles: list[Tile]
    planes: hot.Planes


def overview(cluster: Cluster, now: datetime) -> Overview:
    """The overview of a cluster."""
    heard, planes, counts, notes, failure = _hot(cluster)
    rows = list(_rows(cluster))
    tiles = [_tile(row, heard.get(row["pk"]), now.timestamp()) for row in rows if row["slot"] is not None]
    unheard = [row["name"] for row in rows if row["slot"] is None]
    refusals = failures.recent(cluster, now)
    refused = storing.refusal(notes, now.timestamp())
    reached, untold = kubernetes.reached(cluster), kubernetes.untold(cluster, now)
    found = [
        *attention.refusals(refusals),
        *attention.crossing(cluster),
        *attention.connection(reached, untold),
        *attention.endpoints(cluster),
        *attention.stale(tiles),
        *attention.unheard(unheard),
        *attention.of_nodes(rows),
        *attention.contradicted(cluster),
        *attention.service(counts, failure, refused),
    ]
    total = len(found) + sum(row["crossing"] or 0 for row in rows) - attention.shown(found)
    ages = [tile.age for tile in tiles if tile.age is not None and tile.state == "ok"]
    return Overview(
        cluster=cluster,
        totals=_totals(cluster, tiles, len(unheard)),
        oldest_age=max(ages, default=None),
        worst=_worst(cluster),
        policies=_policies(rows),
        attention=found,
        attention_total=total,
        refusals=refusals,
        room=room((row["name"], row["free_cpus"]) for row in rows),
        untold=untold,
        components=_components(cluster, tiles, reached, notes, failure, refused),
        tiles=tiles,
        planes=planes,
    )


def _worst(cluster: Cluster) -> list[Container]:
    """The containers that pay most. Services of the system rank only where Kubernetes runs nothing that pays.

    Somebody may ask for another place for a pod; a node's own services are where they are, on each node again.
    """
    order = ordering.order(Container, "cost", descending=True)
    paying = inventory.containers(cluster).filter(cost__gt=1).order_by(*order)
    return list(paying.filter(kubernetes=True)[:WORST]) or list(paying[:WORST])


def _hot(
    cluster: Cluster,
) -> tuple[dict[int, float], hot.Planes, dict[str, int], dict[str, hot.Note], str]:
    """When each node was heard, the planes, counters and notes; and why not, if the store cannot be read."""
    store = hot.store()
    try:
        blocks = store.cells(cluster.pk)
        heard = {node: at for block in blocks for node, at in block.heard().items()}
        return heard, hot.planes(blocks, cluster.cells), store.counts(), store.notes(), ""
    except hot.StoreError as error:
        return {}, hot.planes([], cluster.cells), {}, {}, str(error)


def _rows(cluster: Cluster) -> Any:
    return (
        Node.objects.filter(cluster=cluster, gone_at=None)
        .order_by("slot")
        .values(
            "pk",
            "name",
            "slot",
            "topology_policy",
            "crossing",
            "problems",
            "contradictions",
            "free_cpus",
            cells=F("topology__numa_nodes"),
        )
    )


def _tile(row: dict[str, Any], heard: float | None, now: float) -> Tile:
    age = None if heard is None else max(0.0, now - heard)
    state: Literal["ok", "stale", "no-data"] = "no-data"
    if age is not None:
        state = "stale" if age > configuration.stale_after() else "ok"
    return Tile(row["name"], row["slot"], row["cells"], row["topology_policy"], state, row["crossing"], age)


def _totals(cluster: Cluster, tiles: list[Tile], unheard: int) -> Totals:
    summed = Node.objects.filter(cluster=cluster, gone_at=None).aggregate(
        **{f"sum_{name}": Sum(name) for name in SUMMED},
        busy_cpus=Sum(F("busy") * F("cpus")),
        known_cpus=Sum("cpus", filter=Q(busy__isnull=False)),
    )
    known = {name: summed[f"sum_{name}"] for name in SUMMED}
    if not tiles and not unheard:  # of no nodes there is nothing, and that is known
        known |= dict.fromkeys(COUNTED, 0)
    owners = {name.removeprefix("cpus_"): known[name] for name in OWNERS}
    crossing = inventory.containers(cluster).filter(crossing=True, kind="exclusive").count()
    return Totals(
        nodes=len(tiles) + unheard,
        nodes_without_data=sum(1 for tile in tiles if tile.state != "ok") + unheard,
        numa_nodes=None if unheard and not tiles else sum(tile.cells for tile in tiles),
        cpus=owners,
        cpus_total=known["cpus"],
        cpus_idle=known["cpus_idle"],
        busy=summed["busy_cpus"] / summed["known_cpus"] if summed["known_cpus"] else None,
        pinned=known["pinned"],
        pinnable=known["pinnable"],
        memory_total=known["memory_total"],
        memory_used=known["memory_used"],
        containers=known["containers"],
        exclusive_containers=known["exclusive_containers"],
        crossing=known["crossing"],
        crossing_unknown=known["crossing_unknown"],
        exclusive_crossing=None if known["crossing"] is None else crossing,
    )


OWNERS = ("cpus_exclusive", "cpus_reserved", "cpus_shared", "cpus_offline", "cpus_unknown")
COUNTED = (*OWNERS, "cpus", "containers", "exclusive_containers", "crossing", "crossing_unknown")
SUMMED = (
    *OWNERS,
    "cpus",
    "cpus_idle",
    "pinned",
    "pinnable",
    "memory_total",
    "memory_used",
    "containers",
    "exclusive_containers",
    "crossing",
    "crossing_unknown",
)


def _policies(rows: list[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row["topology_policy"]] = found.get(row["topology_policy"], 0) + 1
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _components(
    cluster: Cluster,
    tiles: list[Tile],
    reached: kubernetes.Reached,
    notes: dict[str, hot.Note],
    failure: str,
    refused: hot.Note | None,
) -> list[Component]:
    listening = Endpoint.objects.filter(cluster=cluster, enabled=True).aggregate(
        total=Count("pk"), ok=Count("pk", filter=Q(state=Endpoint.State.OK, conflict=""))
    )
    redis: Literal["ok", "failing", "absent"] = "absent"
    if project.NUMAWEB_REDIS_LIVE_URL:
        redis = "failing" if failure else "ok"
    return [
        Component(
            "exporter",
            "absent"
            if not listening["total"]
            else "ok"
            if listening["ok"] == listening["total"]
            else "failing",
            {"ok": listening["ok"], "total": listening["total"]},
        ),
        Component("collector", _collector(tiles)),
        _kubernetes(reached),
        _prometheus(notes.get("prometheus")),
        _database(refused),
        Component("redis", redis, cause=failure),
    ]


def _database(refused: hot.Note | None) -> Component:
    """That it can be read is known, or nobody would see this; whether it takes what is written those know who write."""
    if refused is None:
        return Component("database", "ok", {"kind": connection.vendor})
    values = {"kind": connection.vendor, "code": refused.code, "at": refused.at}
    return Component("database", "failing", values)


def _collector(tiles: list[Tile]) -> Literal["ok", "failing", "absent"]:
    if not tiles:
        return "absent"
    return "ok" if any(tile.state == "ok" for tile in tiles) else "failing"


def _kubernetes(found: kubernetes.Reached) -> Component:
    connection = found.connection
    if connection is None or found.state in ("off", "new"):
        return Component("kubernetes", "absent", {"code": found.state})
    values: dict[str, Any] = {"code": found.state, "version": connection.version, "remedy": connection.remedy}
    if found.state == "ok":
        return Component("kubernetes", "ok", values)
    values["missing"] = len(connection.missing)
    return Component("kubernetes", "failing", values, connection.error)


def _prometheus(note: hot.Note | None) -> Component:
    if not (configuration.settings().prometheus_url or project.NUMAWEB_PROMETHEUS_URL):
        return Component("prometheus", "absent")
    if note is None or note.ok:
        return Component("prometheus", "ok", {"at": note.at if note else None})
    return Component("prometheus", "failing", {"code": note.code, "at": note.at}, note.text)
