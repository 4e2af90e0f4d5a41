"""A node that the API server has and no exporter ever told of: what is known of it all the same, and how to get an exporter there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.paginator import Paginator
from django.utils import timezone
from django.utils.translation import gettext as _

from monitoring.figures import saidby, unheard
from monitoring.models import KubernetesNode, Node
from monitoring.selectors import kubernetes, sources
from monitoring.views import columns
from monitoring.views.base import ClusterPage, Crumb
from monitoring.views.saving import Table

PODS_PER_PAGE = 50
MOST_EVENTS = 20


class UnheardPage(ClusterPage):
    """The page of such a node. No tabs: there is no topology, no placement and no kubelet to show."""

    template_name = "monitoring/unheard.html"
    node: Node | None = None
    """The node, of whoever looked it up."""

    def crumbs(self) -> list[Crumb]:
        assert self.node is not None
        way = super().crumbs()[:-1]
        return [*way, Crumb(_("Cluster NUMA monitoring"), self.address("monitoring")), Crumb(self.node.name)]

    def named(self) -> tuple[str, ...]:
        assert self.node is not None
        return (*super().named(), self.node.name)

    def tables(self) -> Mapping[str, Table]:
        node = self.node
        assert node is not None
        return {
            "pods": Table(columns.PODS, lambda: kubernetes.pods_on(self.cluster, node.name)),
            "events": Table(columns.CLUSTER_EVENTS, lambda: kubernetes.events_on(self.cluster, node.name)),
            "sources": Table(columns.SOURCES, lambda: columns.told(*told_by(node))),
            **tables_of_kubernetes(kubernetes.node_of(node)),
        }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        node = self.node
        assert node is not None
        told = kubernetes.node_of(node)
        reached = kubernetes.reached(self.cluster)
        lacking = kubernetes.lacking_by_part(reached.connection)
        rows, sayers = told_by(node)
        pods = Paginator(kubernetes.pods_on(self.cluster, node.name), PODS_PER_PAGE)
        steps = unheard.steps(
            reached.connection,
            lacking.get("exporters", []),
            told,
            kubernetes.nodes_known(self.cluster),
            kubernetes.exporter_at(self.cluster, node.name),
        )
        given = super().get_context_data(
            steps=steps,
            pods=pods.get_page(self.request.GET.get("page")),
            pods_lacking=lacking.get("pods", []),
            events_lacking=lacking.get("events", []),
            cluster_events=kubernetes.events_on(self.cluster, node.name)[:MOST_EVENTS],
            columns=sayers,
            rows=rows,
            lacking=lacking.get("sources", []),
            reached=reached,
            **in_kubernetes(told),
            **{**kwargs, "node": node},
        )
        return given | {"title": node.name}


def told_by(node: Node) -> tuple[list[saidby.Row], list[saidby.Column]]:
    """What sources other than an exporter say of a node."""
    said = sources.voices(node, None, None, None, timezone.now())
    return saidby.rows(sources.facts_of(said), said), saidby.columns(said)


def tables_of_kubernetes(told: KubernetesNode | None) -> dict[str, Table]:
    """The tables of that card."""
    return {
        "conditions": Table(columns.CONDITIONS, lambda: saidby.conditions(told) if told else ()),
        "resources": Table(columns.RESOURCES, lambda: saidby.resources(told) if told else ()),
    }


def in_kubernetes(told: KubernetesNode | None) -> dict[str, Any]:
    """What the card “In Kubernetes” shows; empty where no API server tells of the node."""
    if told is None:
        return {}
    return {
        "told": told,
        "conditions": saidby.conditions(told),
        "resources": saidby.resources(told),
        "taints": saidby.taints(told),
        "labels": saidby.labels(told),
    }
