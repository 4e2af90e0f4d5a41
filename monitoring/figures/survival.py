"""What a restart of a node's kubelet would bring, in words: for its page and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.figures import amounts, reading, verdicts
from monitoring.figures.headlines import Headline
from monitoring.figures.sentences import Said
from numacore.diagnosis import Reason
from numacore.facts import Facts
from numacore.kubelet.memory_start import Difference
from numacore.kubelet.restart import Survival
from numacore.kubelet.verdict import Verdict
from numacore.whatif import explaining, surviving
from numacore.whatif.surviving import Outlook
from numacore.wire import Problem

State = Literal["survives", "refuses", "crashes", "loses", "unknown"]


class LostPod(NamedTuple):
    """A pod that the kubelet would not take on again."""

    uid: str
    name: str
    code: str
    text: str
    words: str
    """The kubelet's own."""


class Shown(NamedTuple):
    """`words` are the kubelet's own when it does not start."""

    state: State
    headline: Headline
    words: str
    differences: tuple[str, ...]
    lost: tuple[LostPod, ...]
    running: int
    assumed: tuple[str, ...]
    chance: bool = False
    """Go's map order decides whether it starts."""


def of_node(facts: Facts, problems: Iterable[Problem] = ()) -> Shown:
    """Judged from what is known of the node now. `problems`: what its exporter could not read."""
    policy = facts.kubelet.asked("topologyManagerPolicy", "none") if facts.kubelet else None
    return shown(surviving.outlook(facts), policy or "", problems)


def shown(of: Outlook, policy: str, problems: Iterable[Problem] = ()) -> Shown:
    """`policy`: the topology manager's, as it is asked for."""
    found = of.survival
    assumed = tuple(verdicts.reason(each).text for each in of.assumed)
    if found is None:
        said = (_unread(of.problem, problems) or verdicts.reason(of.problem)) if of.problem else None
        text = _("Whether this kubelet would survive a restart now cannot be told.")
        detail = f"{said.text} {said.remedy}".strip() if said else ""
        return Shown("unknown", Headline("unknown", text, detail), "", (), (), len(of.running), assumed)
    lost = tuple(
        LostPod(
            each.pod.uid,
            of.running.get(each.pod.uid, each.pod.uid),
            *_why(each.verdict, policy),
            f"{each.verdict.reason}: {each.verdict.message}".strip(": "),
        )
        for each in found.lost
    )
    differences = tuple(map(_difference, found.differences))
    state, headline = _answer(found, len(of.running))
    return Shown(state, headline, found.refusal, differences, lost, len(of.running), assumed, found.chance)


READERS = {"cpu": "cpu-state", "memory": "memory-state"}
"""Who reads the state file of a manager (`numaagent.readers.statefiles`)."""
DAMAGED = "damaged"
"""The kind of cause when the file is there and does not say what such files say."""


def _unread(problem: Reason, problems: Iterable[Problem]) -> Said | None:
    """A state file by its path, with what is wrong with it; None where that is not the problem, or its exporter does not say."""
    reader = READERS.get(str(problem.values.get("manager", ""))) if problem.code == "state-unknown" else None
    told = next((each for each in problems if each.reader == reader), None)
    if told is None:
        return None
    found = reading.problem(told)
    text = _("%(file)s cannot be used: %(cause)s.") % {"file": told.what, "cause": found.text.rstrip(".")}
    if found.code != DAMAGED:
        return Said(text, _("Let the exporter read the state files in /var/lib/kubelet."))
    return Said(text, found.remedy)


def _why(verdict: Verdict, policy: str) -> tuple[str, str]:
    reasons = explaining.why(verdict, policy)
    return (reasons[0].code, verdicts.reason(reasons[0]).text) if reasons else ("", "")


def _answer(found: Survival, running: int) -> tuple[State, Headline]:
    if found.panics:
        return "crashes", Headline(
            "danger",
            _("If this kubelet restarted now, it would crash, again at each attempt."),
            _("Drain the node and correct what is named here before it restarts or reboots."),
        )
    if found.refusal:
        return "refuses", Headline(
            "danger",
            _(
                "If this kubelet restarted now, it would be chance whether it starts: groups of NUMA nodes overlap in its memory state."
            )
            if found.chance
            else _("If this kubelet restarted now, it would not start; the node would become NotReady."),
            _(
                "Containers that run go on running, and nobody looks after them. Drain the node, remove the state file that is named, and restart the "
                "kubelet; or take back the change."
            ),
        )
    if found.lost:
        text = ngettext(
            "If this kubelet restarted now, it would start and not take on %(count)d pod again.",
            "If this kubelet restarted now, it would start and not take on %(count)d pods again.",
            len(found.lost),
        )
        return "loses", Headline(
            "warning",
            text % {"count": len(found.lost)},
            _("Drain these pods first, or take back the change."),
        )
    if not running:
        return "survives", Headline("ok", _("If this kubelet restarted now, it would start."))
    text = ngettext(
        "If this kubelet restarted now, it would start and keep its %(count)d pod.",
        "If this kubelet restarted now, it would start and keep all %(count)d pods.",
        running,
    )
    return "survives", Headline("ok", text % {"count": running}, "")


def _difference(of: Difference) -> str:
    """An amount that the kubelet's own words do not tell."""
    text = _(
        "NUMA %(numa)s, %(what)s: the state file has %(state)s, this machine and its settings give %(expected)s"
    )
    return text % {
        "numa": of.node,
        "what": f"{of.field} ({amounts.name(of.kind)})" if of.kind else of.field,
        "state": _amount(of, of.state),
        "expected": _amount(of, of.expected),
    }


def _amount(of: Difference, value: int | tuple[int, ...] | None) -> str:
    if isinstance(value, int):
        return f"{value} ({amounts.size(value)})" if of.kind else str(value)
    return ", ".join(map(str, value)) if value else _("nothing")
