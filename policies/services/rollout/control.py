"""What people do with a rollout. Each returns at once and is in the audit log; `planning` and `work` do the rest in the background.

From the moment that a state is written no new act starts: whoever acts reads it in the transaction that writes the act down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import msgspec
from django.conf import settings
from django.db import transaction

from monitoring import hot
from monitoring.models import Cluster
from numacore.change import wish as wishes
from numacore.diagnosis import Reason
from policies import plan as plans
from policies import selectors
from policies.models import Policy, Rollout, RolloutNode
from policies.plan import Options, Plan
from policies.selectors import exported
from policies.services.rollout import reach, telling
from policies.services.rollout.error import RolloutError
from policies.services.who import Who

State, Step, Outcome = Rollout.State, RolloutNode.Step, RolloutNode.Outcome
SHOWN = 10
"""Names of nodes in a refusal."""


def create(cluster: Cluster, policy: Policy | None, options: Options, who: Who, now: datetime) -> Rollout:
    """A rollout whose plan is yet to be made; whoever calls enqueues that. Raises RolloutError."""
    reach.opened(cluster)
    if policy is None:
        raise RolloutError("no-policy")
    if found := plans.faults(options):
        raise RolloutError("option", found[0].field, found[0].code)
    if policy.on and wishes.check(wishes.read(policy.wish)):
        raise RolloutError("wish")
    if frozen := _frozen(cluster, policy):
        raise RolloutError("frozen", cause=", ".join(frozen))
    made = Rollout(
        cluster=cluster,
        policy=policy,
        level=policy.level,
        target=policy.target,
        version=policy.version,
    )
    return _asked_for(made, options, who, now, "asked for a plan")


def restore_all(cluster: Cluster, options: Options, who: Who, now: datetime) -> Rollout:
    """A rollout without a policy: every node that the product changed goes back to what it was. Raises RolloutError.

    Nodes of the control plane come along whatever the options say: that they were changed was asked for, and none is to be forgotten.
    """
    reach.opened(cluster)
    options = msgspec.structs.replace(options, control_plane=True)
    if found := plans.faults(options):
        raise RolloutError("option", found[0].field, found[0].code)
    if not selectors.changed(cluster).exists():
        raise RolloutError("nothing-changed")
    made = Rollout(cluster=cluster, level=Rollout.Level.CHANGED, version=0)
    return _asked_for(made, options, who, now, "asked for a plan to take all nodes back")


def _asked_for(made: Rollout, options: Options, who: Who, now: datetime, detail: str) -> Rollout:
    made.options, made.made, made.made_by, made.changed = msgspec.to_builtins(options), now, who.name, now
    with transaction.atomic():
        made.save()
        telling.decided(made, who, detail, after=made.options)
    return made


def _frozen(cluster: Cluster, policy: Policy) -> tuple[str, ...]:
    """The pools that keep a policy from its nodes."""
    if policy.level != Policy.Level.POOL:
        return ()
    overlaps = selectors.frozen_pools(cluster)
    return next((each.pools for each in overlaps if policy.target in each.pools), ())


def discard(rollout: Rollout, who: Who, now: datetime) -> None:
    """Nothing becomes of a plan. Raises RolloutError."""
    with _held(rollout) as held:
        if held.state not in (State.PLANNING, State.PLANNED):
            raise RolloutError("not-planned")
        _set(held, State.DISCARDED, now)
        telling.decided(held, who, "discarded")


def confirm(rollout: Rollout, plan_hash: str, typed_number: int, who: Who, now: datetime) -> None:
    """From now on the plan's nodes may be changed. Whoever calls enqueues the work. Raises RolloutError."""
    if rollout.state != State.PLANNED:
        raise RolloutError("not-planned")
    _ready(rollout, who)
    _check_fresh(rollout)
    with _held(rollout, alone=True) as held:
        _check_confirmed(held, plan_hash, typed_number, now)
        held.confirmed, held.confirmed_by, held.address = now, who.name, who.address[:64]
        _set(held, State.RUNNING, now)
        telling.decided(held, who, "confirmed", after={"plan": held.plan_hash, "nodes": typed_number})


def _ready(rollout: Rollout, who: Who) -> None:
    """What has to be there before any node is begun. Raises RolloutError."""
    try:
        reach.ready(rollout.cluster)
    except RolloutError as error:
        if error.code == "missing-right":
            telling.decided(rollout, who, f"missing right: {error.cause}"[:500], result="refused")
        raise


def _check_fresh(rollout: Rollout) -> None:
    plan = plan_of(rollout)
    try:
        changed = exported.moved(
            rollout.cluster, ((each.name, each.uid, each.path, each.before) for each in plan.nodes)
        )
    except hot.StoreError:
        return  # each node is looked at once more before it is touched
    if changed:
        raise RolloutError("stale", cause=_named(changed))


def _check_confirmed(held: Rollout, plan_hash: str, typed_number: int, now: datetime) -> None:
    if held.state != State.PLANNED or held.planned is None:
        raise RolloutError("not-planned")
    plan_of(held)
    if plan_hash != held.plan_hash:
        raise RolloutError("hash")
    if typed_number != held.nodes.count():
        raise RolloutError("count", "number")
    if now - held.planned > timedelta(seconds=settings.NUMAWEB_PLAN_LASTS):
        raise RolloutError("old")


def pause(rollout: Rollout, who: Who, now: datetime) -> None:
    """No act on any node until somebody resumes. Raises RolloutError."""
    with _held(rollout) as held:
        if held.state not in (State.RUNNING, State.RETURNING):
            raise RolloutError("not-active")
        _set(held, State.PAUSED, now)
        telling.decided(held, who, "paused")


def resume(rollout: Rollout, who: Who, now: datetime) -> None:
    """Raises RolloutError."""
    with _held(rollout) as held:
        if held.state != State.PAUSED:
            raise RolloutError("not-paused")
        _set(held, State.RETURNING if held.returns else State.RUNNING, now)
        telling.decided(held, who, "resumed")


def stop(rollout: Rollout, who: Who, now: datetime) -> None:
    """No further node is begun; what is under way is brought to an end. Raises RolloutError."""
    with _held(rollout) as held:
        if held.state not in (State.RUNNING, State.PAUSED, State.RETURNING):
            raise RolloutError("not-active")
        held.cause = msgspec.to_builtins(Reason("stopped-by", {"who": who.name}))
        _set(held, State.STOPPING, now)
        telling.decided(held, who, "stopped")


def roll_back(rollout: Rollout, who: Who, now: datetime) -> None:
    """Every node that this rollout changed goes back to what stood before it, the last one first. Raises RolloutError."""
    allowed = (State.RUNNING, State.PAUSED, State.STOPPING, State.STOPPED, State.DONE)
    with _held(rollout, alone=True) as held:
        if held.state not in allowed:
            raise RolloutError("not-active")
        held.returns, held.ended, held.cause, held.batch_ended = True, None, None, None
        _set(held, State.RETURNING, now)
        nodes = mark_to_return(held)
        telling.decided(held, who, "rolled back", after={"nodes": nodes})


def mark_to_return(held: Rollout) -> int:
    """Nodes that stand changed wait to go back; how many. Those that could not go back before wait once more."""
    changed = held.nodes.filter(step=Step.ENDED, outcome=Outcome.CHANGED)
    failed = held.nodes.filter(step=Step.ENDED, back=True).exclude(outcome=Outcome.RETURNED)
    rows = RolloutNode.objects.filter(
        pk__in=[*changed.values_list("pk", flat=True), *failed.values_list("pk", flat=True)]
    )
    return rows.update(
        back=True, step=Step.WAITING, outcome="", cause=None, ended=None, steady=0, step_since=None
    )


def retry(rollout: Rollout, node_name: str, who: Who, now: datetime) -> None:
    """A node that failed or was left alone waits again, and the rollout goes on. Raises RolloutError."""
    with _held(rollout, alone=True) as held:
        if held.state not in (State.STOPPED, State.PAUSED):
            raise RolloutError("not-stopped")
        again = (Outcome.FAILED, Outcome.SKIPPED, Outcome.LOST)
        node = held.nodes.filter(name=node_name, step=Step.ENDED, outcome__in=again).first()
        if node is None:
            raise RolloutError("not-failed", "node", node_name)
        node.step, node.outcome, node.cause, node.answer = Step.WAITING, "", None, None
        node.ended, node.step_since, node.steady = None, None, 0
        node.tries += 1
        node.save()
        held.ended, held.cause = None, None
        _set(held, State.RETURNING if held.returns else State.RUNNING, now)
        telling.decided(held, who, f"node {node_name} once more")


# ---------------------------------------------------------------- how it is written


def plan_of(rollout: Rollout) -> Plan:
    """The plan that was made. Raises RolloutError: there is none yet, or it is another one than its hash says."""
    if rollout.plan is None:
        raise RolloutError("not-planned")
    plan = plans.read(rollout.plan)
    if plans.digest(plan) != rollout.plan_hash:
        raise RolloutError("altered")
    return plan


@contextmanager
def _held(rollout: Rollout, *, alone: bool = False) -> Iterator[Rollout]:
    """The row, locked. `alone`: it is to become the one that is active in its cluster, which is decided one at a time."""
    with transaction.atomic():
        if alone:
            Cluster.objects.select_for_update().get(pk=rollout.cluster_id)
        held = Rollout.objects.select_for_update().get(pk=rollout.pk)
        if alone and not held.is_active and _other(held):
            raise RolloutError("busy")
        yield held
    rollout.refresh_from_db()


def _other(held: Rollout) -> bool:
    active = Rollout.objects.filter(cluster=held.cluster_id, state__in=Rollout.ACTIVE)
    return active.exclude(pk=held.pk).exists()


def _set(held: Rollout, state: Rollout.State, now: datetime) -> None:
    held.state, held.changed, held.waits_for, held.looked = state, now, None, None
    if state == State.DISCARDED:
        held.ended = now
    held.save()


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" +{len(listed) - SHOWN}" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more
