"""An order goes to a node and its answer comes back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec
from django.conf import settings

from numacore.change import order as orders
from numacore.change.editing import EditError
from numacore.change.order import Answer, Order, OrderError
from numacore.diagnosis import Reason
from policies.gateway.jobs import Applied
from policies.models import Act, RolloutNode
from policies.services.rollout.desk import Desk
from policies.services.rollout.orders import NO_ANSWER, job, name_of

Make = Callable[[datetime], Order | None]
FINAL = ("applied", "unchanged", "restored")
"""An applier that is started once more with this order says the same again; what was refused or failed may end otherwise."""
LEAST = 60
"""Seconds that an order has to be good for when its Job is made."""


class Lost(msgspec.Struct, frozen=True):
    """There is and will be no answer, for this reason."""

    reason: Reason


def is_sent(desk: Desk, node: RolloutNode) -> bool:
    """Whether a Job is there that carries out the node's newest order, or was."""
    name = name_of(node)
    act = desk.act_of(node, "job", name)
    if act is None or act.state == Act.State.DONE:
        return act is not None
    return desk.hands.jobs.look(settings.NUMAWEB_NAMESPACE, name) is not None


def send(
    desk: Desk, node: RolloutNode, path: str, make: Make, also: Callable[[], None]
) -> Answer | Lost | None:
    """One look at an order on its way; None = wait. `also`: what is written down with the order."""
    name, namespace = name_of(node), settings.NUMAWEB_NAMESPACE
    sent = desk.act_of(node, "job", name)
    if sent is not None and sent.state == Act.State.DONE:
        return _answer(node, desk.hands.jobs.look(namespace, name))
    act = desk.begin(node, "job", name, also)
    try:
        order = make(act.at)
        if order is None:
            return Lost(Reason("undo-unknown"))
        signed = desk.signer.sign(order)
    except (OrderError, EditError) as error:
        return Lost(Reason("order", {"error": str(error)[:300]}))
    _put(desk, node, act, order, job(name, node.name, signed, path))
    return None


def _put(desk: Desk, node: RolloutNode, act: Act, order: Order, manifest: dict[str, object]) -> None:
    """An order that waited too long for its Job (a pause, a dead worker) is made anew, unless the Job is there."""
    namespace = settings.NUMAWEB_NAMESPACE
    if order.expires < desk.now.timestamp() + LEAST:
        usable = desk.hands.jobs.look(namespace, act.subject) is not None
    else:
        usable = desk.hands.jobs.put(namespace, manifest) != "other"
    if usable:
        node.spent = 0.0
        desk.finish(node, act)
    else:
        desk.finish(node, act, Reason("name-taken", {"name": act.subject}), failed=True)
        desk.renumber(node)


def _answer(node: RolloutNode, applied: Applied | None) -> Answer | Lost | None:
    """What an applier said, once that is its last word."""
    late = node.spent > NO_ANSWER
    if applied is not None and applied.message:
        try:
            answer = orders.decode_answer(applied.message.encode())
        except OrderError:
            answer = None
        if answer is None or (answer.node, answer.epoch) != (node.name, node.epoch):
            return Lost(Reason("strange-answer")) if applied.ended or late else None
        return answer if answer.outcome in FINAL or applied.ended or late else None
    words = "its Job is gone" if applied is None else applied.words
    return Lost(Reason("no-answer", {"words": words[:300]})) if late else None


def tidy(desk: Desk, node: RolloutNode) -> None:
    """The Jobs of all orders of a node go, once nothing is to be learnt from them any more."""
    sent = node.acts.filter(kind="job").values_list("subject", flat=True)
    gone = node.acts.filter(kind="tidy", state=Act.State.DONE).values_list("subject", flat=True)
    for name in sorted(set(sent) - set(gone)):
        act = desk.begin(node, "tidy", name)
        desk.hands.jobs.remove(settings.NUMAWEB_NAMESPACE, name)
        desk.finish(node, act, Reason("tidied"))
