"""Plans and what the linter found as values for programs, the same by REST and from a terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from django.utils import timezone

from monitoring.figures import manifests, plan, planshapes, plantraces, verdicts
from monitoring.figures.sentences import Said
from monitoring.figures.why import Why
from monitoring.models import Cluster
from monitoring.selectors import planning
from monitoring.selectors.planning import Question, Row
from numacore import lint
from numacore.diagnosis import Reason
from numacore.manifest import Group

MOST_TRACED = 20
"""Nodes of a group whose answers are told with all evidence, the first of the answer."""


def answer(
    cluster: Cluster, groups: Sequence[Group], question: Question, traced: bool, seconds: float
) -> planshapes.PlanAnswer:
    """Raises as `planning.plan`."""
    now, each_seconds = timezone.now(), seconds / len(groups)
    found: list[planshapes.PlannedGroup] = []
    for number, group in enumerate(groups):
        before = question.before(groups, number)
        plan_of = planning.plan(cluster, group, question, now, seconds=each_seconds, before=before)
        traces = traced_rows(cluster, plan_of, question, each_seconds) if traced else {}
        found.append(group_value(plan_of, question, traces))
    return planshapes.PlanAnswer(cluster.slug, found)


def linted(cluster: Cluster, groups: Sequence[Group], question: Question) -> planshapes.LintAnswer:
    """Raises as `planning.capacities`."""
    capacities = planning.capacities(cluster, question, timezone.now())
    found = [planshapes.LintedGroup(each.title, findings(lint.lint(each, capacities))) for each in groups]
    return planshapes.LintAnswer(cluster.slug, found)


def traced_rows(
    cluster: Cluster, found: planning.Plan, question: Question, seconds: float
) -> dict[str, planshapes.PlanTrace]:
    """The first nodes with all evidence, as far as the time allows."""
    now, until = timezone.now(), time.monotonic() + seconds
    traces: dict[str, planshapes.PlanTrace] = {}
    for row in found.rows[:MOST_TRACED]:
        if row.state == "unknown":
            continue
        if traces and time.monotonic() > until:
            break
        detail = planning.detail(cluster, found.group, question, row.node, now, found.before)
        if detail is not None:
            traces[row.node] = plantraces.trace(detail, row, why)
    return traces


def group_value(
    found: planning.Plan, question: Question, traces: Mapping[str, planshapes.PlanTrace]
) -> planshapes.PlannedGroup:
    group, said = found.group, plan.headline(found, question)
    return planshapes.PlannedGroup(
        workload=group.title,
        namespace=group.namespace,
        replicas=found.replicas,
        scheduler=group.scheduler,
        policy=group.policy or None,
        tried=found.wanted,
        summary=" ".join(each for each in (said.text, said.detail) if each),
        best=found.best.node if found.best else None,
        pending=found.pending,
        after=[each.title for each in found.before],
        assumptions=plan.notes(found),
        findings=findings(lint.lint(group, found.capacities)),
        nodes=[node_value(row, traces.get(row.node)) for row in found.rows],
    )


def findings(of: Sequence[lint.Finding]) -> list[planshapes.LintFinding]:
    return [
        planshapes.LintFinding(each.severity, each.field, each.reason.code, *_said(manifests.finding(each)))
        for each in of
    ]


def _said(said: Said) -> tuple[str, str | None]:
    return said.text, said.remedy or None


def node_value(row: Row, trace: planshapes.PlanTrace | None) -> planshapes.PlannedNode:
    return planshapes.PlannedNode(
        node=row.node,
        outcome=row.state,
        age=None if row.age is None else round(row.age, 3),
        stale=row.stale,
        policy=row.policy or None,
        scope=row.scope or None,
        reasons=list(map(why, row.why)),
        fits=row.fits,
        limited_by=list(map(why, row.last)),
        qos=row.qos or None,
        containers=plantraces.containers(row.placements),
        numa_nodes=list(row.numa),
        volcano=volcano(row),
        disagreement=planshapes.PlanDisagreement(
            row.disagreement.side, row.disagreement.cause, verdicts.disagreement(row.disagreement)
        )
        if row.disagreement
        else None,
        policies=row.policies,
        trace=trace,
    )


def why(reason: Reason) -> Why:
    return Why(reason.code, *_said(verdicts.reason(reason)))


def volcano(row: Row) -> planshapes.VolcanoVerdict | None:
    if row.volcano is None:
        return None
    outcome = row.volcano.outcomes[0]
    return planshapes.VolcanoVerdict(
        fits=outcome.fit,
        text=verdicts.volcano(row.volcano).text,
        message=outcome.reason or None,
        score=row.score.value if row.score else None,
    )
