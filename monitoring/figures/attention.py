"""What needs attention and how the parts of the service do, in words: what, where, how bad, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.figures import causes, connecting, saidby, sentences


class Note(Protocol):
    """What `monitoring.selectors.Attention` has."""

    @property
    def level(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def values(self) -> Mapping[str, Any]: ...
    @property
    def node(self) -> str: ...
    @property
    def container_id(self) -> str: ...


class Part(Protocol):
    """What `monitoring.selectors.Component` has."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def values(self) -> Mapping[str, Any]: ...
    @property
    def cause(self) -> str: ...


class Told(NamedTuple):
    """One thing that needs attention. `tab` is the part of the node's page that shows more."""

    level: str
    text: str
    detail: str
    node: str
    container_id: str
    tab: str
    page: str = ""
    """Name of the page of this cluster that shows more, where it is not a node's."""
    query: str = ""


class Health(NamedTuple):
    """One part of the service and how it does."""

    name: str
    state: str
    text: str
    detail: str


CROSSINGS = {"cpu": gettext_lazy("CPU"), "memory": gettext_lazy("memory"), "device": gettext_lazy("device")}
NOTES: dict[str, tuple[Promise, Promise, str]] = {
    "admission-refused": (
        gettext_lazy("Kubelets refused pods in the last 24 hours"),
        gettext_lazy("Owners: %(owners)s, nodes: %(nodes)s. %(reasons)s."),
        "",
    ),
    "not-starting": (
        gettext_lazy("Admitted pods that do not start: %(pods)s"),
        gettext_lazy("Their containers wait or end again and again."),
        "",
    ),
    "endpoint-failing": (
        gettext_lazy("The exporter %(endpoint)s does not answer"),
        gettext_lazy("%(cause)s"),
        "events",
    ),
    "endpoint-conflict": (
        gettext_lazy("Two exporters claim one node: %(endpoint)s"),
        gettext_lazy("%(cause)s"),
        "events",
    ),
    "node-stale": (
        gettext_lazy("Old data"),
        gettext_lazy("Nothing new for a while. The node's page names the cause."),
        "topology",
    ),
    "node-no-data": (
        gettext_lazy("No data"),
        gettext_lazy("No numa-exporter answers for this node. Its page names the cause."),
        "topology",
    ),
    "node-unheard": (
        gettext_lazy("No numa-exporter on this node"),
        gettext_lazy(
            "Kubernetes has this node, and no numa-exporter ever told of it. Let the DaemonSet run there: look at its node "
            "selector and at the node's taints."
        ),
        "topology",
    ),
    "nodes-unheard": (
        gettext_lazy("Nodes without a numa-exporter: %(count)s"),
        gettext_lazy(
            "Kubernetes has them, and no numa-exporter ever told of them. Install its DaemonSet, or look at its node selector and at the "
            "nodes' taints; each node's page says what keeps it away."
        ),
        "",
    ),
    "kubernetes-failing": (
        gettext_lazy("The API server of this cluster does not answer"),
        gettext_lazy("%(cause)s"),
        "",
    ),
    "rights-missing": (
        gettext_lazy("numaweb lacks rights in this cluster"),
        gettext_lazy("Missing: %(rights)s. The page of the connection tells which page lacks what."),
        "",
    ),
    "watch-waiting": (
        gettext_lazy("Some objects of this cluster cannot be followed"),
        gettext_lazy("They are: %(resources)s. The page of the connection names the cause."),
        "",
    ),
    "pods-untold": (
        gettext_lazy("Running pods that no exporter tells of: %(pods)s"),
        gettext_lazy("Their placement is unknown, because no numa-exporter answers on their nodes."),
        "",
    ),
    "sources-contradict": (
        gettext_lazy("Sources contradict each other about the %(fact)s"),
        gettext_lazy("The exporter says %(exporter)s, %(source)s says %(other)s. The exporter is believed."),
        "sources",
    ),
    "policy-contradiction": (
        gettext_lazy("The kubelet is asked for one policy and runs another"),
        gettext_lazy(
            "A changed policy takes effect only after the state file is removed and the kubelet restarted."
        ),
        "kubelet",
    ),
    "reader-problems": (
        gettext_lazy("Some files cannot be read: %(count)s"),
        gettext_lazy("What they tell is shown as unknown. The node's page names each file and its cause."),
        "events",
    ),
    "store-unreachable": (
        gettext_lazy("Live data cannot be read"),
        gettext_lazy("%(cause)s Check the Redis address and whether Redis runs; nothing stored is lost."),
        "",
    ),
    "database-refuses": (
        gettext_lazy("The database takes nothing new"),
        gettext_lazy("%(refusal)s"),
        "",
    ),
    "samples-dropped": (
        gettext_lazy("History has gaps: %(count)s samples could not be stored"),
        gettext_lazy("The database did not take them in time. Look at its load and at its free space."),
        "",
    ),
}
REFUSALS: dict[str, Promise] = {
    "full": gettext_lazy(
        "It is full. Free space on its disk or enlarge its volume; what is stored stays, and writing goes on by itself."
    ),
    "locked": gettext_lazy(
        "Somebody holds it locked. Look for a long transaction or another program that has it open (PostgreSQL: pg_stat_activity); writing goes on by itself."
    ),
    "read-only": gettext_lazy(
        "It can only be read. Look whether it is a standby, or for SQLite whether numaweb may write to the file and its folder."
    ),
    "damaged": gettext_lazy(
        "It cannot be written because of a fault of its disk or its file. Look at the disk and at the database's log; the newest backup can be restored."
    ),
    "away": gettext_lazy(
        "It does not answer those who write. Check that it runs and is reached at its address; writing goes on by itself."
    ),
    "refused": gettext_lazy("It refused a write. The log of the worker or watcher has its words."),
}
"""Why the database takes nothing, and what to do; by the kinds of `services.storing`."""
PAGES = {
    "admission-refused": "failures",
    "nodes-unheard": "monitoring",
    "not-starting": "starting",
    "kubernetes-failing": "connection",
    "rights-missing": "connection",
    "watch-waiting": "connection",
    "pods-untold": "pods",
}
"""The page that shows more of what is no node's alone."""
UNTOLD = "told=false&phase=Running"
"""The filter of the pods' page that shows those that `pods-untold` counts."""
PARTS: dict[str, Promise] = {
    "exporter": gettext_lazy("numa-exporter"),
    "collector": gettext_lazy("Collection"),
    "kubernetes": gettext_lazy("Kubernetes"),
    "prometheus": gettext_lazy("Prometheus"),
    "database": gettext_lazy("Database"),
    "redis": gettext_lazy("Redis"),
}
ABSENT: dict[str, Promise] = {
    "exporter": gettext_lazy("no address known"),
    "collector": gettext_lazy("nothing to collect"),
    "prometheus": gettext_lazy("not configured; history comes from the own store"),
    "redis": gettext_lazy("not needed here"),
}


def told(notes: Iterable[Note]) -> list[Told]:
    """Everything that needs attention, in words."""
    return [crossing(note) if note.code == "container-crossing" else plain(note) for note in notes]


def crossing(note: Note) -> Told:
    values = note.values
    kinds = _(", ").join(str(word) for key, word in CROSSINGS.items() if values.get(key))
    cost = values.get("cost")
    detail = _("Crosses with: %(kinds)s.") % {"kinds": kinds}
    if cost is not None:
        detail = _("Crosses with: %(kinds)s. About %(cost)s times the local access cost.") % {
            "kinds": kinds,
            "cost": f"{cost:.2f}",
        }
    return Told(
        note.level, str(values.get("container", "")), detail, note.node, note.container_id, "containers"
    )


def plain(note: Note) -> Told:
    if note.code not in NOTES:
        return Told(note.level, note.code, "", note.node, note.container_id, "topology")
    text, detail, tab = NOTES[note.code]
    values = spoken(note.values)
    words = sentences.filled(detail, values)
    remedy = sentences.remedy(str(note.values.get("remedy", "")))
    return Told(
        note.level,
        sentences.filled(text, values),
        f"{words} {remedy}".strip(),
        note.node,
        "",
        tab,
        PAGES.get(note.code, ""),
        UNTOLD if note.code == "pods-untold" else "",
    )


def spoken(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Names of facts and sources as people know them, and causes in the reader's language."""
    names = {"fact": saidby.FACTS, "source": saidby.SOURCES, "refusal": REFUSALS}
    known = {key: names[key].get(value, value) if key in names else value for key, value in values.items()}
    return sentences.in_words(known)


def components(parts: Iterable[Part]) -> list[Health]:
    """How the parts of the service do, in words."""
    return [
        Health(part.name, part.state, str(PARTS.get(part.name, part.name)), health(part)) for part in parts
    ]


def health(part: Part) -> str:
    if part.name == "kubernetes":
        return connecting.component(part.state, part.values, part.cause)
    if part.state == "absent":
        return str(ABSENT.get(part.name, ""))
    if part.name == "exporter":
        return _("%(ok)s of %(total)s answer") % part.values
    if part.name == "database" and part.state == "failing":
        return str(REFUSALS.get(str(part.values.get("code")), REFUSALS["refused"]))
    if part.state == "failing":
        return causes.said(part.cause) or _("fails")
    kind = part.values.get("kind")
    return {"sqlite": "SQLite", "postgresql": "PostgreSQL"}.get(str(kind), "") or _("works")
