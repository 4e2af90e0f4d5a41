"""What runs now and then: making history compact, forgetting what is too old, retiring nodes that stay silent."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, QuerySet

from monitoring import history, selectors
from monitoring.history import retention, spans
from monitoring.models import ClusterEvent, Failure, NodeEvent, Placement, Pod
from monitoring.services import retiring

DAY = 86400


def compact_history(now: datetime) -> int:
    """Compacts and rolls up what is over; how much was made. Two at once do the same, each row once."""
    moment = int(now.timestamp())
    return history.compact(moment) + history.roll_up(moment)


def forget(now: datetime) -> int:
    """Removes what is older than administrators want, and retires nodes that did not answer for long."""
    wanted, moment = selectors.settings(), int(now.timestamp())
    keep = {
        spans.detail().step: wanted.detail_hours * 3600,
        spans.MINUTES.step: wanted.minute_days * DAY,
        spans.QUARTERS.step: wanted.quarter_days * DAY,
    }
    limit = now - timedelta(days=wanted.placement_days)
    gone = history.forget(moment, keep)
    gone += retention.in_batches(NodeEvent.objects.filter(at__lt=limit))
    gone += retention.in_batches(Placement.objects.filter(until__lt=limit))
    gone += retention.in_batches(
        ClusterEvent.objects.filter(last__lt=now - timedelta(days=wanted.event_days))
    )
    gone += retention.in_batches(_over(now - timedelta(days=wanted.failure_days)))
    gone += retiring.unread(now)
    retiring.silent(now, wanted.gone_hours)
    retiring.forget_left(now)
    return gone


def _over(limit: datetime) -> QuerySet[Failure]:
    """Lines without a new refusal since then, and without a pod that is still there for somebody to clean up."""
    there = Pod.objects.filter(
        cluster=OuterRef("cluster"),
        namespace=OuterRef("namespace"),
        node_name=OuterRef("node_name"),
        phase="Failed",
        reason=OuterRef("reason"),
    )
    return Failure.objects.filter(~Exists(there), last__lt=limit)
