"""The tables of nodes and containers: columns, their order and how they sort. Templates write the cells."""

from __future__ import annotations

from typing import Any, ClassVar

import django_tables2 as tables
from django.db.models import F, QuerySet
from django.utils.translation import gettext_lazy as _

from monitoring.models import Container, Node

PAGE_SIZES = (10, 20, 50, 100)
NUMBER = {"th": {"class": "text-end"}, "td": {"class": "text-end nw-figure"}}


class Sorted(tables.TemplateColumn):
    """A column that puts unknown values last, whichever way it is sorted."""

    def __init__(self, by: str, name: str, **options: Any) -> None:
        options.setdefault("template_name", f"numa/cells/{name}.html")
        super().__init__(order_by=(by,), **options)
        self.by = by

    def order(self, rows: QuerySet[Any], is_descending: bool) -> tuple[QuerySet[Any], bool]:
        key = F(self.by).desc(nulls_last=True) if is_descending else F(self.by).asc(nulls_last=True)
        return rows.order_by(key, "pk"), True


class NodeTable(tables.Table):
    """A row for each node: the columns of the documents' cluster NUMA monitoring, and the age of what they say."""

    name = Sorted("name", "node", verbose_name=_("Node"))
    numa_nodes = Sorted("numa_nodes", "whole", verbose_name=_("NUMA nodes"), attrs=NUMBER)
    cpus = Sorted("cpus", "whole", verbose_name=_("CPUs"), attrs=NUMBER)
    memory_total = Sorted("memory_total", "size", verbose_name=_("Memory"), attrs=NUMBER)
    cpu_allocation = Sorted("cpu_allocation", "allocation", verbose_name=_("CPU allocation"))
    memory_allocation = Sorted("memory_allocation", "allocation", verbose_name=_("Memory allocation"))
    busy = Sorted("busy", "share", verbose_name=_("Busy"), attrs=NUMBER)
    topology_policy = Sorted("topology_policy", "policy", verbose_name=_("Topology policy"))
    containers = Sorted("containers", "whole", verbose_name=_("Containers"), attrs=NUMBER)
    crossing = Sorted("crossing", "crossing", verbose_name=_("Cross-NUMA containers"), attrs=NUMBER)
    last_seen = Sorted("last_seen", "age", verbose_name=_("Age"), attrs=NUMBER)

    class Meta:
        model = Node
        fields: ClassVar[tuple[str, ...]] = ()
        template_name = "numa/table.html"
        order_by = "name"


class ContainerTable(tables.Table):
    """A row for each container; each leads to its node with the container selected."""

    name = Sorted("pod", "container", verbose_name=_("Container"))
    namespace = Sorted("namespace", "text", verbose_name=_("Namespace"))
    node = Sorted("node__name", "container_node", verbose_name=_("Node"))
    kind = Sorted("kind", "kind", verbose_name=_("Class"))
    cpus = Sorted("cpu_count", "cpus", verbose_name=_("CPU mapping"))
    cpu_nodes = Sorted("cpu_nodes", "cpu_nodes", verbose_name=_("NUMA nodes of its CPUs"))
    memory_nodes = tables.TemplateColumn(
        template_name="numa/cells/memory_nodes.html", verbose_name=_("Memory by NUMA node"), orderable=False
    )
    locality = Sorted("locality", "share", verbose_name=_("Locality"), attrs=NUMBER)
    cost = Sorted("cost", "times", verbose_name=_("Cost"), attrs=NUMBER)
    crossing = Sorted("crossing", "cross", verbose_name=_("Cross-NUMA"))

    class Meta:
        model = Container
        fields: ClassVar[tuple[str, ...]] = ()
        template_name = "numa/table.html"
        order_by = "-cost"
