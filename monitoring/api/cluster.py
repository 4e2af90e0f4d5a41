"""Clusters at one glance, and every node of one in one answer."""

from __future__ import annotations

from typing import Any

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from monitoring import selectors
from monitoring.api import base, fleet, rows, shapes
from monitoring.api.explicit import explicit
from monitoring.figures import attention
from monitoring.hot import UNIT, UNKNOWN
from monitoring.models import Topology
from numacore.topology import Topology as Machine
from numacore.topology import dec_hook

SHARES = [round(min(value / UNIT, 1.0), 3) if value != UNKNOWN else None for value in range(256)]


class Overview(base.ApiView):
    """A cluster at one glance: totals, what needs attention, the worst placements, each NUMA node's use"""

    answers = {"GET": shapes.ClusterOverview}

    def get(self, request: Request, cluster: str) -> HttpResponse:
        now = timezone.now()
        found = selectors.overview(base.cluster_of(cluster), now)
        return base.respond(request, overview(found, rows.moment(now, [found.cluster.pk])))


def overview(found: selectors.Overview, seen: rows.Moment) -> dict[str, Any]:
    keys = [each.pk for each in found.worst]
    worst = selectors.containers(found.cluster).filter(pk__in=keys).order_by("-cost")
    return {
        "cluster": found.cluster.slug,
        "taken": seen.now,
        "oldest_age": found.oldest_age,
        "totals": found.totals,
        "worst": rows.CONTAINERS.rows(worst.values_list(*rows.CONTAINERS.expressions()), seen),
        "room": found.room,
        "policies": {policy or "unknown": count for policy, count in found.policies.items()},
        "attention": notes(found),
        "attention_total": found.attention_total,
        "components": components(found),
        "nodes": tiles(found),
    }


def notes(found: selectors.Overview) -> list[shapes.AttentionValue]:
    told = zip(found.attention, attention.told(found.attention), strict=True)
    return [
        shapes.AttentionValue(
            level=each.level,
            code=each.code,
            text=words.text,
            detail=words.detail,
            values=each.values,
            node=each.node or None,
            container=each.container_id or None,
        )
        for each, words in told
    ]


def components(found: selectors.Overview) -> list[shapes.ComponentValue]:
    told = zip(found.components, attention.components(found.components), strict=True)
    return [
        shapes.ComponentValue(each.name, words.text, each.state, words.detail, each.values)
        for each, words in told
    ]


def tiles(found: selectors.Overview) -> list[dict[str, Any]]:
    pinned = [SHARES[value] for value in found.planes.pinned.tolist()]
    busy = [SHARES[value] for value in found.planes.busy.tolist()]
    return [
        {
            "node": tile.name,
            "topology_policy": tile.topology_policy or None,
            "state": tile.state,
            "age": tile.age,
            "crossing": tile.crossing,
            "pinned": pinned[tile.slot : tile.slot + tile.cells],
            "busy": busy[tile.slot : tile.slot + tile.cells],
        }
        for tile in found.tiles
    ]


class Fleet(base.ApiView):
    """Every current node of a cluster in one answer"""

    answers = {"GET": shapes.Fleet}

    def get(self, request: Request, cluster: str) -> HttpResponse:
        held = fleet.of(base.cluster_of(cluster))
        return base.send(request, held.body, held.tag)


class TopologyOf(base.ApiView):
    """The machine behind a topology hash"""

    answers = {"GET": shapes.TopologyDetail}

    def get(self, request: Request, topology: str) -> HttpResponse:
        found = Topology.objects.filter(pk=topology).first()
        if found is None:
            raise NotFound(
                _("No node is or was such a machine; the field “topology” of a node has its hash.")
            )
        return base.respond(
            request,
            explicit(
                shapes.TopologyDetail(
                    hash=found.hash,
                    nodes=selectors.nodes().filter(topology=found).count(),
                    threads_per_core=found.threads_per_core,
                    topology=msgspec.json.decode(found.document, type=Machine, dec_hook=dec_hook),
                )
            ),
        )
