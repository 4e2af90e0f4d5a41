"""A node's detailed answer as programs get it: what was offered and merged, what else may come of it, what would make it fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monitoring.figures import evidence, planshapes
from monitoring.figures.why import Why
from monitoring.selectors.planning import Detail, Row
from numacore.diagnosis import Reason
from numacore.hints import in_order, nodes_of
from numacore.kubelet.offers import Offer
from numacore.kubelet.verdict import Alignment, Placement, Verdict
from numacore.whatif.explaining import why

MOST_HINTS = 256
"""Sets of NUMA nodes that are listed for one resource: all of up to eight NUMA nodes."""

Says = Callable[[Reason], Why]


def trace(detail: Detail, row: Row, says: Says) -> planshapes.PlanTrace:
    """`row`: the node's line of the plan, which has a score."""
    first = detail.answer.first
    shown = evidence.evidence(detail, row)
    names = evidence.names_of(detail)
    answers = [first, *detail.others] if first is not None and detail.others else []
    return planshapes.PlanTrace(
        reason=first.reason if first else "",
        message=first.message if first else "",
        failed_at=first.failure.provider if first and first.failure else None,
        failed_container=first.failure.container if first and first.failure else None,
        merges=[merged(each) for each in (first.alignments if first else ())],
        advice=[
            planshapes.Advised(
                each.kind, each.name, each.value, each.container, each.step, evidence.advice(each, names)
            )
            for each in detail.advice.fits
        ],
        advice_complete=detail.advice.complete,
        open=[possible(each, detail, says) for each in answers],
        policies=[
            planshapes.OtherPolicy(
                each["policy"], each["scope"], each["state"], str(each["cpus"]), each["why"]
            )
            for each in shown.alternatives
        ],
        volcano=[
            planshapes.VolcanoStep(each.stage, each.container or None, each.text, each.words or None)
            for each in shown.steps
        ],
        turns=[
            planshapes.Turn(
                each.title, each.wanted, each.row.fits, each.row.state, list(map(says, each.row.why))
            )
            for each in detail.turns
        ],
    )


def merged(of: Alignment) -> planshapes.Merged:
    best = of.best.mask
    return planshapes.Merged(
        of.container,
        [offered(each) for each in of.offers],
        None if best is None else nodes_of(best),
        of.best.preferred,
        of.accepted,
    )


def offered(of: Offer) -> planshapes.Offered:
    hints = of.hints
    return planshapes.Offered(
        of.resource,
        of.requested,
        [
            planshapes.OfferedAmount(numa, of.free.get(numa, 0), total)
            for numa, total in sorted(of.total.items())
        ],
        None if hints is None else len(hints.masks),
        None if hints is None else _sets(hints.masks),
        None if hints is None else _sets(hints.preferred),
    )


def _sets(masks: Sequence[int]) -> list[list[int]]:
    return [nodes_of(mask) for mask in list(in_order(masks))[:MOST_HINTS]]


def possible(verdict: Verdict, detail: Detail, says: Says) -> planshapes.PossibleAnswer:
    return planshapes.PossibleAnswer(
        evidence.state_of(verdict),
        containers(verdict.placements) if verdict.admitted else [],
        [says(each) for each in why(verdict, detail.row.policy)],
        evidence.other(verdict, detail),
    )


def containers(placements: dict[str, Placement]) -> list[planshapes.PlannedContainer]:
    return [
        planshapes.PlannedContainer(
            name,
            None if held.cpus is None else str(held.cpus),
            [planshapes.PlannedMemory(each.kind, list(each.numa), each.size) for each in held.memory],
            [
                planshapes.PlannedDevices(
                    resource, list(each.ids), sorted({numa for ids in each.numa for numa in ids})
                )
                for resource, each in held.devices.items()
            ],
        )
        for name, held in placements.items()
    ]
