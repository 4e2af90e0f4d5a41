"""Pages of what the API server tells: how the connection goes, and the pods of a cluster, told of by an exporter or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from monitoring import filters, tables
from monitoring.figures import connecting, placing
from monitoring.models import Cluster
from monitoring.selectors import kubernetes
from monitoring.views import columns
from monitoring.views.base import ClusterPage
from monitoring.views.lists import Export, ListPage, Nothing
from monitoring.views.saving import Table

POD_COLUMNS = (
    *(
        "namespace",
        "name",
        "uid",
        "kubelet_uid",
        "node_name",
        "told",
        "placement",
        "phase",
        "reason",
        "owner_kind",
        "owner_name",
    ),
    *(
        "scheduler",
        "priority",
        "qos",
        "cpu_request",
        "cpu_limit",
        "memory_request",
        "memory_limit",
        "created",
    ),
)


PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


class ConnectionPage(ClusterPage):
    """Does numaweb read this cluster, and if not, why?"""

    template_name = "monitoring/connection.html"
    part_name: ClassVar[str] = "monitoring/parts/connection.html"
    title = _("Connection to Kubernetes")

    def get_template_names(self) -> list[str]:
        return [self.part_name] if getattr(self.request, "htmx", None) else [str(self.template_name)]

    def tables(self) -> Mapping[str, Table]:
        return {
            "watches": Table(columns.WATCHES, lambda: connecting.watches(kubernetes.reached(self.cluster)))
        }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = kubernetes.reached(self.cluster)
        return super().get_context_data(
            reached=found,
            connection=found.connection,
            headline=connecting.headline(found),
            watches=connecting.watches(found),
            lacks=connecting.lacks(found.connection) if found.connection else [],
            **kwargs,
        )


class PodRows:
    """Pods of the cluster behind the page's filter."""

    request: HttpRequest
    cluster: Cluster

    def filtered(self) -> filters.PodFilter:
        found = kubernetes.pods(self.cluster, timezone.now())
        return filters.PodFilter(self.request.GET, found, request=self.request)


class Pods(PodRows, ListPage):
    """Which pods are there, and of which does nobody tell the placement?"""

    template_name = "monitoring/pods.html"
    title = _("Pods")
    table_class = tables.PodTable
    nothing = (_("No pod is known"), _("None."))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        reached = kubernetes.reached(self.cluster)
        lacking = kubernetes.lacking(self.cluster, "pods")
        given = super().get_context_data(
            reached=reached, lacking=lacking, phases=PHASES, placements=placing.LABELS.items(), **kwargs
        )
        return {**given, "nothing": Nothing(*connecting.no_pods(reached, lacking))}

    def paged(self, table: Any) -> Any:
        table.cluster = self.cluster  # rows have addresses of it
        return super().paged(table)


class PodExport(PodRows, Export):
    """Pods as a file."""

    columns = POD_COLUMNS
    table_class = tables.PodTable
    name = "pods"
