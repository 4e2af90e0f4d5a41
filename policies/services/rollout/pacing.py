"""Which nodes may be begun now, and why no further one may."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from numacore.diagnosis import Reason
from policies import plan as plans
from policies.gateway.nodes import LiveNode
from policies.models import RolloutNode
from policies.plan import CANARY, DAYS, Window
from policies.services.rollout.desk import Desk, Outcome, Step

FEW = 40
"""Up to so many nodes are asked for one by one, more by one list."""
NAMED = 5


class Turn(NamedTuple):
    """Nodes to begin, in their order, and why not more; None = nothing more waits, or the others have to end first."""

    nodes: list[RolloutNode]
    waits: Reason | None = None


def turn(desk: Desk, nodes: Sequence[RolloutNode]) -> Turn:
    """`nodes`: all of the rollout. Raises ApiError where the live state of the plan's nodes cannot be told."""
    back = desk.rollout.returns
    waiting = [each for each in nodes if each.step == Step.WAITING and each.back == back]
    if not waiting:
        return Turn([])
    order = sorted(waiting, key=lambda each: (each.batch, each.position), reverse=back)
    batch = order[0].batch
    mine = [each for each in order if each.batch == batch]
    others = [each for each in nodes if _is_before(each, batch, back=back) and each.step != Step.ENDED]
    if others:
        return Turn([])
    if not back and (reason := _not_now(desk, nodes, batch)):
        return Turn([], reason)
    return _room(desk, nodes, mine)


def _is_before(node: RolloutNode, batch: int, *, back: bool) -> bool:
    if node.step == Step.WAITING and node.back != back:
        return False
    return node.batch > batch if back else node.batch < batch


def _not_now(desk: Desk, nodes: Sequence[RolloutNode], batch: int) -> Reason | None:
    window = desk.options.window
    if window is not None and not is_open(window, desk.now):
        return Reason("window", {"opens": opens(window, desk.now).isoformat(timespec="minutes")})
    if any(each.batch == batch and each.step != Step.WAITING for each in nodes):
        return None  # the batch is under way
    ended = [
        each.ended for each in nodes if each.batch < batch and each.ended and each.outcome != Outcome.SKIPPED
    ]
    until = max(ended) + timedelta(seconds=desk.options.pause_between) if ended else None
    if until is not None and desk.now < until:
        return Reason("pause", {"until": until.astimezone(UTC).isoformat(timespec="seconds")})
    return None


def _room(desk: Desk, nodes: Sequence[RolloutNode], mine: Sequence[RolloutNode]) -> Turn:
    """As many as may be away at once, less those that are."""
    flying = {each.name for each in nodes if each.step not in (Step.WAITING, Step.ENDED)}
    most = plans.amount(desk.options.max_unavailable, len(nodes))
    # While nobody has shown yet that it works, one has to.
    unproven = desk.options.canary and not _is_proven(nodes) and mine[0].batch != CANARY and not mine[0].back
    if len(flying) >= (1 if unproven else most):
        return Turn([])
    down = {
        each.name
        for each in _live(desk, nodes)
        if not each.ready or (each.cordoned and not desk.is_ours(each))
    }
    down -= flying
    room = most - len(flying) - len(down)
    if room <= 0:
        names = ", ".join(sorted(down)[:NAMED])
        return Turn([], Reason("nodes-down", {"nodes": names, "most": most}))
    return Turn(list(mine[: 1 if unproven else room]))


def _is_proven(nodes: Sequence[RolloutNode]) -> bool:
    return any(each.outcome in (Outcome.CHANGED, Outcome.UNCHANGED) for each in nodes)


def _live(desk: Desk, nodes: Sequence[RolloutNode]) -> Iterator[LiveNode]:
    """The target's nodes as the API server knows them, those that are left out, too: who is down is away, whether it was to change or not.
    Another node under a planned name is none of them."""
    wanted = {**dict.fromkeys(desk.left_out, ""), **{each.name: each.uid for each in nodes}}
    if len(wanted) <= FEW:
        found = (desk.hands.nodes.read(name) for name in wanted)
    else:
        found = (each for each in desk.hands.nodes.all() if each.name in wanted)
    for each in found:
        if each is not None and (not wanted[each.name] or wanted[each.name] == each.uid):
            yield each


# ---------------------------------------------------------------- windows


def is_open(window: Window, now: datetime) -> bool:
    """Whether a node may be begun at this moment."""
    here = now.astimezone(ZoneInfo(window.zone))
    start, end = _clock(window.start), _clock(window.end)
    at = here.time().replace(tzinfo=None)
    if start < end:
        return _day(here) in window.days and start <= at < end
    if at >= start:
        return _day(here) in window.days
    return at < end and _day(here - timedelta(days=1)) in window.days


def opens(window: Window, now: datetime) -> datetime:
    """When it opens next."""
    here = now.astimezone(ZoneInfo(window.zone))
    for days in range(9):
        day = here + timedelta(days=days)
        at = datetime.combine(day.date(), _clock(window.start), here.tzinfo)
        if at > here and _day(day) in window.days:
            return at
    return here


def _clock(text: str) -> time:
    return time.fromisoformat(text)


def _day(at: datetime) -> str:
    return DAYS[at.weekday()]
