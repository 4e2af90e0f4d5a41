"""Pods that kubelets refused, a line for each owner, node and reason; and pods that were admitted and do not start.

Failures are rows that the watcher wrote (`monitoring.models.Failure`); how many of their pods are still there is counted in the table of
pods. A loop of an owner that makes one pod after the other is one line, however many pods it burnt through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import msgspec
from django.db.models import Case, CharField, Count, Exists, F, Max, Min, OuterRef, QuerySet, Sum, Value, When

from monitoring.kube.resources import PODS
from monitoring.models import Cluster, Connection, Failure, Node, Pod, WatchHealth

RECENT = timedelta(hours=24)
MOST_RECENT = 5_000
"""Lines that are looked at for a summary of the last day."""
MOST_CHOICES = 500
FAILED = "Failed"
WAITING = ("Pending", "Running")
"""Phases of a pod whose containers may still start."""


class Key(NamedTuple):
    """What makes one line."""

    namespace: str
    owner_kind: str
    owner_name: str
    node_name: str
    reason: str


KEY = Key._fields


def lines(cluster: Cluster) -> QuerySet[Failure]:
    """Every line of a cluster."""
    return Failure.objects.filter(cluster=cluster)


def key_of(line: Failure) -> Key:
    return Key(*(getattr(line, name) for name in KEY))


def still(cluster: int, nodes: Collection[str] | None = None) -> dict[Key, int]:
    """How many pods of each line are still there, in one query; lines without any are left out. `nodes`: only of these."""
    found = _owned(Pod.objects.filter(cluster=cluster, phase=FAILED))
    if nodes is not None:
        found = found.filter(node_name__in=nodes)
    counted = found.order_by().values_list(*OWNED).annotate(pods=Count("pk"))
    return {Key(*key): pods for *key, pods in counted}


def known(cluster: Cluster, column: str) -> list[str]:
    """The different values of a column of a cluster's lines, for a person to choose from."""
    found = lines(cluster).order_by(column).values_list(column, flat=True).distinct()
    return list(found[:MOST_CHOICES])


def remaining(cluster: Cluster, reasons: Collection[str]) -> int:
    """How many pods with these reasons are still there, of any line."""
    return Pod.objects.filter(cluster=cluster, phase=FAILED, reason__in=reasons).count()


def pods_of(cluster: Cluster, wanted: Iterable[Failure]) -> Iterator[Pod]:
    """The failed pods of some lines that are still there, oldest first."""
    keys = {key_of(line) for line in wanted}
    failed = _owned(Pod.objects.filter(cluster=cluster, phase=FAILED)).order_by("created", "pk")
    for pod in failed.defer("resources").iterator(chunk_size=2_000):
        kind, name = pod.line_kind, pod.line_name  # type: ignore[attr-defined]  # annotated by `_owned`
        if Key(pod.namespace, kind, name, pod.node_name, pod.reason) in keys:
            yield pod


def newest_pod(line: Failure) -> Pod | None:
    """The newest pod of a line that is still there."""
    found = _owned(Pod.objects.filter(cluster=line.cluster_id, phase=FAILED, node_name=line.node_name))
    wanted = dict(zip(OWNED, key_of(line), strict=True))
    return found.filter(**wanted).order_by(F("created").desc(nulls_last=True), "-pk").first()


def names(cluster: int, uids: Collection[str]) -> dict[str, str]:
    """Namespace and name of pods by their uid, of those that are still there."""
    if not uids:
        return {}
    found = Pod.objects.filter(cluster=cluster, uid__in=uids).values_list("uid", "namespace", "name")
    return {uid: f"{namespace}/{name}" for uid, namespace, name in found}


def of_owners(cluster: Cluster, owners: Collection[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
    """How many pods of these owners (namespace, kind, name) kubelets ever refused, in one query; those without any are left out."""
    if not owners:
        return {}
    found = lines(cluster).filter(
        namespace__in={each[0] for each in owners}, owner_name__in={each[2] for each in owners}
    )
    counted = (
        found.order_by().values_list("namespace", "owner_kind", "owner_name").annotate(pods=Sum("count"))
    )
    return {key: pods for *parts, pods in counted if (key := (parts[0], parts[1], parts[2])) in owners}


def nodes_among(cluster: int, names: Collection[str]) -> set[str]:
    """Those of the names that current nodes have."""
    return set(
        Node.objects.filter(cluster=cluster, gone_at=None, name__in=names).values_list("name", flat=True)
    )


OWNED = ("namespace", "line_kind", "line_name", "node_name", "reason")


def _owned(pods: QuerySet[Pod]) -> QuerySet[Pod]:
    """Pods with the owner of their line: a pod that nobody owns is its own."""
    return pods.annotate(
        line_kind=_else("owner_kind", Value("Pod")),
        line_name=_else("owner_name", F("name")),
    )


def _else(column: str, other: Value | F) -> Case:
    return Case(When(**{column: ""}, then=other), default=F(column), output_field=CharField())


# ---------------------------------------------------------------- admitted, and does not start


def starting(cluster: Cluster) -> QuerySet[Pod]:
    """Pods that were admitted and whose containers the runtime cannot start, or that end again and again."""
    waiting = Pod.objects.filter(cluster=cluster, phase__in=WAITING, reason__in=Pod.START_FAILURES)
    return _owned(waiting)


def grouped(pods: QuerySet[Any]) -> QuerySet[Any, Any]:
    """Those of `starting` by owner, node and reason: how many, the first and the newest."""
    here = Node.objects.filter(gone_at=None, cluster=OuterRef("cluster"), name=OuterRef("node_name"))
    counted = pods.order_by().annotate(has_page=Exists(here)).values(*OWNED, "has_page")
    summed = {"pods": Count("pk"), "first": Min("created"), "last": Max("created"), "example": Max("name")}
    found: QuerySet[Any, Any] = counted.annotate(**summed)
    return found


# ---------------------------------------------------------------- at one glance


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """What was refused in the last day, and what does not start now."""

    lines: int
    owners: int
    nodes: int
    reasons: tuple[str, ...]
    """The most frequent first."""
    not_starting: int
    """Pods."""
    watched: Watched
    """Whether refusals would be seen at all."""


def recent(cluster: Cluster, now: datetime) -> Recent:
    """Lines with a refusal in the last 24 hours; of more than MOST_RECENT only these are looked at."""
    newest = lines(cluster).filter(last__gte=now - RECENT).order_by("-last")
    found = [Key(*each) for each in newest.values_list(*KEY)[:MOST_RECENT]]
    reasons: dict[str, int] = {}
    for each in found:
        reasons[each.reason] = reasons.get(each.reason, 0) + 1
    return Recent(
        lines=len(found),
        owners=len({each[:3] for each in found}),
        nodes=len({each.node_name for each in found}),
        reasons=tuple(sorted(reasons, key=lambda reason: (-reasons[reason], reason))),
        not_starting=starting(cluster).count(),
        watched=watched(cluster),
    )


# ---------------------------------------------------------------- whether anybody would know


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Whether refusals of this cluster would be seen.

    none: it has no connection; off: it is switched off; no-right: pods may not be listed (`rights`: which rights are missing);
    failing: the API server does not answer (`cause`, `remedy`); listing: not all pods were told yet; ok: all were, at `since`.
    """

    state: Literal["none", "off", "no-right", "failing", "listing", "ok"]
    rights: tuple[str, ...] = ()
    cause: str = ""
    remedy: str = ""
    since: datetime | None = None
    pods: int | None = None


def watched(cluster: Cluster) -> Watched:
    """How pods of this cluster are known."""
    connection = Connection.objects.filter(cluster=cluster).first()
    if connection is None:
        return Watched(state="none")
    if not connection.enabled:
        return Watched(state="off")
    health = WatchHealth.objects.filter(connection=connection, resource=PODS.name).first()
    since = health.listed if health else None
    rights = tuple(
        f"{each['verb']} {each['resource']}"
        for each in connection.missing
        if each.get("resource") == PODS.plural and not each.get("group") and not each.get("subresource")
    )
    if rights or (health and health.state == WatchHealth.State.FORBIDDEN):
        return Watched(
            state="no-right",
            rights=rights or ("list pods",),
            cause=health.error if health else "",
            since=since,
        )
    if connection.state == Connection.State.FAILING:
        return Watched(state="failing", cause=connection.error, remedy=connection.remedy, since=since)
    if health is None or health.listed is None:
        return Watched(state="listing")
    return Watched(state="ok", since=since, pods=health.objects_known)
