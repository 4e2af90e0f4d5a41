"""The way of one node through a rollout, from top to bottom.

    preflight   it is still the node that was planned, well, and nobody else is at it
    cordon      nothing new is scheduled there
    drain       its pods leave, as their budgets allow
    apply       its applier changes the kubelet, or takes it back by itself
    verify      it is well, with what was asked for in force
    undo        if it is not, or the whole rollout goes back: the applier puts back what stood there
    confirm     it is as it was
    uncordon    it takes pods again, and for a while it must not refuse any
    ended       what was made for it in the cluster is gone

Each function is one look at one step, and may be made again at any time: after a crash, by another worker, twice.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec
from django.conf import settings

from monitoring.kube.errors import ApiError
from numacore.change.order import Answer, Order, sha256
from numacore.diagnosis import Reason
from policies.gateway.drains import LivePod
from policies.gateway.nodes import LiveNode
from policies.models import Act, RolloutNode
from policies.services.rollout import gates, orders, originals, preflight, sending
from policies.services.rollout.desk import Desk, Outcome, Step
from policies.services.rollout.sending import Lost
from policies.services.rollout.surroundings import moves

MOST_EVICTIONS = 20
"""Of one node at one look."""
NAMED = 5
STOPPED = Reason("stopped")


def go_on(desk: Desk, node: RolloutNode) -> None:
    """As far as the node comes without waiting. Raises ApiError, StoreError, HaltedError, LeaseLostError."""
    passed = desk.passed(node)
    node.spent += passed
    for _ in Step:
        step = node.step
        _STEPS[step](desk, node, passed)
        if node.step in (step, Step.ENDED):
            break
        passed = 0.0
    desk.save(node)


def refused(desk: Desk, node: RolloutNode, error: ApiError) -> None:
    """The API server answered and did not do it (a webhook, a quota). Before a change that is waited for only so long."""
    early = node.step in (Step.PREFLIGHT, Step.CORDON, Step.DRAIN, Step.APPLY)
    if early and node.spent > settings.NUMAWEB_ROLLOUT_GATE and not sending.is_sent(desk, node):
        desk.settle(node, Outcome.FAILED, Reason("api", {"words": error.message[:300]}))
    else:
        desk.save(node)


# ---------------------------------------------------------------- before the change


def look_once_more(desk: Desk, node: RolloutNode, _passed: float) -> None:
    if desk.winding_down(node):
        return desk.leave(node, STOPPED)
    live = desk.hands.nodes.read(node.name)
    found = preflight.judge(desk, node, live)
    if found.waits:
        return None
    if found.obstacle is not None:
        return desk.leave(node, found.obstacle)
    if found.is_so:
        return desk.settle(node, Outcome.RETURNED if node.back else Outcome.UNCHANGED)
    gates.remember(desk, node)
    return desk.move(node, Step.CORDON)


def cordon(desk: Desk, node: RolloutNode, _passed: float) -> None:
    if desk.winding_down(node):
        return desk.leave(node, STOPPED)
    live = desk.hands.nodes.read(node.name)
    if live is None or _is_another(node, live):
        return _vanished(desk, node, live)
    if live.cordoned and not desk.is_ours(live):
        return desk.leave(node, Reason("cordoned-by-others"))
    act = desk.begin(node, "cordon")
    if act.state != Act.State.DONE and not live.cordoned:
        done = desk.hands.nodes.cordon(live, desk.mark(node))
        if done != "done":
            return desk.wait(act, Reason("somebody-was-quicker"))
    node.cordoned = True
    if act.state != Act.State.DONE:
        desk.finish(node, act)
    return desk.move(node, Step.DRAIN)


def drain(desk: Desk, node: RolloutNode, _passed: float) -> None:
    if desk.winding_down(node):
        return desk.leave(node, STOPPED)
    live = desk.hands.nodes.read(node.name)
    if live is None or _is_another(node, live):
        return _vanished(desk, node, live)
    if not live.cordoned:
        return desk.leave(node, Reason("uncordoned-by-others"))
    left = _to_leave(desk, node)
    if not left:
        return desk.move(node, Step.UNDO if node.back else Step.APPLY)
    if node.spent > desk.options.drain_within:
        names = ", ".join(sorted(each.key for each in left)[:NAMED])
        seconds = desk.options.drain_within
        cause = Reason("drain-timeout", {"pods": names, "seconds": seconds})
        return desk.settle(node, Outcome.FAILED, cause)
    tried = dict(node.acts.filter(kind="evict", epoch=node.epoch or 0).values_list("subject", "tries"))
    for pod in sorted(left, key=lambda each: (tried.get(each.key, 0), each.key))[:MOST_EVICTIONS]:
        if not pod.leaving:
            _evict(desk, node, pod)
    return None


def _to_leave(desk: Desk, node: RolloutNode) -> list[LivePod]:
    return (
        [each for each in desk.hands.drains.pods_on(node.name) if moves(each)] if desk.options.drain else []
    )


def _evict(desk: Desk, node: RolloutNode, pod: LivePod) -> None:
    act = desk.begin(node, "evict", pod.key)
    done = desk.hands.drains.evict(pod)
    if done.outcome == "blocked":
        return desk.wait(act, Reason("blocked", {"words": done.cause[:300]}))
    return desk.finish(node, act, Reason("evicted" if done.outcome == "evicted" else "pod-gone"))


# ---------------------------------------------------------------- the change


def apply(desk: Desk, node: RolloutNode, _passed: float) -> None:
    planned = desk.planned[node.name]
    if desk.winding_down(node) and not sending.is_sent(desk, node):
        return desk.leave(node, STOPPED)
    if not _is_there(desk, node, cordoned=not sending.is_sent(desk, node)):
        return None
    told = desk.told(node)

    def keep() -> None:
        text = told.text(planned.path) if told else None
        node.text = text if text is not None and sha256(text) == planned.before else ""
        originals.keep(node, planned, desk.now)

    came = sending.send(desk, node, planned.path, lambda at: orders.forward(node, planned, told, at), keep)
    match came:
        case None:
            return None
        case Lost():
            return _without_answer(desk, node, came)
        case Answer(outcome="applied" | "unchanged"):
            _note_answer(desk, node, came)
            return desk.move(node, Step.VERIFY)
    _note_answer(desk, node, came)
    outcome = Outcome.LOST if came.outcome == "failed" else Outcome.FAILED
    return desk.settle(node, outcome, _why(came))


def _is_there(desk: Desk, node: RolloutNode, *, cordoned: bool) -> bool:
    """Whether it is still the same node, and, where that is asked, nobody has uncordoned it. Else it is left."""
    live = desk.hands.nodes.read(node.name)
    if live is None or _is_another(node, live):
        _vanished(desk, node, live)
    elif cordoned and not live.cordoned:
        desk.leave(node, Reason("uncordoned-by-others"))
    else:
        return True
    return False


def _note_answer(desk: Desk, node: RolloutNode, answer: Answer) -> None:
    node.answer, node.applied_at = msgspec.to_builtins(answer), desk.now
    originals.settle(desk.rollout.cluster, desk.planned[node.name], answer.after, desk.now)
    desk.note(
        node,
        Reason("answered", {"outcome": answer.outcome, "why": answer.cause.code if answer.cause else ""}),
    )


def _why(answer: Answer) -> Reason:
    return answer.cause or Reason("no-answer", {"words": answer.words[:300]})


def _without_answer(desk: Desk, node: RolloutNode, lost: Lost) -> None:
    """Nobody says what came of the order, and nothing can come of it any more: the exporter tells what stands there."""
    sending.tidy(desk, node)
    planned, told = desk.planned[node.name], desk.told(node)
    stands = told.sha256(planned.path) if told and told.at > desk.now.timestamp() - orders.SLACK else None
    if stands == planned.after:
        node.applied_at = desk.now
        return desk.move(node, Step.VERIFY)
    return desk.settle(node, Outcome.FAILED if stands == planned.before else Outcome.LOST, lost.reason)


def verify(desk: Desk, node: RolloutNode, passed: float) -> None:
    live = desk.hands.nodes.read(node.name)
    if live is None or _is_another(node, live):
        return _vanished(desk, node, live)
    gate = gates.look(desk, node, live, gates.changed(desk.planned[node.name]), passed)
    if broken := gates.new_refusals(desk, node) or gate.broken:
        return desk.go_back(node, broken)
    return desk.settle(node, Outcome.CHANGED) if gate.held else None


# ---------------------------------------------------------------- the way back


def undo(desk: Desk, node: RolloutNode, _passed: float) -> None:
    planned = desk.planned[node.name]
    sent = sending.is_sent(desk, node)
    if node.back and desk.winding_down(node) and not sent:
        return desk.leave(node, STOPPED)
    if not _is_there(desk, node, cordoned=node.back and not sent):
        return None
    told = desk.told(node)
    original = originals.of(desk.rollout.cluster, planned)

    def order(at: datetime) -> Order | None:
        return orders.backward(node, planned, original, told, at)

    came = sending.send(desk, node, planned.path, order, lambda: None)
    if came is None:
        return None
    if isinstance(came, Answer) and came.outcome in ("applied", "unchanged"):
        _note_answer(desk, node, came)
        return desk.move(node, Step.CONFIRM)
    if isinstance(came, Answer):
        _note_answer(desk, node, came)
    why = came.reason if isinstance(came, Lost) else _why(came)
    still_well = node.back and isinstance(came, Answer) and came.outcome != "failed"
    outcome = Outcome.FAILED if still_well else Outcome.LOST
    return desk.settle(node, outcome, Reason("undo-failed", {"why": why.code}))


def confirm(desk: Desk, node: RolloutNode, passed: float) -> None:
    live = desk.hands.nodes.read(node.name)
    if live is None or _is_another(node, live):
        return _vanished(desk, node, live)
    answer = msgspec.convert(node.answer, Answer)
    gate = gates.look(desk, node, live, gates.went_back(desk.planned[node.name], answer.after), passed)
    if node.back and (refusals := gates.new_refusals(desk, node)):
        return desk.settle(node, Outcome.FAILED, refusals)
    if gate.held:
        return desk.settle(node, Outcome.RETURNED) if node.back else desk.settle(node, Outcome.FAILED)
    if gate.broken is not None:
        return desk.settle(node, Outcome.LOST, Reason("undo-failed", {"why": gate.broken.code}))
    return None


# ---------------------------------------------------------------- the end


def uncordon(desk: Desk, node: RolloutNode, passed: float) -> None:
    live = desk.hands.nodes.read(node.name)
    there = live is not None and not _is_another(node, live)
    if there and live is not None:
        if desk.is_ours(live) and not _release(desk, node, live):
            return None
        if node.cordoned:
            node.cordoned = False
            if live.cordoned and not desk.is_ours(live):
                desk.note(node, Reason("left-cordoned"))
        if node.outcome == Outcome.CHANGED and not _has_settled(desk, node, live, passed):
            return None
    node.cordoned = False
    sending.tidy(desk, node)
    return desk.end(node)


def _release(desk: Desk, node: RolloutNode, live: LiveNode) -> bool:
    act = desk.begin(node, "uncordon")
    if desk.hands.nodes.uncordon(live) == "changed":
        desk.wait(act, Reason("somebody-was-quicker"))
        return False
    node.cordoned = False
    desk.finish(node, act)
    return True


def _has_settled(desk: Desk, node: RolloutNode, live: LiveNode, passed: float) -> bool:
    """Only now pods come that its kubelet may refuse. A canary must not become worse, either."""
    if node.applied_at is None:
        return True
    broken = gates.new_refusals(desk, node)
    if broken is None and not live.ready:
        node.steady = 0.0
        broken = Reason("gate-not-ready") if node.spent > settings.NUMAWEB_ROLLOUT_GATE else None
    elif broken is None:
        node.steady += passed
        if node.steady < settings.NUMAWEB_ROLLOUT_READY:
            return False
        found = gates.worse(desk, node)
        if found is None or not gates.is_canary(node):
            if found is not None:
                desk.note(node, Reason("locality-worse", found.values))
            return True
        broken = found
    if broken is not None:
        desk.go_back(node, broken)
    return False


def _is_another(node: RolloutNode, live: LiveNode) -> bool:
    return bool(node.uid) and live.uid != node.uid


def _vanished(desk: Desk, node: RolloutNode, live: LiveNode | None) -> None:
    desk.settle(node, Outcome.SKIPPED, Reason("gone" if live is None else "replaced"))


_STEPS: dict[str, Callable[[Desk, RolloutNode, float], None]] = {
    Step.PREFLIGHT: look_once_more,
    Step.CORDON: cordon,
    Step.DRAIN: drain,
    Step.APPLY: apply,
    Step.VERIFY: verify,
    Step.UNDO: undo,
    Step.CONFIRM: confirm,
    Step.UNCORDON: uncordon,
}
