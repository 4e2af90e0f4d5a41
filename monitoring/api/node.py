"""One node: the full report and its parts, each with the age and the source of what it says."""

from __future__ import annotations

from typing import Any

import msgspec
from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from monitoring import filters, hot, selectors
from monitoring.api import base, lists, rows, shapes
from monitoring.api.explicit import explicit
from monitoring.figures import reading, sentences, survival, unheard
from monitoring.figures.why import Why
from monitoring.models import Cluster, Endpoint, Node
from monitoring.selectors import NeverHeardError, NodeState
from numacore.diagnosis import Reason
from numacore.report import ContainerReport
from numacore.wire import Problem


class NodeView(base.ApiView):
    """Whatever answers about the state of one node."""

    def get(self, request: Request, cluster: str, node: str) -> HttpResponse:
        state = state_of(cluster, node)
        return base.respond(request, explicit(self.answer(state)), version_of(state))

    def answer(self, state: NodeState) -> Any:
        raise NotImplementedError


def state_of(cluster: str, node: str) -> NodeState:
    """Raises NotFound, for a node that no exporter ever told of with the remedy."""
    try:
        return told(cluster, node)
    except NeverHeardError as found:
        raise NotFound(unheard.brief(found.node.name)) from None


def told(cluster: str, node: str) -> NodeState:
    """Raises NotFound, NeverHeardError."""
    try:
        return selectors.node_state(base.cluster_of(cluster), node, timezone.now())
    except NeverHeardError:
        raise
    except Node.DoesNotExist:
        raise unknown(cluster, node) from None


def current(cluster: str, node: str) -> Node:
    found = selectors.nodes(base.cluster_of(cluster)).filter(name=node).first()
    if found is None:
        raise unknown(cluster, node)
    return found


def unknown(cluster: str, node: str) -> NotFound:
    text = _("There is no current node “%(node)s” in this cluster; %(address)s lists them.")
    return NotFound(text % {"node": node, "address": rows.path("clusters", cluster, "nodes")})


def version_of(state: NodeState) -> object:
    """What says whether something changed: ages do not."""
    hashes = {name: section.hash for name, section in state.sections.items()}
    endpoint = (
        [state.endpoint.pk, state.endpoint.state, state.endpoint.failures_total] if state.endpoint else None
    )
    joined = [
        (each.id, each.namespace, each.pod, each.name) for each in state.facts.containers if each.told_by_api
    ]
    return [state.node.pk, state.taken, state.live, state.stale, state.cause, hashes, endpoint, joined]


def live(state: NodeState) -> shapes.Live:
    """Whence the figures come, and how old they are."""
    said = sentences.cause(state.cause, state.cause_text) if state.cause else None
    remedy = sentences.remedy(state.remedy) or (said.remedy if said else "")
    return shapes.Live(
        live=state.live,
        taken=state.taken,
        age=rounded(state.age),
        stale=state.stale,
        cause=state.cause or None,
        cause_text=said.text if said else None,
        remedy=remedy or None,
        ownership_age=rounded(state.ownership_age),
        sections={
            name: shapes.SectionAge(rounded(each.age), each.source, each.hash or None)
            for name, each in state.sections.items()
        },
    )


def rounded(age: float | None) -> float | None:
    return None if age is None else round(age, 3)


def problem(of: Problem) -> shapes.ReaderProblem:
    shown = reading.problem(of)
    return shapes.ReaderProblem(**{**msgspec.structs.asdict(shown), "code": shown.code or None})


def why(reason: Reason) -> Why:
    said = sentences.reason(reason)
    return Why(reason.code, said.text, said.remedy or None)


class NodeReport(NodeView):
    """Everything that is known of a node

    Of a node that the API server has and no exporter ever told of, that is its row, with null for the rest and the remedy in `data`.
    """

    answers = {"GET": shapes.NodeDetail}

    def get(self, request: Request, cluster: str, node: str) -> HttpResponse:
        try:
            state = told(cluster, node)
        except NeverHeardError as found:
            return base.respond(request, explicit(never_heard(found.node)))
        return base.respond(request, explicit(self.answer(state)), version_of(state))

    def answer(self, state: NodeState) -> Any:
        return {
            "node": row_of(state.node),
            "data": live(state),
            "report": state.report,
            "attributes": state.facts.attributes,
            "exporter": state.exporter,
            "endpoint": endpoint(state.endpoint),
            "problems": [problem(each) for each in state.problems],
            "boot_id": state.node.boot_id or None,
        }


def row_of(node: Node) -> rows.Row | None:
    """The node as lists have it; None = it went meanwhile."""
    seen = rows.moment(timezone.now(), [node.cluster_id])
    found = selectors.nodes(node.cluster).filter(pk=node.pk)
    row = rows.NODES.rows(found.values_list(*rows.NODES.expressions()), seen)
    return row[0] if row else None


def never_heard(node: Node) -> dict[str, Any]:
    """What is known of a node without its exporter."""
    said = sentences.cause("never-heard", "")
    return {
        "node": row_of(node),
        "data": shapes.Live(
            live=False,
            taken=None,
            age=None,
            stale=True,
            cause="never-heard",
            cause_text=said.text,
            remedy=unheard.brief(node.name),
            ownership_age=None,
            sections={},
        ),
        **dict.fromkeys(("report", "attributes", "exporter", "endpoint")),
        "problems": [],
        "boot_id": node.boot_id or None,
    }


def endpoint(of: Endpoint | None) -> rows.Row | None:
    if of is None:
        return None
    found = Endpoint.objects.filter(pk=of.pk).values_list(*rows.ENDPOINTS.expressions())
    return rows.ENDPOINTS.rows(found, rows.Moment(timezone.now(), {}, 0.0))[0]


class NodeTopology(NodeView):
    """A node's CPUs, caches, NUMA nodes, memory and devices"""

    answers = {"GET": shapes.NodeTopology}

    def answer(self, state: NodeState) -> Any:
        topology = state.facts.topology
        return shapes.NodeTopology(topology.hash, topology, state.facts.attributes)


class NodeDistances(NodeView):
    """Distances between a node's NUMA nodes, with latency and bandwidth where the machine tells"""

    answers = {"GET": shapes.Distances}

    def answer(self, state: NodeState) -> Any:
        topology = state.facts.topology
        ids = topology.numa_ids
        return shapes.Distances(
            numa_nodes=list(ids),
            distances=[[topology.distance(a, b) for b in ids] for a in ids],
            performance=list(state.facts.attributes.performance),
        )


class NodeContainers(NodeView):
    """Container NUMA allocation of a node: where each sits, what it costs, and why"""

    answers = {"GET": shapes.NodeContainers}

    def answer(self, state: NodeState) -> Any:
        return shapes.NodeContainers(live(state), [placed(each) for each in state.report.containers])


def placed(of: ContainerReport) -> shapes.PlacedContainer:
    return shapes.PlacedContainer(of, why(of.pinning), why(of.memory_reason) if of.memory_reason else None)


class NodeKubelet(NodeView):
    """A node's kubelet: settings with where each was asked, state files, and contradictions between them"""

    answers = {"GET": shapes.NodeKubelet}

    def answer(self, state: NodeState) -> Any:
        policy = state.report.policy
        return shapes.NodeKubelet(
            data=live(state),
            kubelet=state.facts.kubelet,
            policy=policy,
            contradictions=[why(each) for each in policy.contradictions] if policy else [],
            restart=restart(state),
        )


def restart(state: NodeState) -> shapes.KubeletRestart:
    """What a restart of the kubelet would bring now."""
    told = survival.of_node(state.facts, state.problems)
    return shapes.KubeletRestart(
        outcome=told.state,
        text=told.headline.text,
        detail=told.headline.detail,
        message=told.words or None,
        by_chance=told.chance,
        differences=list(told.differences),
        lost=[shapes.LostPod(*each) for each in told.lost],
        running=told.running,
        assumptions=list(told.assumed),
    )


class NodeDocument(NodeView):
    """What a node's exporter sent, as it sent it"""

    answers = {"GET": shapes.Document}

    def answer(self, state: NodeState) -> Any:
        try:
            held = hot.store().get(state.node.pk)
        except hot.StoreError:
            held = None
        sections = {name: msgspec.Raw(data) for name, data in held.sections.items()} if held else {}
        return {"data": live(state), "exporter": state.exporter, "sections": sections}


class NodeEvents(lists.ListView):
    """What numaweb saw happen to a node"""

    answers = {"GET": shapes.EventPage}
    columns, sorts, filterset, sort = rows.EVENTS, rows.EVENT_SORTS, filters.EventFilter, "-at"
    parameters = lists.asked(filters.EventFilter, rows.EVENT_SORTS, rows.EVENTS.names())

    def found(self, cluster: Cluster | None, **named: str) -> QuerySet[Any]:
        assert cluster is not None
        return selectors.events(current(cluster.slug, named["node"]))
