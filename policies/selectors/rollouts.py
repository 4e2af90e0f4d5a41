"""Reads of rollouts, for their pages, REST and the overview: how far each is, batch by batch, and what its plan has for a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec
from django.conf import settings
from django.db.models import Count, Q, QuerySet

from monitoring.models import Cluster
from numacore.diagnosis import Reason
from policies import plan as plans
from policies.models import Act, Rollout, RolloutNode
from policies.plan import Plan, PlannedNode

Step, Outcome = RolloutNode.Step, RolloutNode.Outcome
GOOD = (Outcome.CHANGED, Outcome.UNCHANGED, Outcome.RETURNED)
BAD = (Outcome.FAILED, Outcome.LOST)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a rollout is: nodes that have ended by outcome (every outcome is there), nodes that are at work, nodes that wait."""

    nodes: int
    outcomes: dict[str, int]
    at_work: int

    @property
    def ended(self) -> int:
        return sum(self.outcomes.values())

    @property
    def waiting(self) -> int:
        return self.nodes - self.ended - self.at_work


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """One batch: number (0 = the canary), its nodes, how many of them have ended, are at work, ended badly."""

    number: int
    nodes: int
    ended: int
    at_work: int
    bad: int

    @property
    def state(self) -> str:
        """failed: a node of it did; through, working, waiting."""
        if self.bad:
            return "failed"
        if self.ended == self.nodes:
            return "through"
        return "working" if self.ended or self.at_work else "waiting"


def rollouts(cluster: Cluster) -> QuerySet[Rollout]:
    """Rollouts of a cluster, plans too, newest first, without the plans themselves."""
    return Rollout.objects.filter(cluster=cluster).select_related("cluster", "policy__pool").defer("plan")


def active_rollout(cluster: Cluster) -> Rollout | None:
    """The one that is at work, if one is."""
    return rollouts(cluster).filter(state__in=Rollout.ACTIVE).first()


def progress_of(numbers: Iterable[int]) -> dict[int, Progress]:
    """By the rollouts' numbers, in one query."""
    asked = list(numbers)
    at_work = Count("pk", filter=~Q(step__in=(Step.WAITING, Step.ENDED)))
    counted = (
        RolloutNode.objects.filter(rollout__in=asked)
        .order_by()
        .values("rollout", "outcome")
        .annotate(nodes=Count("pk"), busy=at_work)
        .values_list("rollout", "outcome", "nodes", "busy")
    )
    ended: dict[int, dict[str, int]] = {number: dict.fromkeys(Outcome.values, 0) for number in asked}
    nodes, working = dict.fromkeys(asked, 0), dict.fromkeys(asked, 0)
    for number, outcome, count, busy in counted:
        nodes[number] += count
        working[number] += busy
        if outcome:
            ended[number][outcome] = count - busy
    return {
        number: Progress(nodes=nodes[number], outcomes=ended[number], at_work=working[number])
        for number in asked
    }


def progress(rollout: Rollout) -> Progress:
    return progress_of([rollout.pk])[rollout.pk]


def batches(rollout: Rollout) -> list[Batch]:
    """In their order."""
    counted = (
        rollout.nodes.order_by("batch")
        .values("batch")
        .annotate(
            count=Count("pk"),
            done=Count("pk", filter=Q(step=Step.ENDED)),
            busy=Count("pk", filter=~Q(step__in=(Step.WAITING, Step.ENDED))),
            failed=Count("pk", filter=Q(outcome__in=BAD)),
        )
        .values_list("batch", "count", "done", "busy", "failed")
    )
    return [
        Batch(number=number, nodes=nodes, ended=done, at_work=busy, bad=bad)
        for number, nodes, done, busy, bad in counted
    ]


def is_old(rollout: Rollout, now: datetime) -> bool:
    """Whether its plan is too old to be confirmed."""
    if rollout.state != Rollout.State.PLANNED or rollout.planned is None:
        return False
    return now - rollout.planned > timedelta(seconds=settings.NUMAWEB_PLAN_LASTS)


def plan_of(rollout: Rollout) -> Plan | None:
    """None = it is not made yet."""
    return plans.read(rollout.plan) if rollout.plan is not None else None


def behind(rollout: Rollout) -> list[Reason]:
    """Why it stopped, with the cause of the node that stopped it; else what it waits for."""
    told = rollout.cause or rollout.waits_for
    if not told:
        return []
    found = [msgspec.convert(told, Reason)]
    name = found[0].values.get("node")
    node = rollout.nodes.filter(name=name).first() if name else None
    return [*found, msgspec.convert(node.cause, Reason)] if node and node.cause else found


def planned(plan: Plan | None, names: Iterable[str]) -> Mapping[str, PlannedNode]:
    """What a plan has for these nodes."""
    wanted = set(names)
    return {each.name: each for each in plan.nodes if each.name in wanted} if plan else {}


def acts(node: RolloutNode) -> QuerySet[Act]:
    """A node's log, oldest first."""
    return node.acts.order_by("pk")


def rollouts_of_node(cluster: Cluster, name: str) -> QuerySet[RolloutNode]:
    """What rollouts did with a node, newest first."""
    return (
        RolloutNode.objects.filter(rollout__cluster=cluster, name=name)
        .select_related("rollout")
        .defer("rollout__plan")
        .order_by("-rollout")
    )
