"""The clusters, and how much is in each."""

from collections.abc import Collection

import msgspec
from django.db.models import Count

from monitoring.models import Cluster, Endpoint, Node


class ClusterSummary(msgspec.Struct, frozen=True):
    """One cluster in a list of clusters."""

    cluster: Cluster
    nodes: int
    endpoints: int


def clusters() -> list[ClusterSummary]:
    """All clusters, by name."""
    # One count at a time: two joins at once would multiply nodes by endpoints.
    current = Node.objects.filter(gone_at=None).order_by()
    nodes = dict(current.values_list("cluster").annotate(Count("pk")))
    endpoints = dict(Endpoint.objects.order_by().values_list("cluster").annotate(Count("pk")))
    return [
        ClusterSummary(each, nodes.get(each.pk, 0), endpoints.get(each.pk, 0))
        for each in Cluster.objects.all()
    ]


def cluster(slug: str) -> Cluster:
    """Raises Cluster.DoesNotExist."""
    return Cluster.objects.get(slug=slug)


def cluster_ids(slugs: Collection[str]) -> dict[str, int]:
    """The ids of those that there are, in one query."""
    return dict(Cluster.objects.filter(slug__in=slugs).values_list("slug", "pk"))
