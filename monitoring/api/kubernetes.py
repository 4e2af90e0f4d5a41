"""What the API server tells, by REST: pods, events, nodes as Kubernetes has them, every source's word, and the connection itself."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from msgspec import Meta
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from monitoring import filters
from monitoring.api import base, lists, node, rows, shapes
from monitoring.api.explicit import explicit
from monitoring.api.shapes import Bytes, CpuAmount, Seconds
from monitoring.figures import connecting, saidby
from monitoring.models import Cluster
from monitoring.selectors import kubernetes, sources
from monitoring.selectors.nodestate import NeverHeardError

# ---------------------------------------------------------------- pods and events


class PodRow(msgspec.Struct):
    """A pod that the API server has. `told` false = no exporter tells of its node, so its placement is unknown.

    `placement` says whether it is known where its containers are, and if not, why: `not-shown` = the exporter on its node answers and has
    no container of it. `kubelet_uid` is the `pod_uid` of its containers, another one than `uid` only for static pods.
    """

    uid: str
    kubelet_uid: str
    namespace: str
    name: str
    node: Annotated[str | None, Meta(description="null = not scheduled")]
    told: bool
    placement: kubernetes.Placement
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"] | None
    reason: str | None
    message: str | None
    owner_kind: str | None
    owner: Annotated[str | None, Meta(description="the Deployment, not its ReplicaSet")]
    scheduler: str | None
    priority: int | None
    qos: Literal["Guaranteed", "Burstable", "BestEffort"] | None
    cpu_request: CpuAmount | None
    cpu_limit: CpuAmount | None
    memory_request: Bytes | None
    memory_limit: Bytes | None
    created: datetime | None


class PodPage(shapes.Page):
    results: list[PodRow]


class ClusterEventRow(msgspec.Struct):
    """An event of the cluster that concerns NUMA placement."""

    uid: str
    kind: str
    namespace: str | None
    name: str
    object_uid: str | None
    node: str | None
    warning: bool
    reason: str
    message: str | None
    component: Annotated[str | None, Meta(description="who told it, for instance kubelet")]
    count: int
    first: datetime | None
    last: datetime


class ClusterEventPage(shapes.Page):
    results: list[ClusterEventRow]


def nothing_made(_keys: rows.Keys, _moment: rows.Moment) -> rows.Row:
    return {}


PODS = rows.columns(
    PodRow,
    blank=("node", "phase", "reason", "message", "owner_kind", "owner", "scheduler", "qos"),
    renamed={"node": "node_name", "owner": "owner_name"},
    make=nothing_made,
    made=(),
    needed={},
)
POD_SORTS = {name: name for name in ("id", "namespace", "name", "phase", "created", "priority")} | {
    "cpu_request": "cpu_request",
    "memory_request": "memory_request",
    "node": "node_name",
    "owner": "owner_name",
}
EVENTS = rows.columns(
    ClusterEventRow,
    blank=("namespace", "object_uid", "node", "message", "component"),
    renamed={"node": "node_name"},
    make=nothing_made,
    made=(),
    needed={},
)
EVENT_SORTS = {"last": "last"}


class Pods(lists.ListView):
    """The pods of a cluster as the API server has them, also where no exporter tells of them"""

    answers = {"GET": PodPage}
    columns, sorts, filterset, sort = PODS, POD_SORTS, filters.PodFilter, "id"
    parameters = lists.asked(filters.PodFilter, POD_SORTS, PODS.names())

    def found(self, cluster: Cluster | None, **_named: str) -> QuerySet[Any]:
        assert cluster is not None
        return kubernetes.pods(cluster, timezone.now())


class ClusterEvents(lists.ListView):
    """The events of a cluster that concern NUMA placement"""

    answers = {"GET": ClusterEventPage}
    columns, sorts, filterset, sort = EVENTS, EVENT_SORTS, filters.ClusterEventFilter, "-last"
    parameters = lists.asked(filters.ClusterEventFilter, EVENT_SORTS, EVENTS.names())

    def found(self, cluster: Cluster | None, **_named: str) -> QuerySet[Any]:
        assert cluster is not None
        return kubernetes.events_in(cluster)


class NodeClusterEvents(ClusterEvents):
    """The cluster's events of a node and of pods on it"""

    def found(self, cluster: Cluster | None, **named: str) -> QuerySet[Any]:
        assert cluster is not None
        return kubernetes.events_on(cluster, node.current(cluster.slug, named["node"]).name)


# ---------------------------------------------------------------- one node


class NodeCondition(msgspec.Struct):
    type: str
    status: str
    good: bool | None
    reason: str | None
    message: str | None
    since: datetime | None


class Taint(msgspec.Struct):
    key: str
    value: str | None
    effect: str


class KubernetesNodeValue(msgspec.Struct):
    """A node as the API server has it. Quantities are written as Kubernetes writes them."""

    name: str
    created: datetime | None
    ready: Annotated[bool | None, Meta(description="null = its kubelet does not report")]
    cordoned: bool
    labels: dict[str, str]
    taints: list[Taint]
    capacity: dict[str, str]
    allocatable: dict[str, str]
    conditions: list[NodeCondition]
    kubelet_version: str | None
    runtime_version: str | None
    kernel_version: str | None
    os_image: str | None
    architecture: str | None
    machine_id: str | None
    boot_id: str | None
    address: str | None
    updated: datetime


class KubernetesNode(base.ApiView):
    """A node as Kubernetes has it: labels, taints, resources, conditions, versions"""

    answers = {"GET": KubernetesNodeValue}

    def get(self, request: Request, cluster: str, node: str) -> HttpResponse:
        return base.respond(request, explicit(kubernetes_of(current(cluster, node))))


def current(cluster: str, name: str) -> Any:
    return node.current(cluster, name)


def kubernetes_of(of: Any) -> KubernetesNodeValue:
    told = kubernetes.node_of(of)
    if told is None:
        raise NotFound(
            _(
                "No API server told of this node. Its cluster's connection (connection/) says whether nodes are read."
            )
        )
    texts = ("kubelet_version", "runtime_version", "kernel_version", "os_image", "architecture")
    return KubernetesNodeValue(
        name=of.name,
        created=told.created,
        ready=told.ready,
        cordoned=told.unschedulable,
        labels=told.labels,
        taints=[
            Taint(each.get("key", ""), each.get("value") or None, each.get("effect", ""))
            for each in told.taints
        ],
        capacity={name: str(value) for name, value in told.capacity.items()},
        allocatable={name: str(value) for name, value in told.allocatable.items()},
        conditions=[
            NodeCondition(
                each.type, each.status, each.good, each.reason or None, each.message or None, each.since
            )
            for each in saidby.conditions(told)
        ],
        updated=told.updated,
        **{name: getattr(told, name) or None for name in (*texts, "machine_id", "boot_id", "address")},
    )


class ToldBy(msgspec.Struct):
    """One source's word. `value` as that source has it, amounts in CPUs and bytes; NUMA nodes by their id."""

    source: Literal["exporter", "numatopology", "noderesourcetopology", "api"]
    value: Any
    age: Annotated[
        Seconds | None, Meta(description="since it was confirmed (exporter) or last changed (others)")
    ]


class FactValue(msgspec.Struct):
    """One fact with everybody who tells it, the best first: that one is believed."""

    fact: str
    label: str
    contradicted: bool
    told: list[ToldBy]


class NodeSources(msgspec.Struct):
    """What each source says of a node, fact by fact."""

    contradictions: int
    results: list[FactValue]


class Sources(base.ApiView):
    """What each source says of a node, and where they contradict each other

    Also of a node that no exporter ever told of: then others alone are heard.
    """

    answers = {"GET": NodeSources}

    def get(self, request: Request, cluster: str, node: str) -> HttpResponse:
        facts = sources.facts_of(voices(cluster, node))
        found = [
            FactValue(
                each.name,
                str(saidby.FACTS.get(each.name, each.name)),
                each.contradicted,
                [ToldBy(told.source, told.value, node_age(told.age)) for told in each.told],
            )
            for each in facts
        ]
        answer = NodeSources(sum(each.contradicted for each in found), found)
        ageless = [[each.name, each.contradicted, [[t.source, t.value] for t in each.told]] for each in facts]
        return base.respond(request, explicit(answer), ageless)


def node_age(age: float | None) -> float | None:
    return node.rounded(age)


def voices(cluster: str, name: str) -> list[sources.Said]:
    try:
        state = node.told(cluster, name)
    except NeverHeardError as found:
        return sources.voices(found.node, None, None, None, timezone.now())
    facts, report = (state.facts, state.report) if state.live else (None, None)
    return sources.voices(state.node, facts, report, state.age, timezone.now())


# ---------------------------------------------------------------- the connection


class MissingRight(msgspec.Struct):
    """A right that the ServiceAccount lacks, and what lacks something for it."""

    right: str
    verb: str
    group: str
    resource: str
    subresource: str | None
    why: str
    text: str


class WatchValue(msgspec.Struct):
    """How the watch of one kind of objects goes. absent = the cluster has none, which is no fault."""

    resource: str
    state: Literal["listing", "watching", "waiting", "forbidden", "absent"]
    since: datetime
    listed: Annotated[datetime | None, Meta(description="last whole list")]
    heard: Annotated[datetime | None, Meta(description="last change")]
    objects: int | None
    failures: int
    cause: str | None
    remedy: str | None


class ExporterSet(msgspec.Struct):
    """A DaemonSet that runs exporters."""

    namespace: str
    name: str
    desired: int
    ready: int
    misscheduled: int


class ConnectionValue(msgspec.Struct):
    """How a cluster's API server is reached. Nothing here is secret; what it is reached with is never shown.

    none = nobody said how; off = switched off; new = not tried yet; failing = no answer; partial = it answers, and not all can be read.
    """

    state: Literal["none", "off", "new", "failing", "partial", "ok"]
    text: str
    remedy: str | None
    by: Literal["in-cluster", "file", "kubeconfig", "token"] | None
    server: str | None
    version: str | None
    last_try: datetime | None
    last_ok: datetime | None
    cause: str | None
    missing: list[MissingRight]
    watches: list[WatchValue]
    daemonsets: list[ExporterSet]


class Connection(base.ApiView):
    """How a cluster's API server is reached, how each watch goes, and which rights are missing"""

    answers = {"GET": ConnectionValue}

    def get(self, request: Request, cluster: str) -> HttpResponse:
        return base.respond(request, explicit(connection_of(base.cluster_of(cluster))))


def connection_of(cluster: Cluster) -> ConnectionValue:
    found = kubernetes.reached(cluster)
    told, line = found.connection, connecting.headline(found)
    return ConnectionValue(
        state=found.state,
        text=line.text,
        remedy=line.detail if found.state != "ok" and line.detail else None,
        by=told.source if told else None,  # type: ignore[arg-type]  # its choices are those of the type
        server=(told.reached or None) if told else None,
        version=(told.version or None) if told else None,
        last_try=told.last_try if told else None,
        last_ok=told.last_ok if told else None,
        cause=(told.error or None) if told else None,
        missing=[right(each) for each in told.missing] if told else [],
        watches=[watch(each) for each in found.watches],
        daemonsets=[ExporterSet(**each) for each in told.daemonsets] if told else [],
    )


def right(of: dict[str, Any]) -> MissingRight:
    return MissingRight(
        right=kubernetes.right_of(of),
        verb=of["verb"],
        group=of.get("group", ""),
        resource=of["resource"],
        subresource=of.get("subresource") or None,
        why=of.get("why", ""),
        text=connecting.why(of.get("why", "")),
    )


def watch(of: Any) -> WatchValue:
    told = connecting.watch(of)
    return WatchValue(
        resource=of.resource,
        state=of.state,
        since=of.since,
        listed=of.listed,
        heard=of.heard,
        objects=of.objects_known,
        failures=of.failures,
        cause=told.text or None,
        remedy=told.remedy or None,
    )
