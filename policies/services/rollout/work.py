"""A rollout goes on: one round looks at every node that is in flight, begins as many as may be, and says when it wants to come back.

Whoever runs it, one does at a time, by a lease; a second one does nothing. Everything that it knows stands in the database and in the
cluster, so any worker goes on where another one died.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec
from django.conf import settings
from django.utils import timezone

from monitoring import hot
from monitoring.kube.errors import ApiError, Forbidden
from monitoring.services import leases
from monitoring.services.leases import LeaseLostError, Tenure
from numacore.diagnosis import Reason
from policies.models import Rollout, RolloutNode
from policies.services.rollout import control, course, pacing, reach
from policies.services.rollout.desk import Desk, HaltedError, Outcome, Step
from policies.services.rollout.error import RolloutError

State = Rollout.State
WORKING = (State.RUNNING, State.STOPPING, State.RETURNING)
PATIENT = 5
"""Intervals between two rounds while nothing is in flight and something is waited for."""
FORGOTTEN = 10.0
"""Seconds without a look after which a rollout is offered to the workers anew."""


def work(number: int, clock: Callable[[], datetime] = timezone.now) -> float | None:
    """One round. Seconds until the next one; None: there is nothing to do, or somebody else does it."""
    rollout = Rollout.objects.select_related("cluster").filter(pk=number, state__in=WORKING).first()
    if rollout is None or _was_just_looked_at(rollout, clock()):
        return None
    tenure = leases.take(f"rollout/{rollout.cluster.slug}", settings.NUMAWEB_ROLLOUT_LEASE)
    if tenure is None:
        return None
    try:
        return _round(number, tenure, clock())
    except LeaseLostError:
        return None
    finally:
        leases.give_up(tenure)


def _was_just_looked_at(rollout: Rollout, now: datetime) -> bool:
    """A second call for the same rollout ends here, or there would be more of them with every one that is lost and found again."""
    since = abs((now - rollout.looked).total_seconds()) if rollout.looked else None
    return since is not None and since < settings.NUMAWEB_ROLLOUT_LOOK / 2


def _round(number: int, tenure: Tenure, now: datetime) -> float | None:
    rollout = Rollout.objects.select_related("cluster").filter(pk=number, state__in=WORKING).first()
    if rollout is None:
        return None
    nodes = list(rollout.nodes.all())
    for each in nodes:
        each.rollout = rollout
    flying = [each for each in nodes if each.step not in (Step.WAITING, Step.ENDED)]
    desk: Desk | None = None
    try:
        hands = reach.opened(rollout.cluster)
        desk = Desk(rollout, control.plan_of(rollout), hands, tenure, now, len(flying))
        return _go_on(desk, nodes, flying, tenure)
    except HaltedError:
        return 0.0
    except (RolloutError, ApiError, hot.StoreError) as error:
        _wait_for(rollout, desk, tenure, now, reason_of(error))
        return PATIENT * settings.NUMAWEB_ROLLOUT_LOOK


def _go_on(
    desk: Desk, nodes: Sequence[RolloutNode], flying: Sequence[RolloutNode], tenure: Tenure
) -> float | None:
    trouble: Exception | None = None
    for node in flying:
        leases.renew(tenure)
        try:
            course.go_on(desk, node)
        except (ApiError, hot.StoreError, RolloutError) as error:
            trouble = error
            if not isinstance(error, ApiError) or not error.status:
                raise
            course.refused(desk, node, error)  # this node; others may go on
    if trouble is not None:
        raise trouble
    waits: Reason | None = None
    if desk.state != State.STOPPING:
        turn_nodes, waits = _begin(desk, nodes, tenure)
        flying = [*flying, *turn_nodes]
    if _is_through(desk, nodes):
        return None
    desk.wait_for(waits)
    busy = any(each.step != Step.ENDED for each in flying)
    return settings.NUMAWEB_ROLLOUT_LOOK * (PATIENT if waits and not busy else 1)


def _begin(
    desk: Desk, nodes: Sequence[RolloutNode], tenure: Tenure
) -> tuple[list[RolloutNode], Reason | None]:
    """New nodes, and those that stand changed in a rollout that goes back meanwhile."""
    if desk.rollout.returns:
        _mark_to_return(desk, nodes)
    turn = pacing.turn(desk, nodes)
    for node in turn.nodes:
        leases.renew(tenure)
        desk.start(node)
        course.go_on(desk, node)
        if desk.state == State.STOPPING:
            break
    return turn.nodes, turn.waits


def _mark_to_return(desk: Desk, nodes: Sequence[RolloutNode]) -> None:
    """Nodes whose change ended well after somebody asked for all of it back."""
    for node in nodes:
        if node.step == Step.ENDED and node.outcome == Outcome.CHANGED:
            node.back, node.outcome, node.cause, node.ended = True, "", None, None
            desk.move(node, Step.WAITING)


def _is_through(desk: Desk, nodes: Sequence[RolloutNode]) -> bool:
    """Whether the rollout has come to rest; then it is written down."""
    open_nodes = [each for each in nodes if each.step != Step.ENDED]
    flying = [each for each in open_nodes if each.step != Step.WAITING]
    if flying:
        return False
    if desk.state == State.STOPPING:
        desk.close(State.STOPPED)
        return True
    if desk.state == State.RETURNING:
        left = [
            each for each in nodes if (each.back and each in open_nodes) or each.outcome == Outcome.CHANGED
        ]
        if not left:
            desk.close(State.RETURNED, "returned")
        return not left
    if not open_nodes:
        desk.close(State.DONE, "done")
    return not open_nodes


def _wait_for(rollout: Rollout, desk: Desk | None, tenure: Tenure, now: datetime, reason: Reason) -> None:
    if desk is not None:
        desk.wait_for(reason)
        return
    leases.renew(tenure)
    mine = Rollout.objects.filter(pk=rollout.pk, state=rollout.state)
    mine.update(looked=now, waits_for=msgspec.to_builtins(reason))


def reason_of(error: Exception) -> Reason:
    """Why nothing happens, for pages."""
    match error:
        case RolloutError():
            return Reason(error.code, {"words": error.cause} if error.cause else {})
        case Forbidden():
            return Reason("missing-right", {"rights": str(error.right or error.message)})
        case ApiError():
            return Reason("api" if error.status else "unreachable", {"words": error.message[:300]})
    return Reason("store", {"words": str(error)[:300]})


def unfinished(now: datetime) -> list[int]:
    """Rollouts that nobody has looked at for a while."""
    span = max(FORGOTTEN, 2 * PATIENT * settings.NUMAWEB_ROLLOUT_LOOK)
    found = []
    for each in Rollout.objects.filter(state__in=WORKING).select_related("cluster"):
        forgotten = each.looked is None or abs(now - each.looked) > timedelta(seconds=span)
        if forgotten and leases.suspect(f"rollout/{each.cluster.slug}"):
            found.append(each.pk)
    return found
