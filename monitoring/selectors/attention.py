"""What of a cluster a person should look at, the worst first; codes for which pages have sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec
from django.db.models import F, Q

from monitoring import hot
from monitoring.models import Cluster, Container, Endpoint
from monitoring.selectors import failures, inventory, kubernetes

MOST = 50
"""Of each kind of attention; the totals tell how many there are."""

EACH = 3
"""So many nodes without an exporter are named one by one."""

Level = Literal["danger", "warning", "info"]


class Silent(Protocol):
    """A tile of a node, as far as it matters here."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def age(self) -> float | None: ...


class Attention(msgspec.Struct, frozen=True):
    """Something that a person should look at: `code` has a sentence, `values` what the sentence needs."""

    level: Level
    code: str
    values: dict[str, Any] = {}
    node: str = ""
    container_id: str = ""


def crossing(cluster: Cluster) -> list[Attention]:
    found = inventory.containers(cluster).filter(crossing=True)
    rows = found.order_by(F("cost").desc(nulls_last=True), "pk")[:MOST]
    return [
        Attention(
            "danger" if each.kind == Container.Kind.EXCLUSIVE else "warning",
            "container-crossing",
            {
                "container": str(each),
                "cpu": each.cross_cpu,
                "memory": each.cross_memory,
                "device": each.cross_device,
                "cost": each.cost,
                "locality": each.locality,
            },
            each.node.name,
            each.container_id,
        )
        for each in rows
    ]


def shown(attention: list[Attention]) -> int:
    return sum(1 for each in attention if each.code == "container-crossing")


def refusals(found: failures.Recent) -> list[Attention]:
    """Pods that kubelets refused lately, and pods that do not start: one entry each, however many they are."""
    entries = []
    if found.lines:
        values = {
            "lines": found.lines,
            "owners": found.owners,
            "nodes": found.nodes,
            "reasons": ", ".join(found.reasons),
        }
        entries.append(Attention("danger", "admission-refused", values))
    if found.not_starting:
        entries.append(Attention("warning", "not-starting", {"pods": found.not_starting}))
    return entries


def endpoints(cluster: Cluster) -> list[Attention]:
    wrong = Endpoint.objects.filter(
        Q(state=Endpoint.State.FAILING) | ~Q(conflict=""), cluster=cluster, enabled=True
    )
    found = []
    for each in wrong.select_related("node")[:MOST]:
        values: dict[str, Any] = {
            "endpoint": str(each),
            "url": each.url,
            "cause": each.error,
            "remedy": each.remedy,
        }
        node = each.node.name if each.node else ""
        if each.conflict:
            values = {**values, "cause": each.conflict}
            found.append(Attention("danger", "endpoint-conflict", values, node))
        else:
            values = {**values, "since": each.last_ok, "failures": each.failures}
            found.append(Attention("danger", "endpoint-failing", values, node))
    return found


def stale(tiles: Iterable[Silent]) -> list[Attention]:
    silent = [tile for tile in tiles if tile.state != "ok"]
    return [
        Attention("warning", f"node-{tile.state}", {"age": tile.age}, tile.name) for tile in silent[:MOST]
    ]


def unheard(names: Sequence[str]) -> list[Attention]:
    """Each by its name, or, where the exporter is not installed yet, all of them in one line."""
    if len(names) > EACH:
        return [Attention("warning", "nodes-unheard", {"count": len(names)})]
    return [Attention("warning", "node-unheard", {}, name) for name in names]


def contradicted(cluster: Cluster) -> list[Attention]:
    return [
        Attention(
            "warning",
            "sources-contradict",
            {"fact": each.fact, "exporter": each.exporter, "source": each.source, "other": each.other},
            each.node,
        )
        for each in kubernetes.contradictions(cluster, MOST)
    ]


def connection(found: kubernetes.Reached, untold: int) -> list[Attention]:
    """What of the connection to the cluster needs a look, and how many running pods nobody tells the placement of."""
    entries = []
    if found.state == "failing" and found.connection is not None:
        values = {"cause": found.connection.error, "remedy": found.connection.remedy}
        entries.append(Attention("danger", "kubernetes-failing", values))
    if found.state == "partial" and found.connection is not None:
        rights = ", ".join(map(kubernetes.right_of, found.connection.missing))
        waiting = ", ".join(each.resource for each in found.watches if each.state == "waiting")
        if rights:
            entries.append(Attention("warning", "rights-missing", {"rights": rights}))
        if waiting:
            entries.append(Attention("warning", "watch-waiting", {"resources": waiting}))
    if untold:
        entries.append(Attention("warning", "pods-untold", {"pods": untold}))
    return entries


def of_nodes(rows: list[dict[str, Any]]) -> list[Attention]:
    against = [row for row in rows if row["contradictions"]][:MOST]
    unread = [row for row in rows if row["problems"]][:MOST]
    return [
        *(
            Attention("warning", "policy-contradiction", {"count": r["contradictions"]}, r["name"])
            for r in against
        ),
        *(Attention("info", "reader-problems", {"count": r["problems"]}, r["name"]) for r in unread),
    ]


def service(counts: Mapping[str, int], failure: str, refused: hot.Note | None) -> list[Attention]:
    """`failure` of the hot store; `refused`: what the database did not take."""
    found = []
    if refused is not None:
        found.append(Attention("danger", "database-refuses", {"refusal": refused.code}))
    if failure:
        found.append(Attention("danger", "store-unreachable", {"cause": failure}))
    if dropped := counts.get("samples_dropped"):
        found.append(Attention("warning", "samples-dropped", {"count": dropped}))
    return found
