"""Lists: filters, order, cursor pages, chosen fields. One view class for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import django_filters as df
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from monitoring import filters, selectors
from monitoring.api import base, document, paging, rows, shapes
from monitoring.models import Cluster


def asked(
    kind: type[df.FilterSet], sorts: dict[str, str], names: list[str], *, without: tuple[str, ...] = ()
) -> tuple[OpenApiParameter, ...]:
    """Everything that a list may be asked."""
    orders = [sign + name for name in sorts for sign in ("", "-")]
    return (
        *document.parameters_of(kind, without=without),
        document.choice("sort", orders, "Order; “-” sorts the largest first. Unknown comes last."),
        document.number("page_size", 1, paging.MOST, f"Rows of one page, {paging.SIZE} without it."),
        OpenApiParameter(
            "cursor", {"type": "string", "maxLength": 2000}, description="From next or previous."
        ),
        document.choice("count", ["true", "false"], "Whether to count the whole list, which takes time."),
        OpenApiParameter(
            "fields",
            {"type": "array", "items": {"type": "string", "enum": names}},
            explode=False,
            style="form",
            description="Only these fields, split by commas.",
        ),
    )


class ListView(base.ApiView):
    """A list of rows."""

    columns: ClassVar[rows.Columns]
    sorts: ClassVar[dict[str, str]]
    filterset: ClassVar[type[df.FilterSet]]
    sort: ClassVar[str]

    def get(self, request: Request, **named: str) -> HttpResponse:
        slug = named.pop("cluster", None)
        cluster = None if slug is None else base.cluster_of(slug)
        wish, chosen = self.wish(request), self.columns.choose(self.fields(request))
        found = self.filtered(request, self.found(cluster, **named))
        page = paging.page(found, chosen.expressions(), self.sorts, wish)
        answer: dict[str, Any] = {
            "results": self.results(chosen, page.rows),
            "next": address(request, page.next),
            "previous": address(request, page.previous),
            "count": found.count() if request.query_params.get("count") == "true" else None,
        }
        unaging = [{**row, "age": None} for row in answer["results"]]
        return base.respond(request, answer, {**answer, "results": unaging})

    def results(self, chosen: rows.Columns, found: Sequence[Sequence[Any]]) -> list[rows.Row]:
        """The rows of a page."""
        return chosen.rows(found, chosen.moment(timezone.now(), found))

    def found(self, cluster: Cluster | None, **named: str) -> QuerySet[Any]:
        """The whole list of what the address names."""
        raise NotImplementedError

    def filtered(self, request: Request, found: QuerySet[Any]) -> QuerySet[Any]:
        if not self.filterset.base_filters.keys() & request.query_params.keys():
            return found
        form = self.filterset(request.query_params, queryset=found)
        if not form.is_valid():
            raise ValidationError(cast("dict[str, Any]", form.errors))
        return cast("QuerySet[Any]", form.qs)

    def wish(self, request: Request) -> paging.Wish:
        given = request.query_params
        sort = given.get("sort", self.sort)
        if sort.removeprefix("-") not in self.sorts:
            names = ", ".join(sorted(self.sorts))
            raise ValidationError({"sort": [_("One can sort by: %(names)s.") % {"names": names}]})
        if given.get("count", "false") not in ("true", "false"):
            raise ValidationError({"count": [_("This is true or false.")]})
        cursor = given.get("cursor")
        return paging.Wish(
            sort,
            base.number(request, "page_size", paging.SIZE, 1, paging.MOST),
            paging.read(cursor, sort) if cursor else None,
        )

    def fields(self, request: Request) -> list[str] | None:
        given = request.query_params.get("fields")
        if given is None:
            return None
        names = self.columns.names()
        wanted = given.split(",")
        if len(wanted) > len(names) or not set(wanted) <= set(names):
            text = _("The fields are: %(names)s.") % {"names": ", ".join(names)}
            raise ValidationError({"fields": [text]})
        return wanted


def address(request: Request, cursor: paging.Cursor | None) -> str | None:
    """The address of another page of the same list."""
    if cursor is None:
        return None
    query = request.query_params.copy()
    query["cursor"] = paging.written(cursor)
    return f"{cast('HttpRequest', request).path}?{query.urlencode()}"


class AllNodes(ListView):
    """The current nodes of all clusters"""

    answers = {"GET": shapes.NodePage}
    columns, sorts, filterset, sort = rows.NODES, rows.NODE_SORTS, filters.NodeFilter, "name"
    parameters = asked(filters.NodeFilter, rows.NODE_SORTS, rows.NODES.names())

    def found(self, cluster: Cluster | None, **_named: str) -> QuerySet[Any]:
        return selectors.nodes(cluster)


class Nodes(AllNodes):
    """The current nodes of a cluster"""

    parameters = asked(filters.NodeFilter, rows.NODE_SORTS, rows.NODES.names(), without=("cluster",))


class AllContainers(ListView):
    """The running containers of all clusters"""

    answers = {"GET": shapes.ContainerPage}
    columns, sorts, filterset, sort = rows.CONTAINERS, rows.CONTAINER_SORTS, filters.ContainerFilter, "id"
    parameters = asked(filters.ContainerFilter, rows.CONTAINER_SORTS, rows.CONTAINERS.names())

    def found(self, cluster: Cluster | None, **_named: str) -> QuerySet[Any]:
        return selectors.containers(cluster)


class Containers(AllContainers):
    """The running containers of a cluster"""

    parameters = asked(
        filters.ContainerFilter, rows.CONTAINER_SORTS, rows.CONTAINERS.names(), without=("cluster",)
    )
