"""Reads of the audit log and of clean-ups, for their pages, exports and REST."""

from datetime import datetime

import msgspec
from django.db.models import Count, Q, QuerySet

from monitoring.models import Cluster
from policies.models import AuditEntry, Cleanup, CleanupPod


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for; an empty value does not restrict."""

    text: str = ""
    actor: str = ""
    action: str = ""
    result: str = ""
    since: datetime | None = None
    until: datetime | None = None


def entries(wanted: Filter) -> QuerySet[AuditEntry]:
    """Entries that fit, newest first."""
    exact = {name: getattr(wanted, name) for name in ("actor", "action", "result") if getattr(wanted, name)}
    found = AuditEntry.objects.filter(**exact)
    if wanted.since:
        found = found.filter(at__gte=wanted.since)
    if wanted.until:
        found = found.filter(at__lte=wanted.until)
    if wanted.text:
        found = found.filter(
            Q(target__icontains=wanted.text)
            | Q(detail__icontains=wanted.text)
            | Q(address__icontains=wanted.text)
            | Q(actor__icontains=wanted.text)
        )
    return found


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("action").values_list("action", flat=True).distinct())


# ---------------------------------------------------------------- clean-ups


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
