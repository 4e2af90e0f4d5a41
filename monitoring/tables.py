"""The tables of nodes and containers: columns, their order and how they sort. A template writes a whole row."""

from __future__ import annotations

from typing import Any, ClassVar

import django_tables2 as tables
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _
from django_tables2.data import TableQuerysetData

from monitoring import selectors

PAGE_SIZES = (10, 20, 50, 100)


class Sorted(tables.Column):
    """A column that puts unknown values last, whichever way it is sorted."""

    def __init__(self, by: str, name: Any, *, number: bool = False) -> None:
        super().__init__(
            verbose_name=name, order_by=(by,), attrs={"th": {"class": "text-end"}} if number else {}
        )
        self.by = by

    def order(self, rows: QuerySet[Any], is_descending: bool) -> tuple[QuerySet[Any], bool]:
        return rows.order_by(*selectors.order(rows.model, self.by, descending=is_descending)), True


class Rows(TableQuerysetData):
    """Rows of a long list, of which a page is read and never the whole."""

    def __getitem__(self, part: slice) -> QuerySet[Any]:
        return selectors.stretch(self.data, part.start, part.stop, len(self))


class NodeTable(tables.Table):
    """A row for each node: the columns of the documents' cluster NUMA monitoring, and the age of what they say."""

    row_template: ClassVar[str] = "numa/rows/node.html"

    name = Sorted("name", _("Node"))
    numa_nodes = Sorted("numa_nodes", _("NUMA nodes"), number=True)
    cpus = Sorted("cpus", _("CPUs"), number=True)
    memory_total = Sorted("memory_total", _("Memory"), number=True)
    cpu_allocation = Sorted("cpu_allocation", _("CPU allocation"))
    memory_allocation = Sorted("memory_allocation", _("Memory allocation"))
    busy = Sorted("busy", _("Busy"), number=True)
    topology_policy = Sorted("topology_policy", _("Topology policy"))
    containers = Sorted("containers", _("Containers"), number=True)
    crossing = Sorted("crossing", _("Cross-NUMA containers"), number=True)
    last_seen = Sorted("last_seen", _("Age"), number=True)

    class Meta:
        template_name = "numa/table.html"
        order_by = "name"


class ContainerTable(tables.Table):
    """A row for each container; each leads to its node with the container selected."""

    row_template: ClassVar[str] = "numa/rows/container.html"

    name = Sorted("pod", _("Container"))
    namespace = Sorted("namespace", _("Namespace"))
    node = Sorted("node__name", _("Node"))
    kind = Sorted("kind", _("Class"))
    cpus = Sorted("cpu_count", _("CPU mapping"))
    cpu_nodes = Sorted("cpu_nodes", _("NUMA nodes of its CPUs"))
    memory_nodes = tables.Column(verbose_name=_("Memory by NUMA node"), orderable=False)
    locality = Sorted("locality", _("Locality"), number=True)
    cost = Sorted("cost", _("Cost"), number=True)
    crossing = Sorted("crossing", _("Cross-NUMA"))

    class Meta:
        template_name = "numa/table.html"
        order_by = "-cost"


class PodTable(tables.Table):
    """A row for each pod that the API server has."""

    row_template: ClassVar[str] = "numa/rows/pod.html"

    name = Sorted("name", _("Pod"))
    namespace = Sorted("namespace", _("Namespace"))
    node = Sorted("node_name", _("Node"))
    placement = tables.Column(verbose_name=_("Placement"), orderable=False, empty_values=())
    phase = Sorted("phase", _("Phase"))
    owner = Sorted("owner_name", _("Owner"))
    cpu = Sorted("cpu_request", _("Requested CPUs"), number=True)
    memory = Sorted("memory_request", _("Requested memory"), number=True)
    created = Sorted("created", _("Age"), number=True)

    class Meta:
        template_name = "numa/table.html"
        order_by = "name"
