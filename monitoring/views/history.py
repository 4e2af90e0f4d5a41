"""The history of one node as charts: asked for by the history tab, for the stretch of time that the address names."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from monitoring import selectors
from monitoring.figures import causes, charts
from monitoring.forms import SpanForm
from monitoring.selectors import Series
from monitoring.views.node import NodeView

MOST_POINTS = 400
SOURCES = {"store": "numaweb", "prometheus": "Prometheus"}


class History(NodeView):
    """Every chart of the tab. A source that fails is named, and what the own store has is shown instead."""

    def get(self, request: HttpRequest, **_kwargs: Any) -> JsonResponse:
        form = SpanForm(request.GET, timezone.now())
        span = form.span()
        if span is None:
            return JsonResponse({"errors": form.errors}, status=HTTPStatus.BAD_REQUEST)
        found = selectors.histories(self.row(), tuple(charts.TITLES), span.start, span.end, MOST_POINTS)
        return JsonResponse({"charts": {metric: answer(metric, series) for metric, series in found.items()}})


def answer(metric: str, series: Series) -> dict[str, Any]:
    """One chart with where it comes from; without any value a sentence instead."""
    known = any(value is not None for row in series.values.values() for value in row)
    return {
        "note": note(series),
        "figure": charts.chart(metric, series) if known else None,
        "empty": _("Nothing is stored for this range yet. History begins when a node is first heard."),
    }


def note(series: Series) -> str:
    said = _("from %(source)s, a value every %(seconds)s s") % {
        "source": SOURCES[series.source],
        "seconds": series.resolution,
    }
    if not series.error:
        return said
    return _("%(said)s (Prometheus does not answer: %(cause)s)") % {
        "said": said,
        "cause": causes.said(series.error),
    }
