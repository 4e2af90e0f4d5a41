"""The clusters, and how much is in each."""

from collections.abc import Collection

import msgspec
from django.db.models import BooleanField, Case, Count, Value, When

from monitoring.models import Cluster, Connection, Endpoint, Node


class ClusterSummary(msgspec.Struct, frozen=True):
    """One cluster in a list of clusters."""

    cluster: Cluster
    nodes: int
    endpoints: int
    failing: bool = False
    """Its API server is to be watched and does not answer."""


def clusters() -> list[ClusterSummary]:
    """All clusters, by name."""
    # One count at a time: two joins at once would multiply nodes by endpoints.
    current = Node.objects.filter(gone_at=None).order_by()
    nodes = dict(current.values_list("cluster").annotate(Count("pk")))
    endpoints = dict(Endpoint.objects.order_by().values_list("cluster").annotate(Count("pk")))
    return [
        ClusterSummary(each, nodes.get(each.pk, 0), endpoints.get(each.pk, 0), each.failing)
        for each in Cluster.objects.annotate(failing=_FAILING)
    ]


_FAILING = Case(
    When(connection__enabled=True, connection__state=Connection.State.FAILING, then=Value(True)),
    default=Value(False),
    output_field=BooleanField(),
)


def cluster(slug: str) -> Cluster:
    """Raises Cluster.DoesNotExist."""
    return Cluster.objects.get(slug=slug)


def cluster_ids(slugs: Collection[str]) -> dict[str, int]:
    """The ids of those that there are, in one query."""
    return dict(Cluster.objects.filter(slug__in=slugs).values_list("slug", "pk"))
