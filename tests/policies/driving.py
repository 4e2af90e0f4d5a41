"""A rollout from its policy to its end, round by round, and what has to be true of every one that has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils import timezone

from numacore.change.wish import Wish
from policies import audit
from policies.models import Act, AuditEntry, Policy, Rollout, RolloutNode
from policies.plan import Options
from policies.services import policy as policies
from policies.services.policy import Target
from policies.services.rollout import control, planning, telling, work
from policies.services.who import Who
from tests.policies.playedcluster import PlayedCluster

ADA, OTTO = Who("ada", "10.0.0.4"), Who("otto", "10.0.0.5")
SINGLE = Wish(topology_policy="single-numa-node")
State, Step, Outcome = Rollout.State, RolloutNode.Step, RolloutNode.Outcome


def policy(played: PlayedCluster, wish: Wish = SINGLE, *, on: bool = True, seen: int | None = None) -> Policy:
    return policies.save(played.cluster, Target("cluster"), wish, on, OTTO, timezone.now(), seen)


def planned(played: PlayedCluster, of: Policy | None = None, **options: Any) -> Rollout:
    """A plan that waits for its confirmation."""
    wanted = of or Policy.objects.filter(cluster=played.cluster).first() or policy(played)
    made = control.create(played.cluster, wanted, Options(**options), OTTO, timezone.now())
    planning.plan_work(made.pk)
    made.refresh_from_db()
    return made


def confirmed(played: PlayedCluster, of: Policy | None = None, **options: Any) -> Rollout:
    made = planned(played, of, **options)
    assert made.state == State.PLANNED, made.cause
    control.confirm(made, made.plan_hash, made.nodes.count(), ADA, timezone.now())
    return made


def look(played: PlayedCluster, rollout: Rollout) -> float | None:
    """One round, with the time that passes before it."""
    played.pass_time()
    return work.work(rollout.pk, lambda: played.now)


def through(
    played: PlayedCluster,
    rollout: Rollout,
    until: Callable[[], bool] | None = None,
    most: int = 200,
) -> Rollout:
    """Rounds until it rests, or until something is so."""
    for _ in range(most):
        rollout.refresh_from_db()
        if (until and until()) or not rollout.is_active or rollout.state == State.PAUSED:
            return rollout
        look(played, rollout)
    raise AssertionError(
        f"it is still {rollout.state} after {most} rounds: {stands(rollout)} {rollout.waits_for}"
    )


def stands(rollout: Rollout) -> dict[str, tuple[str, str]]:
    """Step and outcome of every node."""
    return {each.name: (each.step, each.outcome) for each in rollout.nodes.all()}


def outcomes(rollout: Rollout) -> dict[str, str]:
    return dict(rollout.nodes.values_list("name", "outcome"))


def cause(rollout: Rollout, name: str) -> str:
    return str((rollout.nodes.get(name=name).cause or {}).get("code", ""))


def check(played: PlayedCluster, rollout: Rollout, most: int = 1) -> None:
    """What has to be true of every rollout that rests, whatever happened to it."""
    assert played.peak <= most, played.events
    assert played.ours() == []
    assert not played.made, "Jobs are left"
    for event in ("cordon", "job"):
        often = {what: times for what, times in played.count(event).items() if times > 1}
        assert often == {}, f"{event} was done twice"
    for machine in played.machines.values():
        epochs = [epoch for epoch, _act in machine.applier.changes]
        assert len(epochs) == len(set(epochs)), f"{machine.name} was changed twice by one order"
    assert audit.verify() is None
    told = AuditEntry.objects.filter(action=telling.ACT, result="done").exclude(detail="begun").count()
    assert told == Act.objects.filter(node__rollout=rollout).exclude(kind="note").count()
