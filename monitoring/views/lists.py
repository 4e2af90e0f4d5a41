"""The lists of a cluster: cluster NUMA monitoring (nodes) and containers, with filter, sorting, pages and exports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import django_tables2
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _
from django_filters import FilterSet

from monitoring import filters, selectors, tables
from monitoring.figures import fleet
from monitoring.models import Cluster
from monitoring.views import exports, misread
from monitoring.views.base import ClusterPage, ClusterView

NODE_COLUMNS = (
    *(
        "name",
        "uid",
        "sockets",
        "numa_nodes",
        "cpus",
        "memory_total",
        "memory_used",
        "cpu_requested",
        "cpu_allocatable",
    ),
    *(
        "cpu_allocation",
        "memory_allocation",
        "busy",
        "pinned",
        "pinnable",
        "topology_policy",
        "topology_scope",
    ),
    *("cpu_policy", "memory_policy", "containers", "exclusive_containers", "crossing", "crossing_unknown"),
    *("worst_cost", "last_seen"),
)
CONTAINER_COLUMNS = (
    *(
        "node__name",
        "namespace",
        "pod",
        "name",
        "container_id",
        "pod_uid",
        "told_by_api",
        "owner_kind",
        "owner_name",
        "runtime",
        "qos",
        "kind",
        "cpus",
        "cpu_count",
    ),
    *(
        "cpu_nodes",
        "memory_nodes",
        "device_nodes",
        "locality",
        "cost",
        "remote_pages",
        "crossing",
        "cross_cpu",
    ),
    *("cross_memory", "cross_device", "cpu_use", "memory", "pinning", "updated"),
)


class Chip(NamedTuple):
    """A filter in force, and the address without it."""

    label: str
    value: str
    url: str


class Nothing(NamedTuple):
    """Why a list is empty, and what to do."""

    title: str
    remedy: str


class NodeRows:
    """Nodes of the cluster behind the page's filter."""

    request: HttpRequest
    cluster: Cluster

    def filtered(self) -> filters.NodeFilter:
        return filters.NodeFilter(self.request.GET, selectors.nodes(self.cluster), request=self.request)


class ContainerRows:
    """Containers of the cluster behind the page's filter."""

    request: HttpRequest
    cluster: Cluster

    def filtered(self) -> filters.ContainerFilter:
        return filters.ContainerFilter(
            self.request.GET, selectors.containers(self.cluster), request=self.request
        )


class ListPage(ClusterPage):
    """A table with a filter; the part that changes comes alone when htmx asks for it."""

    table_class: type[django_tables2.Table]
    part_name: ClassVar[str] = "monitoring/parts/list.html"
    nothing: ClassVar[tuple[Promise, Promise]]

    def filtered(self) -> FilterSet:
        raise NotImplementedError

    def get_template_names(self) -> list[str]:
        htmx = getattr(self.request, "htmx", None)
        return [self.part_name] if htmx and not htmx.boosted else [str(self.template_name)]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = self.filtered()
        table = self.paged(self.table_class(tables.Rows(found.qs)))
        return super().get_context_data(
            filter=found,
            misread=self.misread(table),
            chips=self.chips(found),
            nothing=Nothing(str(self.nothing[0]), str(self.nothing[1])),
            table=table,
            policy_names=(*fleet.ORDER, "unknown"),
            page_sizes=tables.PAGE_SIZES,
            page_size=self.page_size(),
            query=self.kept_query(),
            **kwargs,
        )

    def paged(self, table: django_tables2.Table) -> django_tables2.Table:
        """The page and the order of the address; nonsense in it means the first page, and a size from our list."""
        in_order(table, self.request)
        table.paginate(per_page=self.page_size())
        table.page = table.paginator.get_page(self.request.GET.get("page"))
        return table

    def misread(self, table: django_tables2.Table) -> list[misread.Misread]:
        """Orders, pages and sizes of the address that this list does not have."""
        given = self.request.GET
        columns = [column.name for column in table.columns if column.orderable]
        shown = ", ".join(table.order_by or ())
        sorts = [
            each
            for sort in given.getlist("sort")
            for each in misread.choice("sort", sort.removeprefix("-"), columns, shown)
        ]
        sizes = map(str, tables.PAGE_SIZES)
        return [
            *sorts,
            *misread.choice("per_page", given.get("per_page"), sizes, str(self.page_size())),
            *misread.page(given.get("page"), table.page),
        ]

    def chips(self, found: FilterSet) -> list[Chip]:
        """Filters of the address, each with the address that leaves it out."""
        return [
            Chip(str(found.filters[name].label), spoken(found, name, value), self.without(name, value))
            for name in found.filters
            for value in self.request.GET.getlist(name)
            if value
        ]

    def without(self, name: str, value: str) -> str:
        kept = self.request.GET.copy()
        kept.setlist(name, [each for each in kept.getlist(name) if each != value])
        kept.pop("page", None)
        return f"?{kept.urlencode()}"

    def page_size(self) -> int:
        asked = self.request.GET.get("per_page", "")
        return int(asked) if asked in map(str, tables.PAGE_SIZES) else tables.PAGE_SIZES[0]

    def kept_query(self) -> str:
        """The filter and the order without the page, for exports."""
        kept = self.request.GET.copy()
        for name in ("page", "per_page"):
            kept.pop(name, None)
        return kept.urlencode()


def in_order(table: django_tables2.Table, request: HttpRequest) -> None:
    """Puts the rows into the order of the address, or into the table's own."""
    django_tables2.RequestConfig(request, paginate=False).configure(table)
    if not table.order_by:  # nothing of what the address asks for is a column
        table.order_by = table._meta.order_by


def spoken(found: FilterSet, name: str, value: str) -> str:
    """A value of a filter as people know it."""
    choices = found.filters[name].extra.get("choices") or ()
    return str(dict(choices).get(value, value))


class Monitoring(NodeRows, ListPage):
    """Where is it tight?"""

    template_name = "monitoring/monitoring.html"
    title = _("Cluster NUMA monitoring")
    table_class = tables.NodeTable
    nothing = (
        _("No node has been heard of yet"),
        _(
            "Start numa-exporter on a node and add its address to this cluster; it appears here with its first answer."
        ),
    )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        whole = not getattr(self.request, "htmx", None)
        extra = {"fleet": fleet.fleet(selectors.overview(self.cluster, timezone.now()))} if whole else {}
        return super().get_context_data(**extra, **kwargs)


class Containers(ContainerRows, ListPage):
    """Which ones cross?"""

    template_name = "monitoring/containers.html"
    title = _("Containers")
    table_class = tables.ContainerTable
    nothing = (
        _("No container is known yet"),
        _(
            "Containers appear with the first answer of an exporter. Without any, look at the component status of the overview."
        ),
    )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(namespaces=selectors.namespaces(self.cluster), **kwargs)


class Export(ClusterView):
    """A list as a file, in the order of its page."""

    columns: ClassVar[tuple[str, ...]]
    name: ClassVar[str]
    table_class: type[django_tables2.Table]

    def filtered(self) -> FilterSet:
        raise NotImplementedError

    def get(self, request: HttpRequest, form: str, **_kwargs: Any) -> HttpResponseBase:
        if form not in exports.WRITERS:
            raise Http404
        found = self.filtered()
        if not found.is_valid():
            return exports.refusal(found.form)
        table = self.table_class(tables.Rows(found.qs))
        in_order(table, request)
        name = f"{slugify(self.cluster.slug)}-{self.name}"
        return exports.answer(request, form, name, self.columns, self.lines(table.data.data))

    def lines(self, ordered: QuerySet[Any]) -> Iterator[exports.Row]:
        """What becomes lines of the file."""
        return exports.rows(ordered, self.columns)


class NodeExport(NodeRows, Export):
    """Nodes as a file."""

    columns = NODE_COLUMNS
    table_class = tables.NodeTable
    name = "nodes"


class ContainerExport(ContainerRows, Export):
    """Containers as a file."""

    columns = CONTAINER_COLUMNS
    table_class = tables.ContainerTable
    name = "containers"
