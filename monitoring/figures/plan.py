"""A plan as a page, a program and a terminal show it: the sentence that answers, a line for each node, what was assumed, what the linter found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from monitoring.figures import headlines, manifests, verdicts
from monitoring.figures.headlines import Headline
from monitoring.figures.sentences import Said
from monitoring.selectors.planning import Plan, Question, Row
from numacore.diagnosis import Reason
from numacore.lint import Finding
from numacore.manifest import DEFAULT_SCHEDULER
from numacore.whatif.judging import MOST_REPLICAS

STATES = {
    "crash": gettext_lazy("kubelet crashes"),
    "admitted": gettext_lazy("admitted"),
    "refused": gettext_lazy("refused"),
    "unknown": gettext_lazy("cannot be judged"),
}


def headline(plan: Plan, question: Question) -> Headline:
    """How many nodes would take it, and which is best."""
    crashes, admitted = plan.in_state("crash"), plan.in_state("admitted")
    total = len(plan.rows) + plan.pending
    if not total:
        return Headline("unknown", _("No node is chosen."), _("Widen the choice of nodes."))
    if crashes:
        text = ngettext(
            "The kubelet of %(count)d node would crash on this pod: %(name)s.",
            "The kubelets of %(count)d nodes would crash on this pod, the first is %(name)s.",
            len(crashes),
        )
        return Headline(
            "danger",
            text % {"count": len(crashes), "name": crashes[0].node},
            headlines.joined(_taking(plan, total), _imagined(question)),
        )
    if not plan.judged:
        return Headline("unknown", _("No node can be judged."), _("The table says why, node by node."))
    rest = headlines.joined(
        _best(plan), _room(plan), _volcano(plan), _disagreements(plan), _imagined(question)
    )
    return Headline(
        "ok" if admitted else "danger",
        _taking(plan, total),
        headlines.joined(rest, _for_example(plan), _unjudged(plan)),
    )


def _for_example(plan: Plan) -> str:
    """Where no node takes it, the reason of the first: often it is the same everywhere."""
    if plan.in_state("admitted") or not plan.in_state("refused"):
        return ""
    row = plan.in_state("refused")[0]
    return f"{row.node}: {verdicts.reason(row.why[0]).text}" if row.why else ""


def _unjudged(plan: Plan) -> str:
    count = len(plan.in_state("unknown"))
    if not count:
        return ""
    return ngettext("%(count)d cannot be judged.", "%(count)d cannot be judged.", count) % {"count": count}


def _taking(plan: Plan, total: int) -> str:
    count = len(plan.in_state("admitted"))
    if not count:
        return ngettext(
            "No node would take it; %(total)d was asked.", "None of %(total)d nodes would take it.", total
        ) % {"total": total}
    return ngettext(
        "%(count)d of %(total)d nodes would take it.", "%(count)d of %(total)d nodes would take it.", count
    ) % {"count": count, "total": total}


def _best(plan: Plan) -> str:
    best = plan.best
    if best is None:
        return ""
    if not best.cpus:
        return _("Best: %(node)s, on its shared CPUs.") % {"node": best.node}
    where = ", ".join(map(str, best.numa))
    return _("Best: %(node)s, CPUs %(cpus)s on NUMA %(numa)s.") % {
        "node": best.node,
        "cpus": str(best.cpus),
        "numa": where,
    }


def _room(plan: Plan) -> str:
    """Whether all replicas find a place."""
    asked = plan.replicas
    room = sum(row.fits or 0 for row in plan.rows)
    if asked is None or asked < 2 or not room:
        return ""
    capped = any(row.fits == MOST_REPLICAS for row in plan.rows)
    if room >= asked:
        return _("All %(asked)s pods find a place.") % {"asked": asked}
    if capped or plan.pending:
        return _("There is room for at least %(room)s of %(asked)s pods.") % {"room": room, "asked": asked}
    return _("There is room for %(room)s of %(asked)s pods.") % {"room": room, "asked": asked}


def _volcano(plan: Plan) -> str:
    """How many of the nodes that would take it Volcano would choose from; nothing where it does not schedule these pods."""
    admitted = [row for row in plan.in_state("admitted") if row.volcano]
    if not admitted:
        return ""
    count = sum(row.volcano.outcomes[0].fit for row in admitted if row.volcano)
    if not count:
        return _("Volcano would send it to none of them.")
    return ngettext(
        "Volcano would send it to %(count)d of them.", "Volcano would send it to %(count)d of them.", count
    ) % {"count": count}


def _disagreements(plan: Plan) -> str:
    count = sum(row.disagreement is not None for row in plan.rows)
    if not count:
        return ""
    return ngettext(
        "On %(count)d node Volcano and the kubelet disagree.",
        "On %(count)d nodes Volcano and the kubelet disagree.",
        count,
    ) % {"count": count}


def _imagined(question: Question) -> str:
    parts = [each for each in (question.policy, question.scope) if each]
    if not parts:
        return ""
    return _("Imagined on every node: %(what)s.") % {"what": " · ".join(parts)}


class Line(NamedTuple):
    """One node of the table."""

    row: Row
    state: str
    why: tuple[Said, ...]
    last: tuple[Said, ...]
    volcano: Said | None
    words: str
    """Volcano's own."""
    disagreement: str
    fits: str


def lines(rows: Sequence[Row]) -> list[Line]:
    return [line(row) for row in rows]


def line(row: Row) -> Line:
    """A node's answer in words."""
    return Line(
        row=row,
        state=str(STATES[row.state]),
        why=tuple(map(verdicts.reason, row.why)),
        last=tuple(map(verdicts.reason, row.last)),
        volcano=verdicts.volcano(row.volcano) if row.volcano else None,
        words=row.volcano.outcomes[0].reason if row.volcano else "",
        disagreement=verdicts.disagreement(row.disagreement) if row.disagreement else "",
        fits="–" if row.fits is None else f"{row.fits}+" if row.fits == MOST_REPLICAS else str(row.fits),
    )


def notes(plan: Plan) -> list[str]:
    """What had to be assumed, each said once."""
    found = {(each.code, tuple(each.values.items())): each for row in plan.rows for each in row.assumed}
    group = plan.group
    devices = sorted({name for each in group.pod.in_order() for name in each.limits if "/" in name})
    unseen = devices and not all(row.devices_known for row in plan.judged)
    more = [Reason("devices-unknown", {"resources": ", ".join(devices)})] if unseen else []
    if group.scheduler != DEFAULT_SCHEDULER:
        more += [Reason("numatopology-assumed", {"weight": plan.weight[0]}), *_scores(plan)]
    if unknown := sum(row.unknown_requests for row in plan.rows):
        more.append(Reason("requests-unknown", {"count": unknown}))
    return [verdicts.reason(each).text for each in (*found.values(), *more, *_order(plan))]


def _order(plan: Plan) -> list[Reason]:
    """What stands on the nodes already."""
    if not plan.before:
        return [Reason("one-by-one")]
    return [Reason("in-order", {"workloads": ", ".join(each.title for each in plan.before)})]


def _scores(plan: Plan) -> list[Reason]:
    """What is easily misread in Volcano's scores."""
    weight, used = plan.weight
    candidates = [row for row in plan.rows if row.score is not None]
    found = [] if used else [Reason("weight-unused", {"weight": weight})]
    if len(candidates) == 1 and candidates[0].counted:
        return [*found, Reason("one-candidate", {"node": candidates[0].node})]
    return [*found, Reason("scores-compare")] if candidates else found


class Found(NamedTuple):
    """A finding of the linter in words."""

    severity: str
    field: str
    text: str
    remedy: str
    code: str


def findings(of: Sequence[Finding]) -> list[Found]:
    """Errors first, each in the order of the manifest."""
    told = [Found(each.severity, each.field, *manifests.finding(each), each.reason.code) for each in of]
    return sorted(told, key=lambda each: each.severity != "error")
