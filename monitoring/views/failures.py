"""What kubelets refused, and why: a line for each owner, node and reason. And pods that were admitted and do not start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import urlencode

import django_tables2
import yaml
from django.contrib import messages
from django.db.models import Count, QuerySet, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_tables2.data import TableQuerysetData

from monitoring import filters, tables
from monitoring.figures import failures as words
from monitoring.models import Cluster, Failure, Pod
from monitoring.selectors import failures
from monitoring.views import exports, planner_input
from monitoring.views.base import ClusterView
from monitoring.views.lists import Export, ListPage, Nothing

COLUMNS = (
    *("namespace", "owner_kind", "owner_name", "node_name", "reason", "count", "first", "last", "last_pod"),
    *("message", "judged", "state_age", "obstacle", "verdict", "asked"),
)
START_COLUMNS = (*failures.OWNED, "pods", "first", "last", "example")


class Told(TableQuerysetData):
    """Lines of a page, each with how many of its pods are still there (`still`), its explanation (`told`) and whether its node has a page."""

    def __getitem__(self, part: slice) -> list[Failure]:
        found = list(self.data[part])
        if not found:
            return []
        cluster = found[0].cluster_id
        there = failures.still(cluster, {each.node_name for each in found})
        names = failures.names(cluster, words.leaving(each.verdict for each in found))
        nodes = failures.nodes_among(cluster, {each.node_name for each in found})
        for each in found:
            each.still = there.get(failures.key_of(each), 0)
            each.told = words.explained(each, names)
            each.has_page = each.node_name in nodes
            each.pods_query = urlencode(pods_of(each))
        return found


def pods_of(line: Failure) -> dict[str, str]:
    """The filter of the list of pods that finds those of a line that are still there; a pod that nobody owns is found by its name."""
    whose = {"q": line.owner_name} if line.owner_kind == "Pod" else {"owner": line.owner_name}
    where = {"namespace": line.namespace, "node": line.node_name}
    return {**whose, **where, "phase": failures.FAILED, "reason": line.reason}


class FailureTable(django_tables2.Table):
    """A row for each line, the newest first."""

    row_template: ClassVar[str] = "numa/rows/failure.html"

    def __init__(self, data: Any, **rest: Any) -> None:
        super().__init__(Told(getattr(data, "data", data)), **rest)

    owner = tables.Sorted("owner_name", gettext_lazy("Owner"))
    node = tables.Sorted("node_name", gettext_lazy("Node"))
    reason = tables.Sorted("reason", gettext_lazy("Reason"))
    count = tables.Sorted("count", gettext_lazy("Refused pods"), number=True)
    first = tables.Sorted("first", gettext_lazy("First"))
    last = tables.Sorted("last", gettext_lazy("Last"))
    why = django_tables2.Column(verbose_name=gettext_lazy("Why"), orderable=False, empty_values=())

    class Meta:
        template_name = "numa/table.html"
        order_by = "-last"


class StartTable(django_tables2.Table):
    """A row for each owner, node and reason of pods that do not start, most pods first."""

    row_template: ClassVar[str] = "numa/rows/starting.html"

    def __init__(self, data: Any, **rest: Any) -> None:
        super().__init__(failures.grouped(getattr(data, "data", data)), **rest)

    owner = django_tables2.Column(verbose_name=gettext_lazy("Owner"), order_by=("line_name",))
    node = django_tables2.Column(verbose_name=gettext_lazy("Node"), order_by=("node_name",))
    reason = django_tables2.Column(verbose_name=gettext_lazy("Reason"))
    pods = django_tables2.Column(verbose_name=gettext_lazy("Pods"), attrs={"th": {"class": "text-end"}})
    first = django_tables2.Column(verbose_name=gettext_lazy("First made"))
    last = django_tables2.Column(verbose_name=gettext_lazy("Last made"))

    class Meta:
        template_name = "numa/table.html"
        order_by = "-pods"


class FailureRows:
    """Lines of the cluster behind the page's filter."""

    request: HttpRequest
    cluster: Cluster

    def filtered(self) -> filters.FailureFilter:
        return filters.FailureFilter(self.request.GET, failures.lines(self.cluster), request=self.request)


class Failures(FailureRows, ListPage):
    """What was refused, and why?"""

    template_name = "monitoring/failures.html"
    part_name = "monitoring/parts/failures.html"
    title = gettext_lazy("Failures")
    table_class: type[django_tables2.Table] = FailureTable
    nothing = (gettext_lazy("No pod was refused"), gettext_lazy("None."))
    kind = "refused"
    export = "failures_export"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        watched = failures.watched(self.cluster)
        made = failures.lines(self.cluster).aggregate(lines=Count("pk"), pods=Sum("count"))
        reasons = failures.known(self.cluster, "reason")
        remaining = failures.remaining(self.cluster, reasons) if reasons else 0
        given = super().get_context_data(
            headline=words.headline(watched, made["lines"], made["pods"] or 0, remaining),
            outdated=words.outdated(watched) if made["lines"] else None,
            kind=self.kind,
            export=self.export,
            lines=made["lines"],
            starting=failures.starting(self.cluster).count(),
            namespaces=failures.known(self.cluster, "namespace"),
            reasons=reasons,
            tabs={"refused": self.address("failures"), "starting": self.address("starting")},
            **kwargs,
        )
        return {**given, "nothing": Nothing(*self.why_nothing(watched))}

    def paged(self, table: django_tables2.Table) -> django_tables2.Table:
        table.cluster = self.cluster  # rows have addresses of it
        return super().paged(table)

    def why_nothing(self, watched: failures.Watched) -> tuple[str, str]:
        return words.nothing(watched)


class StartRows:
    """Pods of the cluster that do not start, behind the page's filter."""

    request: HttpRequest
    cluster: Cluster

    def filtered(self) -> filters.StartFilter:
        return filters.StartFilter(self.request.GET, failures.starting(self.cluster), request=self.request)


class Starting(StartRows, Failures):
    """Which pods were admitted and do not start?"""

    table_class = StartTable
    kind = "starting"
    export = "starting_export"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "reasons": sorted(Pod.START_FAILURES)}

    def why_nothing(self, watched: failures.Watched) -> tuple[str, str]:
        if watched.state != "ok":
            return words.nothing(watched)
        return _("Every admitted pod starts"), _(
            "No container of this cluster waits because it cannot start."
        )


class FailureExport(FailureRows, Export):
    """Lines as a file."""

    columns = COLUMNS
    name = "failures"
    table_class = FailureTable


class StartExport(StartRows, Export):
    """Lines of pods that do not start as a file."""

    columns = START_COLUMNS
    name = "not-starting"
    table_class = StartTable

    def lines(self, ordered: QuerySet[Any]) -> Iterator[exports.Row]:
        return ordered.values_list(*self.columns).iterator()


class AskPlanner(ClusterView):
    """To the Planner with the newest pod of a line, on that line's node."""

    def get(self, request: HttpRequest, line: int, **_kwargs: Any) -> HttpResponse:
        found = failures.lines(self.cluster).filter(pk=line).first()
        manifest = manifest_of(found) if found else None
        if found is None or manifest is None:
            return self.back(
                request, _("No pod of this line is there any more, so nobody knows what it asked for.")
            )
        query = planner_input.address(manifest, {"find": found.node_name})
        if query is None:
            return self.back(
                request, _("The manifest of this pod is too long for an address; paste it into the Planner.")
            )
        address = reverse("planner", kwargs={"cluster": self.cluster.slug})
        return HttpResponseRedirect(f"{address}?{query}&{urlencode({'node': found.node_name})}")

    def back(self, request: HttpRequest, why: str) -> HttpResponse:
        messages.warning(request, why)
        return HttpResponseRedirect(reverse("failures", kwargs={"cluster": self.cluster.slug}))


def manifest_of(line: Failure) -> str | None:
    """What decided about the newest pod of a line, as a manifest; None = it was not kept, and no pod is there to look it up."""
    name, asked = line.last_pod, line.asked
    if asked is None:
        pod = failures.newest_pod(line)
        if pod is None:
            return None
        scheduler = {"schedulerName": pod.scheduler} if pod.scheduler else {}
        name, asked = pod.name, {"spec": {**scheduler, **pod.resources}}
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": line.namespace, **asked.get("metadata", {})},
        "spec": asked["spec"],
    }
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
