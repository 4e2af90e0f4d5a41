"""The evidence of one node: what every manager offered, where the pod would lie, what other policies would say; and its drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.figures import amounts, drawing, plan, sentences, verdicts, volcano
from monitoring.selectors import planning
from monitoring.selectors.planning import Detail, Row, Turn
from numacore.cpuset import CpuSet, union
from numacore.kubelet.advice import Fit
from numacore.kubelet.offers import Offer
from numacore.kubelet.verdict import Alignment, Placement, Verdict
from numacore.whatif.explaining import why
from numacore.whatif.judging import Alternative

PLANNED = "planned"
"""Id of a pod that is only imagined."""
MOST_LEAVING = 4
"""Pods that are named whose leaving would make room."""


class Cell(NamedTuple):
    """One NUMA node's amount of a resource: free of all there is, and whether it is enough alone."""

    free: str
    total: str
    enough: bool


class Offered(NamedTuple):
    """One resource of a merge: what is asked, and every NUMA node's amount."""

    owner: str
    resource: str
    asked: str
    cells: tuple[Cell, ...]
    masks: int | None
    """In how many ways it could be served; None = anywhere."""


class TurnLine(NamedTuple):
    """One workload of several that stand on a node one after the other."""

    title: str
    state: str
    label: str
    text: str
    why: str


class Evidence(NamedTuple):
    """Everything that the page shows of one node."""

    line: plan.Line
    placed: list[dict[str, Any]]
    numa: list[int]
    offers: list[Offered]
    alternatives: list[dict[str, Any]]
    others: list[str]
    advice: list[str]
    steps: list[volcano.Told]
    turns: list[TurnLine]
    verdict: Verdict | None


def evidence(detail: Detail, row: Row | None) -> Evidence:
    """`row`: the node's line of the plan, which has a score."""
    ids = list(detail.facts.topology.numa_ids)
    first = detail.answer.first
    return Evidence(
        line=plan.line(row or detail.row),
        placed=placed(detail, first),
        numa=ids,
        offers=[
            each for alignment in (first.alignments if first else ()) for each in offered(alignment, ids)
        ],
        alternatives=[alternative(each, detail) for each in detail.alternatives],
        others=[other(each, detail) for each in detail.others],
        advice=advised(detail),
        steps=steps(detail, row),
        turns=[turn(each) for each in detail.turns] if len(detail.turns) > 1 else [],
        verdict=first,
    )


def placed(detail: Detail, first: Verdict | None) -> list[dict[str, Any]]:
    """Where each container of an admitted pod would lie."""
    if first is None or not first.admitted:
        return []
    topology = detail.facts.topology
    found = []
    for each in detail.group.pod.in_order():
        held = first.placements.get(each.name)
        cpus = held.cpus if held else None
        found.append(
            {
                "name": each.name,
                "cpus": cpus,
                "numa": topology.numa_of(cpus) if cpus else (),
                "memory": [
                    {"resource": amounts.name(block.kind), "numa": block.numa, "size": block.size}
                    for block in (held.memory if held else ())
                ],
                "devices": [
                    {
                        "resource": name,
                        "ids": ", ".join(each.ids),
                        "numa": sorted({n for ids in each.numa for n in ids}),
                    }
                    for name, each in (held.devices.items() if held else ())
                ],
            }
        )
    return found


def offered(alignment: Alignment, ids: Sequence[int]) -> list[Offered]:
    owner = alignment.container or _("pod")
    return [
        Offered(
            owner=owner,
            resource=amounts.name(each.resource),
            asked=amounts.of(each.resource, each.requested),
            cells=tuple(_cell(each, numa) for numa in ids),
            masks=None if each.hints is None else len(each.hints.masks),
        )
        for each in alignment.offers
    ]


def _cell(offer: Offer, numa: int) -> Cell:
    free, total = offer.free.get(numa), offer.total.get(numa)
    if free is None or total is None:
        return Cell("–", "–", enough=False)
    enough = free >= offer.requested
    return Cell(amounts.of(offer.resource, free), amounts.of(offer.resource, total), enough)


def alternative(of: Alternative, detail: Detail) -> dict[str, Any]:
    """The first pod under another policy: what would become of it."""
    verdict = of.verdict
    state = state_of(verdict)
    reasons = [verdicts.reason(each) for each in why(verdict, of.policy)] if verdict else []
    cpus = cpus_of(verdict) if verdict and verdict.admitted else CpuSet()
    return {
        "policy": of.policy,
        "scope": of.scope,
        "state": state,
        "label": str(plan.STATES[state]),
        "own": of.policy == detail.row.policy and of.scope == detail.row.scope,
        "why": reasons[0].text if reasons else of.problem,
        "cpus": cpus,
        "numa": detail.facts.topology.numa_of(cpus),
    }


def state_of(verdict: Verdict | None) -> planning.State:
    if verdict is None:
        return "unknown"
    if verdict.outcome in ("panics", "hangs"):
        return "crash"
    return "admitted" if verdict.admitted else "refused"


def cpus_of(verdict: Verdict) -> CpuSet:
    return union(each.cpus for each in verdict.placements.values() if each.cpus)


def other(verdict: Verdict, detail: Detail) -> str:
    """Another answer that the kubelet may give as well."""
    if not verdict.admitted:
        return "; ".join(verdicts.reason(each).text for each in why(verdict, detail.row.policy))
    return _("admitted, CPUs %(cpus)s") % {"cpus": str(cpus_of(verdict)) or "–"}


def names_of(detail: Detail) -> dict[str, str]:
    """Names of the node's pods by uid, as far as they are known."""
    return {
        each.pod_uid: f"{each.namespace}/{each.pod}"
        for each in detail.facts.containers
        if each.pod_uid and each.pod
    }


def advised(detail: Detail) -> list[str]:
    """What would make a refused pod fit, one change each; of pods that would have to leave only the first few. Where the search
    stopped early, that is said last."""
    given, names = detail.advice, names_of(detail)
    return [*each_alone(given.fits, names), *([] if given.complete else [not_all_tried()])]


def each_alone(fits: Sequence[Fit], names: Mapping[str, str]) -> list[str]:
    """Changes in words; of pods that would have to leave only the first few."""
    leaving = [each for each in fits if each.kind == "leaving"]
    told = [advice(each, names) for each in fits if each not in leaving[MOST_LEAVING:]]
    more = len(leaving) - MOST_LEAVING
    if more <= 0:
        return told
    rest = ngettext("and %(count)s other pod, alone", "and %(count)s other pods, each alone", more)
    return [*told, rest % {"count": more}]


def not_all_tried() -> str:
    """What is said where the search for smaller requests stopped early."""
    return _(
        "Not every smaller request was tried: there are too many for one answer. Another one may fit as well."
    )


def advice(fit: Fit, names: Mapping[str, str]) -> str:
    """One change in words."""
    if fit.kind == "request" and not fit.container:
        return _("The pod as a whole asks for %(value)s %(resource)s; %(step)s more would be refused.") % {
            "value": fit.value,
            "resource": amounts.name(fit.name, sentences.grammatical(fit.value)),
            "step": fit.step,
        }
    if fit.kind == "request":
        return _(
            "Container “%(container)s” asks for %(value)s %(resource)s; %(step)s more would be refused."
        ) % {
            "container": fit.container,
            "value": fit.value,
            "resource": amounts.name(fit.name, sentences.grammatical(fit.value)),
            "step": fit.step,
        }
    if fit.kind == "leaving":
        return _("The pod %(name)s leaves.") % {"name": names.get(fit.value, fit.value)}
    if not fit.value:
        return _("The kubelet is set without %(field)s.") % {"field": fit.name}
    return _("The kubelet is set to %(field)s: %(value)s.") % {"field": fit.name, "value": fit.value}


def steps(detail: Detail, row: Row | None) -> list[volcano.Told]:
    """What Volcano did, step by step; nothing where it does not schedule these pods. The score stands in the plan's `row`."""
    if detail.row.volcano is None:
        return []
    score = row.score if row else None
    return volcano.trace(detail.row.volcano, detail.facts.topology, score)


def turn(of: Turn) -> TurnLine:
    """How many pods of a workload found a place, where the first lies, and why no more did."""
    row, found = of.row, of.row.fits or 0
    text = ngettext("%(found)s of %(wanted)s pod", "%(found)s of %(wanted)s pods", of.wanted)
    text %= {"found": found, "wanted": of.wanted}
    if row.cpus:
        text += " · " + _("the first on CPUs %(cpus)s") % {"cpus": row.cpus}
    reasons = [verdicts.reason(each) for each in (*row.why, *row.last)]
    return TurnLine(
        of.title, row.state, str(plan.STATES[row.state]), text, reasons[0].text if reasons else ""
    )


def drawn(detail: Detail, threshold: float) -> dict[str, Any]:
    """The node's drawing with the pod in it as if it ran there; `planned` names the pod, which is lit while nothing else is."""
    payload = drawing.drawing(detail.facts, detail.report, threshold)
    first = detail.answer.first
    if first is None or not first.admitted:
        return payload
    names = [each.name for each in detail.group.pod.in_order()]
    whole = _imagined(detail, PLANNED, _("planned pod"), [first.placements.get(name) for name in names])
    parts = [
        _imagined(
            detail, f"{PLANNED}-{name}", _("planned: %(name)s") % {"name": name}, [first.placements.get(name)]
        )
        for name in (names if len(names) > 1 else [])
    ]
    return payload | {"containers": [whole, *parts, *payload["containers"]], "planned": PLANNED}


def _imagined(detail: Detail, key: str, title: str, held: Sequence[Placement | None]) -> dict[str, Any]:
    """A container of the drawing that does not run yet."""
    topology = detail.facts.topology
    owned = union(each.cpus for each in held if each and each.cpus)
    runs = owned or topology.online
    pages: dict[int, int] = {}
    for each in held:
        for block in each.memory if each else ():
            for numa in block.numa:
                pages[numa] = pages.get(numa, 0) + block.size // len(block.numa)
    total = sum(pages.values())
    unknown = dict.fromkeys(("cpuShares", "locality", "cost", "cross", "cpuUse"))
    return unknown | {
        "id": key,
        "title": title,
        "kind": "exclusive" if owned else "floating",
        "cpus": str(runs),
        "cpuNodes": list(topology.numa_of(runs)),
        "pages": pages,
        "pageShares": {numa: size / total for numa, size in pages.items()} if total else None,
        "devices": [],
        "memory": total or None,
        "why": [],
    }
