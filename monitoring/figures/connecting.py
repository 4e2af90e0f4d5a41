"""The connection to a cluster in words: how it goes, what is missing and which page lacks something, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from monitoring.figures import causes, sentences
from monitoring.figures.headlines import Headline
from monitoring.models import Connection
from monitoring.selectors.kubernetes import Reached, right_of

WHY: dict[str, Promise] = {
    "nodes": gettext_lazy(
        "nodes without an exporter, labels, taints and conditions: the list of nodes and the node pages lack them"
    ),
    "pods": gettext_lazy(
        "pods, refused ones among them, and exporters by their pods: the pages Failures and Pods lack them"
    ),
    "events": gettext_lazy("events of the cluster: the node pages and the details of containers lack them"),
    "exporters": gettext_lazy(
        "DaemonSets of numa-exporter: the page of a node without an exporter cannot tell why it has none"
    ),
    "sources": gettext_lazy(
        "what Volcano and others say of nodes (Numatopology, NodeResourceTopology): the tab Sources of the node pages lacks it"
    ),
    "configz": gettext_lazy(
        "what is in force in each kubelet: the tab Kubelet settings of the node pages lacks it and shows what the exporter sees"
    ),
}
"""What needs a right, by the code that the watcher stores with it."""
OBJECTS: dict[str, tuple[Promise, str]] = {
    "nodes": (gettext_lazy("Nodes"), "nodes"),
    "pods": (gettext_lazy("Pods"), "pods"),
    "events": (gettext_lazy("Events"), "events"),
    "daemonsets.apps": (gettext_lazy("DaemonSets"), "exporters"),
    "numatopologies.nodeinfo.volcano.sh": (gettext_lazy("Numatopology of Volcano"), "sources"),
    "noderesourcetopologies.topology.node.k8s.io": (gettext_lazy("NodeResourceTopology"), "sources"),
}
"""Kinds of objects by what the API server calls them, and what needs them."""


class Lack(NamedTuple):
    """One missing right, and which pages lack what."""

    right: str
    text: str


class Watch(NamedTuple):
    """One kind of objects. `level`: ok, failing or absent."""

    name: str
    resource: str
    level: str
    state: Any
    text: str
    remedy: str
    since: datetime
    listed: datetime | None
    heard: datetime | None
    objects: int | None
    failures: int


def headline(found: Reached) -> Headline:
    """Does numaweb read this cluster, and if not, why?"""
    connection = found.connection
    if connection is None:
        return Headline("unknown", _("This cluster has no connection to Kubernetes."), how_to_connect())
    match found.state:
        case "off":
            return Headline("unknown", _("The connection to Kubernetes is switched off."), switched_off())
        case "new":
            return Headline(
                "unknown",
                _("The API server was not asked yet."),
                _("The process “manage.py watch” asks it within seconds. Does it run?"),
            )
        case "failing":
            return Headline(
                "danger",
                _("The API server does not answer: %(cause)s")
                % {"cause": causes.said(connection.error) or _("unknown")},
                sentences.remedy(connection.remedy),
            )
        case "partial":
            return Headline(
                "warning", _("The API server answers, and not everything can be read."), partly(found)
            )
        case _:
            return Headline(
                "ok",
                _("The API server answers, and everything that is wanted is followed."),
                _("Kubernetes %(version)s at %(server)s.")
                % {"version": connection.version or "?", "server": connection.reached or "?"},
            )


def how_to_connect() -> str:
    return _(
        "An administrator adds one in the administration, under clusters; or start numaweb with NUMAWEB_KUBECONFIG."
    )


def switched_off() -> str:
    return _("An administrator switches it on in the administration, under connections to Kubernetes.")


def partly(found: Reached) -> str:
    """What of a connection that answers is wanting."""
    missing = len(found.connection.missing) if found.connection else 0
    waiting = sum(1 for each in found.watches if each.state == "waiting")
    parts = []
    if missing:
        parts.append(
            ngettext("%(count)d right is missing.", "%(count)d rights are missing.", missing)
            % {"count": missing}
        )
    if waiting:
        parts.append(
            ngettext(
                "%(count)d kind of objects cannot be followed at the moment.",
                "%(count)d kinds of objects cannot be followed at the moment.",
                waiting,
            )
            % {"count": waiting}
        )
    return " ".join(parts) or _("A right is missing.")


def lacks(connection: Connection) -> list[Lack]:
    """Every missing right, with what lacks it."""
    return [Lack(right_of(each), why(each.get("why", ""))) for each in connection.missing]


def why(code: str) -> str:
    return str(WHY.get(code, code))


def grant(rights: Iterable[str]) -> str:
    """What to do about missing rights."""
    return _(
        "Grant its ServiceAccount these rights: %(rights)s. The role is in watcher.yaml of the chart."
    ) % {"rights": ", ".join(rights)}


def watches(found: Reached) -> list[Watch]:
    return [watch(each) for each in found.watches]


def watch(each: Any) -> Watch:
    label, needed = OBJECTS.get(each.resource, (each.resource, ""))
    text, remedy, level = "", "", "ok"
    match each.state:
        case "forbidden":
            level, text = "failing", _("No right to read them. Needed for: %(why)s.") % {"why": why(needed)}
            remedy = sentences.remedy("grant-right")
        case "waiting":
            level, text, remedy = "failing", causes.said(each.error), sentences.remedy(each.remedy)
        case "absent":
            level, text = "absent", _("This cluster has no such objects, which is no fault.")
        case _:
            text = causes.said(each.error)
    return Watch(
        name=str(label),
        resource=each.resource,
        level=level,
        state=each.get_state_display(),
        text=text,
        remedy=remedy,
        since=each.since,
        listed=each.listed,
        heard=each.heard,
        objects=each.objects_known,
        failures=each.failures,
    )


def component(state: str, values: Mapping[str, Any], cause: str) -> str:
    """The line of the overview's components."""
    match state:
        case "absent":
            return str(ABSENT.get(str(values.get("code")), ABSENT["none"]))
        case "failing" if values.get("code") == "partial":
            missing = values.get("missing", 0)
            return (
                ngettext(
                    "answers; %(count)d right is missing", "answers; %(count)d rights are missing", missing
                )
                % {"count": missing}
                if missing
                else _("answers; not everything can be followed")
            )
        case "failing":
            return f"{causes.said(cause)} {sentences.remedy(str(values.get('remedy', '')))}".strip() or _(
                "fails"
            )
        case _:
            return _("Kubernetes %(version)s") % {"version": values.get("version") or "?"}


ABSENT: dict[str, Promise] = {
    "none": gettext_lazy("no connection"),
    "off": gettext_lazy("switched off"),
    "new": gettext_lazy("not asked yet; does “manage.py watch” run?"),
}


def no_pods(found: Reached, lacking: list[str]) -> tuple[str, str]:
    """Why a cluster's list of pods is empty, and what to do about it."""
    if lacking:
        return _("numaweb may not read the pods of this cluster"), grant(lacking)
    if found.state == "ok" or found.state == "partial":
        return _("This cluster has no pod"), _("Pods appear here as soon as the API server tells of them.")
    line = headline(found)
    return line.text, line.detail
