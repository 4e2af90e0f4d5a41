"""Refused pods in words: what the engine says of each line, from which state of the node, and what would have fitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from monitoring.figures import causes, evidence, plan, sentences, verdicts
from monitoring.figures.headlines import Headline
from monitoring.figures.sentences import Form, Said
from monitoring.models import Failure
from monitoring.selectors.failures import Watched
from monitoring.selectors.planning import Explanation

OUTDATED = "outdated"

OBSTACLES: dict[str, Form] = {
    "no-node": (
        gettext_lazy("Not explained: no numa-exporter ever told of this node, so its NUMA nodes are unknown."),
        gettext_lazy("Let the DaemonSet of numa-exporter run there; the next refusal is then explained."),
    ),
    "no-state": (
        gettext_lazy("Not explained: at that moment the node's exporter had told nothing for too long."),
        gettext_lazy("Its page names the cause; the next refusal is explained once it answers again."),
    ),
    "no-store": (
        gettext_lazy("Not explained: at that moment the store of live data could not be read."),
        gettext_lazy("Check the Redis address and whether Redis runs."),
    ),
    "unreadable": (
        gettext_lazy("Not explained: what the pod asks for cannot be read."),
        gettext_lazy("Look at its manifest with the linter of the Planner, which names the fault."),
    ),
    "unjudged": (
        gettext_lazy(
            "Not explained: this node cannot be judged; its settings or state files are not known well enough."
        ),
        gettext_lazy("The Planner names what is missing of this node."),
    ),
    OUTDATED: (
        gettext_lazy("Not explained: another version of numaweb wrote this explanation."),
        gettext_lazy("The next refusal is explained anew; meanwhile ask the Planner."),
    ),
    "": (
        gettext_lazy("Not explained: very many lines came in one moment, and only some were judged."),
        gettext_lazy("The next pod of this line is judged; meanwhile ask the Planner."),
    ),
}  # fmt: skip

_ROOM = gettext_lazy(
    "By this state of the node the pod would have been admitted: by now the node has room, or something that is not judged was in the way."
)
_ROOM_REMEDY = gettext_lazy("The kubelet's own words stand beside it; ask the Planner whether it fits now.")
STATES = {
    "refused": gettext_lazy("understood"),
    "crash": gettext_lazy("kubelet crashes"),
    "admitted": gettext_lazy("not reproduced"),
    "": gettext_lazy("not explained"),
}

STARTS = {
    "CreateContainerConfigError": gettext_lazy("A ConfigMap, Secret or user that the container names is not there."),
    "CreateContainerError": gettext_lazy("The container runtime refuses to make the container, for instance for its CPUs or memory."),
    "RunContainerError": gettext_lazy("The container was made and cannot be started."),
    "CrashLoopBackOff": gettext_lazy("The container starts and ends again and again; the kubelet waits longer each time."),
}  # fmt: skip


class Explained(NamedTuple):
    """A line's explanation. `state` "" = nobody can explain it, and `said` says why."""

    state: str
    label: str
    said: Said
    more: tuple[Said, ...]
    advice: tuple[str, ...]
    assumed: tuple[str, ...]
    """What the answer takes for granted, and what was not looked at."""
    when: str
    """From which state of the node; "" where none was asked."""


def explanation(verdict: Any) -> Explanation | None:
    """A stored verdict; None = there is none, or another version wrote it."""
    try:
        return None if verdict is None else msgspec.convert(verdict, Explanation)
    except msgspec.ValidationError:
        return None


def leaving(verdicts_of: Iterable[Any]) -> set[str]:
    """Uids of pods whose leaving is among the advice of some stored verdicts."""
    found = filter(None, map(explanation, verdicts_of))
    return {fit.value for each in found for fit in each.advice if fit.kind == "leaving"}


def explained(line: Failure, names: Mapping[str, str]) -> Explained:
    """A line in words. `names` of pods by uid, as far as they are known."""
    late = line.judged is not None and line.judged < line.last
    return told(line.verdict, line.obstacle, line.state_age, names, late=late)


def told(
    verdict: Any, obstacle: str, age: float | None, names: Mapping[str, str], *, late: bool
) -> Explained:
    """A verdict in words. `late`: it is about an earlier pod than the newest one."""
    found = explanation(verdict)
    if found is None:
        code = OUTDATED if verdict is not None else obstacle
        return Explained("", str(STATES[""]), verdicts.said(OBSTACLES, code, {}), (), (), (), "")
    why = tuple(map(verdicts.reason, found.why))
    if found.state == "admitted":
        why = (Said(str(_ROOM), str(_ROOM_REMEDY)), *why)
    elif not why:
        why = (Said(str(plan.STATES[found.state]), ""),)
    return Explained(
        state=found.state,
        label=str(STATES[found.state]),
        said=why[0],
        more=why[1:],
        advice=tuple(evidence.each_alone(found.advice, names)),
        assumed=(
            *(verdicts.reason(each).text for each in found.assumed),
            *(() if found.advice_complete else (evidence.not_all_tried(),)),
        ),
        when=_when(age, late=late),
    )


def _when(age: float | None, *, late: bool) -> str:
    if age is None:
        words = _("Judged from the node's state of that moment.")
    elif age < 1:
        words = _("Judged from the node's state at that moment.")
    else:
        words = _("Judged from the node's state %(seconds)s s before.") % {"seconds": f"{age:.0f}"}
    after = _("The newest pod came after that.")
    return f"{words} {after}" if late else words


def start_failure(reason: str) -> str:
    """What a reason of a pod that was admitted and does not start means; "" = nobody knows it."""
    return str(STARTS.get(reason, ""))


# ---------------------------------------------------------------- the page's first line, and what is said where nothing is


def headline(watched: Watched, lines: int, pods: int, remaining: int) -> Headline:
    """`lines` of the cluster with `pods` refused in all, of which `remaining` are still there."""
    if not lines:
        text, remedy = nothing(watched)
        return Headline("ok" if watched.state == "ok" else "unknown", text, remedy)
    text = ngettext(
        "Kubelets refused %(pods)d pod.", "Kubelets refused %(pods)d pods.", pods
    ) % {"pods": pods}  # fmt: skip
    parts = [
        ngettext(
            "It is one line by owner, node and reason.",
            "They are %(lines)d lines by owner, node and reason.",
            lines,
        )
        % {"lines": lines},
        ngettext("%(count)d pod is still there.", "%(count)d pods are still there.", remaining)
        % {"count": remaining}
        if remaining
        else _("None of the pods is there any more."),
    ]
    return Headline("warning", text, " ".join(parts))


def nothing(watched: Watched) -> tuple[str, str]:
    """Why there is no refusal to be seen, and what to do about it."""
    match watched.state:
        case "none":
            return (
                _("Refused pods cannot be seen: this cluster has no connection to Kubernetes"),
                _(
                    "Add a connection to Kubernetes for it in the administration, or start numaweb with NUMAWEB_KUBECONFIG; then pods that kubelets refuse appear here."
                ),
            )
        case "off":
            return (
                _("Refused pods cannot be seen: the connection to Kubernetes is switched off"),
                _("Switch it on in the administration, under connections to Kubernetes."),
            )
        case "no-right":
            return (
                _("Refused pods cannot be seen: numaweb may not read the pods of this cluster"),
                _(
                    "Grant this right to its ServiceAccount: %(rights)s. The role is in watcher.yaml of the chart."
                )
                % {"rights": ", ".join(watched.rights)},
            )
        case "failing":
            return (
                _("Refused pods cannot be seen: the API server does not answer"),
                " ".join(
                    filter(
                        None,
                        (
                            causes.said(watched.cause),
                            sentences.remedy(watched.remedy)
                            or _("The connection in the administration says more."),
                        ),
                    )
                ),
            )
        case "listing":
            return (
                _("The pods of this cluster are being read for the first time"),
                _("The page shows them as soon as the list is complete. Does “manage.py watch” run?"),
            )
        case _:
            return (
                _("No pod was refused"),
                _("None of this cluster's pods is one, and none was since %(since)s.")
                % {"since": _moment(watched)},
            )


def outdated(watched: Watched) -> tuple[str, str] | None:
    """What is to be said above lines that are not current; None = they are."""
    return None if watched.state in ("ok", "listing") else nothing(watched)


def _moment(watched: Watched) -> str:
    return "" if watched.since is None else date_format(localtime(watched.since), "SHORT_DATETIME_FORMAT")
