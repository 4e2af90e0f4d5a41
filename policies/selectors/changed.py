"""Which nodes stand as the product changed them: what has to go back before it is removed."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Case, CharField, Count, Exists, Min, OuterRef, Q, QuerySet, Value, When

from monitoring.models import Cluster
from monitoring.selectors import inventory
from policies.models import Original

THERE, GONE, REPLACED = "there", "gone", "replaced"
WHERES = (THERE, GONE, REPLACED)
"""Of a changed node: it is in the cluster, is not any more, or another machine has its name."""


def changed(cluster: Cluster) -> QuerySet[Original]:
    """Files of nodes that are not back at their original, in the order of the nodes' names; `where` as above."""
    named = inventory.nodes(cluster).order_by().filter(name=OuterRef("node_name"))
    same = named.filter(Q(uid=OuterRef("uid")) | Q(uid=""))
    where = Case(
        When(Exists(same), then=Value(THERE)),
        When(Exists(named), then=Case(When(uid="", then=Value(THERE)), default=Value(REPLACED))),
        default=Value(GONE),
        output_field=CharField(),
    )
    found = Original.objects.filter(cluster=cluster, restored=None).annotate(where=where)
    return found.select_related("cluster").order_by("node_name", "pk")


def changed_nodes(cluster: Cluster) -> tuple[int, datetime | None]:
    """How many nodes stand changed, and since when the first of them does."""
    found = Original.objects.filter(cluster=cluster, restored=None)
    counted = found.aggregate(nodes=Count("node_name", distinct=True), since=Min("taken"))
    return counted["nodes"], counted["since"]


def staying(cluster: Cluster) -> QuerySet[Original]:
    """Those that no rollout reaches."""
    return changed(cluster).exclude(where=THERE)  # type: ignore[misc]  # annotated above
