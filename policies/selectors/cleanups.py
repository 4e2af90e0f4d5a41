"""Reads of clean-ups, for their pages and REST."""

from django.db.models import Count, QuerySet

from monitoring.models import Cluster
from policies.models import Cleanup, CleanupPod

MOST_OWNERS = 50
"""Owners that are named; the number of pods counts all."""


def cleanups(cluster: Cluster) -> QuerySet[Cleanup]:
    """Clean-ups of a cluster, previews too, newest first."""
    return Cleanup.objects.filter(cluster=cluster).select_related("cluster")


def cleanup_counts(cleanup: Cleanup) -> dict[str, int]:
    """Pods by what became of them; all outcomes are there."""
    found = dict(cleanup.pods.order_by().values_list("outcome").annotate(Count("pk")))
    return {outcome: found.get(outcome, 0) for outcome in CleanupPod.Outcome.values}


def cleanup_owners(cleanup: Cleanup) -> dict[str, int]:
    """Pods by owner ("namespace/kind name"), most first; at most MOST_OWNERS of them."""
    owners: dict[str, int] = {}
    for namespace, kind, owner in cleanup.pods.values_list("namespace", "owner_kind", "owner_name"):
        name = f"{namespace}/{kind} {owner}" if kind else f"{namespace}/Pod"
        owners[name] = owners.get(name, 0) + 1
    return dict(sorted(owners.items(), key=lambda item: (-item[1], item[0]))[:MOST_OWNERS])
