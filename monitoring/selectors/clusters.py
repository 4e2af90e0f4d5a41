"""The clusters, and how much is in each."""

import msgspec
from django.db.models import Count, Q

from monitoring.models import Cluster

CURRENT = Q(nodes__gone_at=None)


class ClusterSummary(msgspec.Struct, frozen=True):
    """One cluster in a list of clusters."""

    cluster: Cluster
    nodes: int
    endpoints: int


def clusters() -> list[ClusterSummary]:
    """All clusters, by name."""
    counted = Cluster.objects.annotate(
        current=Count("nodes", filter=CURRENT, distinct=True), listening=Count("endpoints", distinct=True)
    )
    return [ClusterSummary(each, each.current, each.listening) for each in counted]


def cluster(slug: str) -> Cluster:
    """Raises Cluster.DoesNotExist."""
    return Cluster.objects.get(slug=slug)
