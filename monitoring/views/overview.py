"""The first pages: the overview of a cluster, the list of clusters, and the way to the first of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from monitoring import selectors
from monitoring.figures import attention, fleet, headlines
from monitoring.views import columns
from monitoring.views.base import ClusterPage, ClusterView, Page, Reader
from monitoring.views.saving import Table


class Home(Reader):
    """To the overview of the first cluster that has nodes; to the list where there is none."""

    def get(self, _request: HttpRequest) -> HttpResponse:
        found = selectors.clusters()
        if not found:
            return redirect("clusters")
        first = next((each for each in found if each.nodes), found[0])
        return redirect("overview", cluster=first.cluster.slug)


class Clusters(Page):
    """All clusters; without any it says how to add one."""

    template_name = "monitoring/clusters.html"
    title = _("Clusters")


class Overview(ClusterPage):
    """Is something wrong?"""

    template_name = "monitoring/overview.html"
    title = _("Overview")

    def get_template_names(self) -> list[str]:
        htmx = getattr(self.request, "htmx", None)
        return ["monitoring/parts/overview_all.html"] if htmx else [str(self.template_name)]

    def tables(self) -> Mapping[str, Table]:
        return {
            "room": Table(columns.ROOM, lambda: selectors.overview(self.cluster, timezone.now()).room.sizes)
        }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = selectors.overview(self.cluster, timezone.now())
        totals = found.totals
        headline = headlines.of_cluster(
            nodes=totals.nodes,
            without_data=totals.nodes_without_data,
            crossing=totals.crossing or 0,
            exclusive=totals.exclusive_crossing or 0,
            worst=worst_crossing(found),
            other=found.attention_total,
        )
        return super().get_context_data(
            overview=found,
            totals=totals,
            headline=headline,
            attention=attention.told(found.attention),
            attention_more=max(0, found.attention_total - len(found.attention)),
            components=attention.components(found.components),
            policies=policy_shares(found.policies, totals.nodes),
            fleet=fleet.fleet(found),
            worst_cost=max([2.0, *(each.cost for each in found.worst if each.cost)]),
            **kwargs,
        )


def worst_crossing(found: selectors.Overview) -> float | None:
    """The highest cost of a container that crosses; those that float have no place that they left."""
    costs = (each.values.get("cost") for each in found.attention if each.code == "container-crossing")
    return max((cost for cost in costs if cost is not None), default=None)


class Fleet(ClusterView):
    """The tiles anew, for a page whose inventory changed."""

    def get(self, _request: HttpRequest, **_kwargs: Any) -> JsonResponse:
        return JsonResponse(fleet.fleet(selectors.overview(self.cluster, timezone.now())))


def policy_shares(policies: dict[str, int], nodes: int) -> list[tuple[str, int, float]]:
    """Policies, strict ones first, with how many nodes and which share of all have them."""
    ordered = sorted(policies.items(), key=lambda item: fleet.rank(item[0]))
    return [(policy, count, count / nodes) for policy, count in ordered]
