"""One node: why is an application slow? Each tab is a page of its own; the drawing's data also comes alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
import yaml
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring import forms, selectors
from monitoring.figures import (
    causes,
    charts,
    drawing,
    headlines,
    kubelet,
    reading,
    saidby,
    sentences,
    survival,
    unheard,
)
from monitoring.models import Node, Pod
from monitoring.selectors import NeverHeardError, NodeState, failures, kubernetes, sources
from monitoring.views import columns, misread
from monitoring.views.base import ClusterPage, ClusterView, Crumb
from monitoring.views.saving import Table
from monitoring.views.unheard import UnheardPage, in_kubernetes, tables_of_kubernetes
from numacore import topology
from numacore.report import ContainerReport

TABS = {
    "topology": gettext_lazy("Topology"),
    "distances": gettext_lazy("Distances"),
    "containers": gettext_lazy("Container NUMA allocation"),
    "history": gettext_lazy("History"),
    "kubelet": gettext_lazy("Kubelet settings"),
    "sources": gettext_lazy("Sources"),
    "events": gettext_lazy("Events"),
    "document": gettext_lazy("Document"),
}
# What of a tab comes alone when the live connection says that something changed.
PARTS = {"topology": "picks", "containers": "containers"}
PART_NAMES = ("said", *PARTS.values())
DRAWN = ("topology", "distances", "containers")
LONGEST = 253
"""Characters that a name in Kubernetes may have."""
KEPT = ("container", "cpu", "refresh")
"""Parameters of the address that choosing a time range leaves alone."""
EVENTS_PER_PAGE = 50
EVENTS_OF_POD = 5
"""Of one pod, beside its containers."""
KINDS = ("exclusive", "narrowed", "floating", None)
ORDERS: dict[str, Callable[[ContainerReport], tuple[Any, ...]]] = {
    "cost": lambda each: (each.cost is None, -(each.cost or 0)),
    "name": lambda each: (drawing.title(each),),
    "class": lambda each: (KINDS.index(each.kind),),
    "locality": lambda each: (each.locality is None, each.locality or 0),
}


def missing(name: str) -> str:
    return _("There is no node %(name)s in this cluster.") % {"name": name}


class NodeView(ClusterView):
    """Whatever answers about one node."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return super().dispatch(request, *args, **kwargs)
        except NeverHeardError as found:
            return self.unheard(found.node)

    def unheard(self, node: Node) -> HttpResponseBase:
        """The answer about a node that no exporter ever told of."""
        raise Http404(unheard.brief(node.name))

    @cached_property
    def state(self) -> NodeState:
        """Raises NeverHeardError, Http404."""
        name = self.kwargs["node"]
        try:
            return selectors.node_state(self.cluster, name, timezone.now())
        except NeverHeardError:
            raise
        except Node.DoesNotExist:
            raise Http404(missing(name)) from None

    def row(self) -> Node:
        """The node's row alone, for whoever needs no live data."""
        try:
            return selectors.nodes(self.cluster).get(name=self.kwargs["node"])
        except Node.DoesNotExist:
            raise Http404(missing(self.kwargs["node"])) from None

    def drawn(self) -> dict[str, Any]:
        return drawing.drawing(self.state.facts, self.state.report, selectors.settings().busy_threshold)


class NodePage(NodeView, ClusterPage):
    """The page: a sentence that answers, then tabs."""

    template_name = "monitoring/node.html"

    def unheard(self, node: Node) -> HttpResponseBase:
        return UnheardPage.as_view(node=node)(self.request, **self.kwargs)

    @property
    def tab(self) -> str:
        asked = self.request.GET.get("tab", "topology")
        return asked if asked in TABS else "topology"

    @property
    def misread(self) -> list[misread.Misread]:
        return misread.choice("tab", self.request.GET.get("tab"), TABS, self.tab)

    def sockets(self) -> dict[str, str]:
        names = {"cluster": self.cluster.slug, "node": self.state.node.name}
        return {
            "node": f"/ws/c/{names['cluster']}/nodes/{names['node']}/",
            "payload": reverse("drawing", kwargs=names),
        }

    def get_template_names(self) -> list[str]:
        htmx = getattr(self.request, "htmx", None)
        part = self.request.GET.get("part", PARTS.get(self.tab, ""))
        return [f"monitoring/parts/{part}.html"] if htmx and part in PART_NAMES else [str(self.template_name)]

    def crumbs(self) -> list[Crumb]:
        way = super().crumbs()[:-1]
        return [
            *way,
            Crumb(_("Cluster NUMA monitoring"), self.address("monitoring")),
            Crumb(self.state.node.name),
        ]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        state = self.state
        facts, report = state.facts, state.report
        return super().get_context_data(
            state=state,
            facts=facts,
            report=report,
            headline=headlines.of_node(report, numa=facts.topology.numa, live=state.live),
            stale=sentences.cause(state.cause, state.cause_text) if state.stale else None,
            remedy=sentences.remedy(state.remedy),
            problems=reading.problems(state.problems),
            old_ownership=None if state.ownership_age is None else reading.old_ownership(state.problems),
            tab=self.tab,
            tab_template=f"monitoring/node/{self.tab}.html",
            tabs=self.tabs(),
            drawing=self.drawn() if self.tab in DRAWN else None,
            **{"misread": self.misread, **self.of_tab()},
            **{**kwargs, "node": state.node},
        ) | {"title": state.node.name}

    def named(self) -> tuple[str, ...]:
        return (*super().named(), self.state.node.name)

    def tables(self) -> Mapping[str, Table]:
        facts, report = self.state.facts, self.state.report
        return {
            "problems": Table(columns.PROBLEMS, lambda: self.state.problems),
            "numa-nodes": Table(columns.NUMA_NODES, lambda: report.numa),
            "distances": Table(columns.DISTANCES, lambda: columns.distances(facts.topology)),
            "latency": Table(columns.PERFORMANCE, lambda: facts.attributes.performance),
            "containers": Table(columns.CONTAINERS, self.containers),
            "not-shown": Table(columns.PODS, self.not_shown),
            "settings": Table(columns.SETTINGS, lambda: self.settings(self.running())),
            "sources": Table(columns.SOURCES, lambda: columns.told(*self.told_by())),
            "events": Table(columns.EVENTS, lambda: kubernetes.Story(self.state.node)[:]),
            **tables_of_kubernetes(getattr(self.state.node, "kubernetes", None)),
        }

    def tabs(self) -> list[tuple[str, Any]]:
        """Only a node that an API server has is told of by several."""
        several = hasattr(self.state.node, "kubernetes") or self.tab == "sources"
        return [(key, label) for key, label in TABS.items() if key != "sources" or several]

    def of_tab(self) -> dict[str, Any]:
        """What only one tab needs."""
        if self.tab == "containers":
            wrong = misread.choice("order", self.request.GET.get("order"), ORDERS, self.order)
            found = self.containers()
            uids = {each.container.pod_uid for each in found if each.container.pod_uid}
            pods = kubernetes.by_uid(self.cluster, self.state.node.name, uids)
            owners = {
                (pod.namespace, pod.owner_kind, pod.owner_name) for pod in pods.values() if pod.owner_name
            }
            refused = failures.of_owners(self.cluster, owners)
            return {
                "containers": found,
                "pods": pods,
                "refused": {
                    uid: refused.get((pod.namespace, pod.owner_kind, pod.owner_name))
                    for uid, pod in pods.items()
                },
                "not_shown": self.not_shown(),
                "pod_events": kubernetes.events_of_pods(self.cluster, uids, EVENTS_OF_POD),
                "order": self.order,
                "find": self.find,
                "misread": self.misread + wrong,
            }
        if self.tab == "distances":
            return {"matrix": distance_rows(self.state)}
        told = self.state.facts.kubelet
        if self.tab == "kubelet" and told and told.present:
            running = self.running()
            return {
                "settings": self.settings(running),
                "restart": survival.of_node(self.state.facts, self.state.problems),
                "running": running,
                "running_cause": causes.said(running.cause) if running else "",
                "running_remedy": sentences.remedy(running.remedy) if running else "",
            }
        if self.tab == "events":
            asked = self.request.GET.get("page")
            page = Paginator(kubernetes.Story(self.state.node), EVENTS_PER_PAGE).get_page(asked)
            return {
                "events": page,
                "lacking": kubernetes.lacking(self.cluster, "events"),
                "misread": self.misread + misread.page(asked, page),
            }
        if self.tab == "sources":
            return self.sources()
        if self.tab == "history":
            return self.history()
        if self.tab == "document":
            return {"document": text(self.state, self.form), "form": self.form}
        return {}

    def not_shown(self) -> list[Pod]:
        """Pods that Kubernetes runs here and that its exporter does not show; nothing is said while it is silent."""
        state = self.state
        if state.stale or not hasattr(state.node, "kubernetes"):
            return []
        shown = {each.pod_uid for each in state.facts.containers if each.pod_uid}
        found = kubernetes.not_shown(self.cluster, state.node.name, shown)
        return [pod for pod in found if self.find.casefold() in f"{pod.namespace}/{pod.name}".casefold()]

    def running(self) -> sources.Running | None:
        """The kubelet's own word about its settings."""
        return sources.running(self.state.node, timezone.now())

    def settings(self, running: sources.Running | None) -> list[kubelet.Row]:
        state = self.state
        if not state.facts.kubelet:
            return []
        force = running.settings if running else None
        return kubelet.rows(state.facts.kubelet, state.report.policy, state.problems, force)

    def told_by(self) -> tuple[list[saidby.Row], list[saidby.Column]]:
        """What each source says: rows of facts, a column for each source."""
        state = self.state
        known, report = (state.facts, state.report) if state.live else (None, None)
        said = sources.voices(state.node, known, report, state.age, timezone.now())
        return saidby.rows(sources.facts_of(said), said), saidby.columns(said)

    def sources(self) -> dict[str, Any]:
        rows, sayers = self.told_by()
        return {
            "columns": sayers,
            "rows": rows,
            "contradictions": sum(1 for each in rows if each.contradicted),
            "lacking": kubernetes.lacking(self.cluster, "sources", "nodes"),
            **in_kubernetes(getattr(self.state.node, "kubernetes", None)),
        }

    def history(self) -> dict[str, Any]:
        form = forms.SpanForm(self.request.GET, timezone.now())
        span = form.span()
        path = reverse("history", kwargs={"cluster": self.cluster.slug, "node": self.state.node.name})
        return {
            "form": form,
            "span": span,
            "kept": [(name, value) for name in KEPT if (value := self.request.GET.get(name))],
            "ranges": list(charts.RANGES),
            "metrics": charts.TITLES.items(),
            "history_url": f"{path}?{urlencode(span.query)}" if span else "",
        }

    @property
    def form(self) -> str:
        return "yaml" if self.request.GET.get("form") == "yaml" else "json"

    @property
    def order(self) -> str:
        asked = self.request.GET.get("order", "cost")
        return asked if asked in ORDERS else "cost"

    @property
    def find(self) -> str:
        return self.request.GET.get("q", "").strip()[:LONGEST]

    def containers(self) -> list[ContainerReport]:
        wanted = self.find.casefold()
        found = [
            each
            for each in self.state.report.containers
            if wanted in drawing.title(each).casefold() or wanted in each.container.id
        ]
        return sorted(found, key=ORDERS[self.order])


class Drawing(NodeView):
    """The drawing's data anew, for a page whose containers or machine changed."""

    def get(self, _request: HttpRequest, **_kwargs: Any) -> JsonResponse:
        return JsonResponse(self.drawn())


class Document(NodeView):
    """Everything that is known of the node, as a file."""

    def get(self, _request: HttpRequest, form: str, **_kwargs: Any) -> HttpResponse:
        if form not in ("json", "yaml"):
            raise Http404
        response = HttpResponse(text(self.state, form), content_type=f"application/{form}; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{self.state.node.name}.{form}"'
        return response


def text(state: NodeState, form: str) -> str:
    """Facts and figures of a node as JSON or YAML."""
    value = msgspec.to_builtins(
        {"node": state.node.name, "taken": state.taken, "facts": state.facts, "report": state.report},
        str_keys=True,
        enc_hook=topology.enc_hook,
    )
    if form == "yaml":
        return yaml.dump(value, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False, width=110)
    return json.dumps(value, ensure_ascii=False, indent=2)


def distance_rows(state: NodeState) -> list[tuple[int, list[tuple[int, int | None, int | None]]]]:
    """The distance table: for each NUMA node the others with their distance and its shade, 0 (near) to 6."""
    ids = state.facts.topology.numa_ids
    reach = [d for a in ids for b in ids if (d := state.facts.topology.distance(a, b)) is not None]
    usable = [each for each in reach if each < topology.UNREACHABLE]
    most = max(usable, default=topology.LOCAL_DISTANCE)
    return [(a, [(b, d := state.facts.topology.distance(a, b), shade(d, most)) for b in ids]) for a in ids]


def shade(distance: int | None, most: int) -> int | None:
    if distance is None or distance >= topology.UNREACHABLE:
        return None
    span = max(1, most - topology.LOCAL_DISTANCE)
    return round(6 * (distance - topology.LOCAL_DISTANCE) / span)
