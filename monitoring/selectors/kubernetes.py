"""What the API server tells, for pages: a node, pods, events, and how the connection to the cluster goes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec
from django.db.models import (
    BooleanField,
    Case,
    CharField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.fields.json import KT

from monitoring.models import (
    Cluster,
    ClusterEvent,
    Connection,
    Container,
    Endpoint,
    KubernetesNode,
    Node,
    NodeEvent,
    Pod,
    SourceView,
)

SILENT_AFTER = timedelta(minutes=5)
"""A node whose exporter said nothing for so long tells of no pod."""
RUNNING = "Running"
OVER = ("Succeeded", "Failed")
"""Phases of pods that hold nothing on a node any more."""
COMPARED = ("topology_policy", "topology_scope")
"""Facts that the inventory has a column for, so that a whole cluster is compared in one query."""


# ---------------------------------------------------------------- nodes


def node_of(node: Node) -> KubernetesNode | None:
    """What the API server says of a node; None = it has no such Node object, or none was read."""
    return KubernetesNode.objects.filter(node=node).first()


def exporter_at(cluster: Cluster, name: str) -> Endpoint | None:
    """The address under which an exporter should answer on a node that none ever told of."""
    return Endpoint.objects.filter(cluster=cluster, name=name).order_by("-enabled", "pk").first()


def nodes_known(cluster: Cluster) -> int:
    """Nodes that the API server has."""
    return KubernetesNode.objects.filter(node__cluster=cluster, node__gone_at=None).count()


class Contradiction(msgspec.Struct, frozen=True):
    """A node of which another source than its exporter says something else."""

    node: str
    source: str
    fact: str
    exporter: str
    other: str


def contradictions(cluster: Cluster, most: int) -> list[Contradiction]:
    """Where another source contradicts the exporter about one of the facts of COMPARED, by node; one query."""
    views = SourceView.objects.filter(node__cluster=cluster, node__gone_at=None)
    said = {f"said_{fact}": KT(f"values__{fact}") for fact in COMPARED}
    differing = Q()
    for fact in COMPARED:
        other = Q(**{f"said_{fact}__isnull": False}) & ~Q(**{f"said_{fact}": F(f"node__{fact}")})
        differing |= other & ~Q(**{f"node__{fact}": ""})
    found = views.annotate(**said).filter(differing).order_by("node__name", "source")
    columns = ("node__name", "source", *(f"node__{fact}" for fact in COMPARED), *said)
    return [each for row in found.values(*columns)[:most] for each in _contradictions(row)][:most]


def _contradictions(row: Mapping[str, Any]) -> Iterator[Contradiction]:
    for fact in COMPARED:
        own, other = row[f"node__{fact}"], row[f"said_{fact}"]
        if own and other is not None and own != other:
            yield Contradiction(row["node__name"], row["source"], fact, own, other)


# ---------------------------------------------------------------- pods


Placement = Literal["known", "not-shown", "silent", "no-exporter", "not-running"]
"""Whether a pod's place on the NUMA nodes is known: not-shown = the exporter on its node answers and has no container of it."""


def pods(cluster: Cluster, now: datetime) -> QuerySet[Pod]:
    """Every pod of a cluster, with `told` (an exporter tells of its node), `has_page` (its node is known) and its `placement`."""
    here = Node.objects.filter(cluster=cluster, gone_at=None).order_by().values("name")
    heard = here.filter(topology__isnull=False)
    telling = heard.filter(last_seen__gte=now - SILENT_AFTER)
    found = Pod.objects.filter(cluster=cluster).defer(*LARGE)
    there = Container.objects.filter(node__cluster=cluster, node__gone_at=None)
    shown = there.filter(pod_uid=OuterRef("kubelet_uid"), node__name=OuterRef("node_name"))
    placement = Case(
        When(~Q(phase=RUNNING), then=Value("not-running")),
        When(~_on(heard), then=Value("no-exporter")),
        When(~_on(telling), then=Value("silent")),
        When(Exists(shown), then=Value("known")),
        default=Value("not-shown"),
        output_field=CharField(),
    )
    return found.annotate(told=_is_on(telling), has_page=_is_on(here), placement=placement)


LARGE = ("resources", "running")
"""Columns of pods that no list shows."""


def _on(nodes: QuerySet[Node, Any]) -> Q:
    """One list of names for all pods: a question for each pod would cost several times as much."""
    return Q(node_name__in=nodes)


def _is_on(nodes: QuerySet[Node, Any]) -> ExpressionWrapper[Any]:
    return ExpressionWrapper(_on(nodes), output_field=BooleanField())


def untold(cluster: Cluster, now: datetime) -> int:
    """How many pods run where no exporter tells of them: their placement is unknown."""
    running: QuerySet[Any] = pods(cluster, now).filter(phase=RUNNING)
    return running.filter(told=False).count()


def pods_on(cluster: Cluster, node: str) -> QuerySet[Pod]:
    """Pods that are on a node and are not over."""
    found = Pod.objects.filter(cluster=cluster, node_name=node).exclude(phase__in=OVER)
    return found.defer(*LARGE).order_by("namespace", "name", "pk")


def by_uid(cluster: Cluster, node: str, uids: Collection[str]) -> dict[str, Pod]:
    """The pods of a node's containers, by the uid that the node knows; one query."""
    if not uids:
        return {}
    found = Pod.objects.filter(cluster=cluster, node_name=node, kubelet_uid__in=uids).defer(*LARGE)
    return {pod.kubelet_uid: pod for pod in found}


def not_shown(cluster: Cluster, node: str, shown: Collection[str]) -> list[Pod]:
    """Pods that run on a node and of which its exporter shows nothing. `shown`: uids of those that it shows; one query."""
    running = Pod.objects.filter(cluster=cluster, node_name=node, phase=RUNNING).defer(*LARGE)
    return [pod for pod in running.order_by("namespace", "name", "pk") if pod.kubelet_uid not in shown]


# ---------------------------------------------------------------- events


class Happening(msgspec.Struct, frozen=True):
    """One event of a node: of numaweb (`seen`) or of the cluster (`told`)."""

    at: datetime
    seen: NodeEvent | None = None
    told: ClusterEvent | None = None


def events_in(cluster: Cluster) -> QuerySet[ClusterEvent]:
    """The events of a whole cluster."""
    return ClusterEvent.objects.filter(cluster=cluster)


def events_on(cluster: Cluster, node: str) -> QuerySet[ClusterEvent]:
    """What the cluster's events say of a node and of pods on it, newest first."""
    return ClusterEvent.objects.filter(_concerns(cluster, node)).order_by("-last", "-pk")


def _concerns(cluster: Cluster, node: str) -> Q:
    return Q(cluster=cluster) & (Q(node_name=node) | Q(kind="Node", name=node))


class Story(Sequence[Happening]):
    """Events of numaweb and of the cluster about one node in one row, newest first; a page is read, never the whole."""

    def __init__(self, node: Node) -> None:
        self._seen = NodeEvent.objects.filter(node=node)
        self._told = events_on(node.cluster, node.name)

    def __len__(self) -> int:
        return self._seen.count() + self._told.count()

    def __getitem__(self, part: Any) -> Any:
        seen = self._seen.order_by().values_list("at", Value("seen", output_field=CharField()), "pk")
        told = self._told.order_by().values_list("last", Value("told", output_field=CharField()), "pk")
        keys = list(seen.union(told, all=True).order_by("-at", "-pk")[part])
        own = NodeEvent.objects.in_bulk([key for _at, kind, key in keys if kind == "seen"])
        others = ClusterEvent.objects.in_bulk([key for _at, kind, key in keys if kind == "told"])
        return [
            Happening(at, seen=own.get(key)) if kind == "seen" else Happening(at, told=others.get(key))
            for at, kind, key in keys
        ]


def events_of_pods(cluster: Cluster, uids: Collection[str], most: int) -> dict[str, list[ClusterEvent]]:
    """The newest events of some pods by their uid, in one query."""
    if not uids:
        return {}
    found: dict[str, list[ClusterEvent]] = {}
    of_pods = ClusterEvent.objects.filter(cluster=cluster, kind="Pod", object_uid__in=uids)
    for event in of_pods.order_by("-last", "-pk")[: most * len(uids)]:
        found.setdefault(event.object_uid, []).append(event)
    return {uid: events[:most] for uid, events in found.items()}


# ---------------------------------------------------------------- the connection


State = Literal["none", "off", "new", "failing", "partial", "ok"]


class Reached(msgspec.Struct, frozen=True):
    """How a cluster's API server is reached. `connection` is without its secrets.

    none: nobody said how; off: switched off; new: not tried yet; failing: no answer; partial: it answers, and some of what is wanted may
    not be read or is waited for; ok: all is followed.
    """

    state: State
    connection: Connection | None = None
    watches: tuple[Any, ...] = ()


SECRETS = ("kubeconfig", "token", "ca", "exporter_token", "exporter_ca")


def reached(cluster: Cluster) -> Reached:
    """How the connection and each watch go; two queries."""
    found = Connection.objects.filter(cluster=cluster).defer(*SECRETS).first()
    if found is None:
        return Reached("none")
    watches = tuple(found.watches.order_by("resource"))
    return Reached(_state(found, watches), found, watches)


def _state(found: Connection, watches: tuple[Any, ...]) -> State:
    if not found.enabled:
        return "off"
    if found.state == Connection.State.FAILING:
        return "failing"
    if found.state == Connection.State.NEW:
        return "new"
    hindered = any(each.state in ("waiting", "forbidden") for each in watches)
    return "partial" if found.missing or hindered else "ok"


def lacking(cluster: Cluster, *parts: str) -> list[str]:
    """Missing rights that these parts need (codes of `why`), as a person writes them: `list pods`. One query."""
    rows = Connection.objects.filter(cluster=cluster, enabled=True).values_list("missing", flat=True)
    return [right_of(each) for missing in rows for each in missing if each.get("why") in parts]


def lacking_by_part(found: Connection | None) -> dict[str, list[str]]:
    """Missing rights by the part that needs them."""
    parts: dict[str, list[str]] = {}
    for each in found.missing if found is not None and found.enabled else ():
        parts.setdefault(each.get("why", ""), []).append(right_of(each))
    return parts


def right_of(missing: dict[str, Any]) -> str:
    """A right of `Connection.missing` as a person writes it: `get nodes/configz`, `watch numatopologies.nodeinfo.volcano.sh`."""
    name = missing["resource"]
    if missing.get("subresource"):
        name = f"{name}/{missing['subresource']}"
    if missing.get("group"):
        name = f"{name}.{missing['group']}"
    return f"{missing['verb']} {name}"
