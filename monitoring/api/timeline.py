"""One figure of a node over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.http import HttpResponse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from monitoring import selectors
from monitoring.api import base, document, shapes
from monitoring.api.node import current
from monitoring.history.metrics import METRICS

POINTS = 300
MOST_POINTS = 2000
HOUR = timedelta(hours=1)
UNITS = {
    "busy": "share",
    "busy_max": "share",
    "pinned": "CPUs",
    "memory_used": "bytes",
    "memory_free": "bytes",
    "memory_file": "bytes",
    "remote_pages_rate": "pages per second",
    "crossing": "containers",
}


class NodeHistory(base.ApiView):
    """One figure of a node over time, by NUMA node

    Without `start` and `end` the last hour. Older history is coarser; `resolution` says how coarse.
    """

    answers = {"GET": shapes.History}
    parameters = (
        document.choice("metric", list(METRICS), "What; busy without it."),
        document.moment("start", "From here."),
        document.moment("end", "To here."),
        document.number("points", 2, MOST_POINTS, f"Most values of one NUMA node, {POINTS} without it."),
    )

    def get(self, request: Request, cluster: str, node: str) -> HttpResponse:
        metric = request.query_params.get("metric", "busy")
        if metric not in METRICS:
            raise ValidationError({"metric": [_("There are: %(names)s.") % {"names": ", ".join(METRICS)}]})
        start, end = span(request, timezone.now())
        points = base.number(request, "points", POINTS, 2, MOST_POINTS)
        found = selectors.history(current(cluster, node), metric, start, end, points)
        return base.respond(
            request,
            shapes.History(
                metric=metric,
                unit=UNITS[metric],
                start=start,
                end=end,
                resolution=found.resolution,
                source=found.source,
                error=found.error or None,
                times=found.times,
                series=found.values,
            ),
        )


def span(request: Request, now: datetime) -> tuple[datetime, datetime]:
    """From when to when, within what may be kept. Raises ValidationError naming the parameter."""
    end = min(moment(request, "end") or now, now)
    start = moment(request, "start") or end - HOUR
    if start >= end:
        raise ValidationError({"start": [_("It must lie before “end”, and “end” not after now.")]})
    oldest = now - timedelta(days=selectors.settings().quarter_days)
    return max(start, oldest) if oldest < end else end - HOUR, end


def moment(request: Request, name: str) -> datetime | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or not 1970 < found.year < 9999:
        raise ValidationError({name: [_("This is no moment such as 2026-11-30T08:00:00Z.")]})
    return found if found.tzinfo else found.replace(tzinfo=UTC)
