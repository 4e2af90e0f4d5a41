"""Nodes that leave without anybody saying so, what nobody keeps true any more, and the newest state of all who left."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from monitoring import hot
from monitoring.history import retention
from monitoring.models import Cluster, Connection, KubernetesNode, Node, NodeEvent, Pod, SourceView
from monitoring.services import identity

log = structlog.get_logger(__name__)
AT_ONCE = 500
LINGER = timedelta(days=1)
"""How long after a node left its state is looked for again: a round under way may have brought it back."""


def silent(now: datetime, hours: int) -> int:
    """Marks nodes gone that did not answer for so long, but for those that an API server has; how many."""
    found = Node.objects.filter(
        gone_at=None, last_seen__lt=now - timedelta(hours=hours), kubernetes__isnull=True
    )
    return sum(_leave(node, now) for node in found.order_by("pk")[:AT_ONCE])


def unread(now: datetime) -> int:
    """Removes what was read from API servers whose connection somebody deleted: nobody keeps it true. How many rows went.

    What happened (events, refusals) stays as long as it would otherwise; nodes that an exporter tells of stay.
    """
    without = Cluster.objects.exclude(pk__in=Connection.objects.values("cluster"))
    gone = retention.in_batches(Pod.objects.filter(cluster__in=without))
    gone += retention.in_batches(SourceView.objects.filter(node__cluster__in=without))
    gone += retention.in_batches(KubernetesNode.objects.filter(node__cluster__in=without))
    never = Node.objects.filter(
        cluster__in=without, gone_at=None, topology__isnull=True, kubernetes__isnull=True
    )
    return gone + sum(_leave(node, now) for node in never.order_by("pk")[:AT_ONCE])


def _leave(node: Node, now: datetime) -> bool:
    with transaction.atomic():
        left = Node.objects.filter(pk=node.pk, gone_at=None, last_seen=node.last_seen).update(gone_at=now)
        if left:
            node.container_rows.all().delete()
            identity.event(node.pk, now, NodeEvent.Code.GONE, {})
    return bool(left)


def forget_left(now: datetime) -> None:
    """Drops the newest state of every node that left lately."""
    left = Node.objects.filter(gone_at__gte=now - LINGER).values_list("pk", flat=True)
    forget_states(list(left))


def forget_states(nodes: Collection[int]) -> None:
    """Drops the newest state of these nodes. A store that is away drops it itself after a while, or the next housekeeping does."""
    try:
        hot.store().forget(nodes)
    except hot.StoreError as error:
        log.warning("the hot store does not forget", nodes=len(nodes), error=str(error))
