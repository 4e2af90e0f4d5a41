"""What runs now and then: making history compact, forgetting what is too old, retiring nodes that stay silent."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitoring import history, hot, selectors
from monitoring.history import retention, spans
from monitoring.models import NodeEvent, Placement
from monitoring.services import endpoints

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
    if retired := endpoints.retire(now, wanted.gone_hours):
        hot.store().forget(retired)
    return gone
