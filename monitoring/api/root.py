"""Where everything is, the search over everything, and what administrators have set."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse
from django.urls import URLPattern, get_resolver, reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from monitoring import filters, selectors
from monitoring.api import base, document, rows, shapes

MOST_HITS = 100
NAMESPACE = "api"


def listed() -> dict[str, str]:
    """Every address that needs no name of anything, whichever room it is of."""
    _prefix, resolver = get_resolver().namespace_dict[NAMESPACE]
    found = (each for each in resolver.url_patterns if not each.pattern.converters and str(each.pattern))
    names = (each.name for each in found if isinstance(each, URLPattern) and each.name)
    return {name: reverse(f"{NAMESPACE}:{name}") for name in names}


class Start(base.ApiView):
    """Where everything is"""

    answers = {"GET": shapes.Root}

    def get(self, request: Request) -> HttpResponse:
        return base.respond(request, shapes.Root("1", listed()))


class Search(base.ApiView):
    """Clusters, nodes and containers whose names hold a text"""

    answers = {"GET": shapes.Hits}
    parameters = (
        OpenApiParameter(
            "q",
            {"type": "string", "minLength": 2, "maxLength": filters.LONGEST},
            required=True,
            description="Text, in any case.",
        ),
        document.number("limit", 1, MOST_HITS, "Of each kind, 20 without it."),
    )

    def get(self, request: Request) -> HttpResponse:
        text, limit = request.query_params.get("q", ""), base.number(request, "limit", 20, 1, MOST_HITS)
        if not 2 <= len(text.strip()) <= filters.LONGEST or "\0" in text:
            raise ValidationError(
                {"q": [_("At least 2 characters and at most %(most)d.") % {"most": filters.LONGEST}]}
            )
        return base.respond(request, shapes.Hits([hit(each) for each in selectors.search(text, limit)]))


def hit(found: selectors.Hit) -> shapes.Hit:
    parts = ["clusters", found.cluster, *(["nodes", found.node] if found.node else [])]
    return shapes.Hit(
        kind=found.kind,
        label=found.label,
        cluster=found.cluster,
        node=found.node or None,
        container=found.container_id or None,
        address=rows.path(*parts, *(["containers"] if found.container_id else [])),
    )


class Settings(base.ApiView):
    """What administrators have set"""

    answers = {"GET": shapes.SettingsValue}

    def get(self, request: Request) -> HttpResponse:
        held = selectors.settings()
        return base.respond(
            request,
            shapes.SettingsValue(
                busy_threshold=held.busy_threshold,
                detail_hours=held.detail_hours,
                minute_days=held.minute_days,
                quarter_days=held.quarter_days,
                placement_days=held.placement_days,
                event_days=held.event_days,
                failure_days=held.failure_days,
                gone_hours=held.gone_hours,
                prometheus_url=held.prometheus_url or settings.NUMAWEB_PROMETHEUS_URL or None,
                has_prometheus_token=bool(held.prometheus_token),
                collect_period=settings.NUMAWEB_COLLECT_PERIOD,
            ),
        )
