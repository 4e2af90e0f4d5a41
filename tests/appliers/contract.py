"""What whoever sends orders relies on: given a node and this order, the answer is this and the node's file is that.

Held against the applier three times: beside a played systemd (tests/numaagent/applier), beside a real kubelet (tests/node), and against the
one that is played in its place where nodes are played too.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec
import pytest

from numacore.change import editing
from numacore.change import order as orders
from numacore.change.order import CPU_STATE, Answer, Order

WISH = {"cpuManagerPolicy": "static", "topologyManagerPolicy": "single-numa-node"}
"""From none to single-numa-node. The CPU manager's state file is of another policy then, and has to go."""


class Place(Protocol):
    """A node whose kubelet is well and runs with both policies at none. Each test finds one that took no order yet."""

    async def text(self) -> str:
        """The file that orders change."""

    async def order(self, keys: dict[str, Any], **fields: Any) -> Order:
        """An order for this node with the next epoch, `before` and `after` of the file as it stands, and no state files; `fields` win."""

    async def give(self, order: Order) -> Answer:
        """The order is signed and sent, and this came of it."""


async def change(place: Place, **fields: Any) -> Order:
    """The order that works out."""
    return await place.order(WISH, **{"state_files": (CPU_STATE,), **fields})


def code(answer: Answer) -> str:
    return answer.cause.code if answer.cause else ""


async def refused(place: Place, order: Order) -> str:
    """The cause, when the order was refused and the file left alone."""
    before = await place.text()
    answer = await place.give(order)
    assert answer.outcome == "refused", answer.words
    assert answer.words
    assert await place.text() == before
    return code(answer)


async def it_applies_a_change(place: Place) -> None:
    before = await place.text()
    order = await change(place)
    answer = await place.give(order)
    assert (answer.outcome, code(answer)) == ("applied", ""), answer.words
    assert (answer.node, answer.epoch, answer.rollout) == (order.node, order.epoch, order.rollout)
    assert (answer.before, answer.after) == (order.before, order.after)
    assert answer.removed_state == (CPU_STATE,)
    assert await place.text() == editing.edit(before, WISH)
    if answer.in_force is not None:
        assert answer.in_force["cpuManagerPolicy"] == "static"


async def it_does_nothing_twice(place: Place) -> None:
    order = await change(place)
    await place.give(order)
    text = await place.text()
    answer = await place.give(order)
    assert (answer.outcome, answer.after, answer.removed_state) == ("unchanged", order.after, ())
    assert await place.text() == text


async def it_goes_back_by_itself_when_the_kubelet_dies(place: Place) -> None:
    """With the state file of another policy left there, it answers and dies seconds later."""
    before = await place.text()
    answer = await place.give(await change(place, state_files=()))
    assert (answer.outcome, code(answer), answer.step) == ("restored", "kubelet-dies", "back")
    assert answer.after == orders.sha256(before)
    assert await place.text() == before


async def it_does_not_try_again_what_it_took_back(place: Place) -> None:
    order = await change(place, state_files=())
    first = await place.give(order)
    assert await place.give(order) == first


async def it_takes_a_better_order_after_one_that_it_took_back(place: Place) -> None:
    await place.give(await change(place, state_files=()))
    assert (await place.give(await change(place))).outcome == "applied"


async def it_restores_what_stood_there_before_the_first_change(place: Place) -> None:
    first = await place.text()
    await place.give(await change(place))
    await place.give(await place.order({"topologyManagerPolicy": "restricted"}))
    assert "topologyManagerPolicy: restricted" in await place.text()
    restore = await place.order({}, act="restore", after=orders.sha256(first), state_files=(CPU_STATE,))
    answer = await place.give(restore)
    assert (answer.outcome, answer.after) == ("applied", orders.sha256(first)), answer.words
    assert await place.text() == first


async def it_refuses_what_is_not_for_here_or_not_for_now(place: Place) -> None:
    """One node for all of them: an order that is refused leaves nothing behind."""
    elsewhere = await change(place, node="another")
    assert await refused(place, elsewhere) == "wrong-node"
    assert await refused(place, await change(place, expires=1)) == "expired"
    assert await refused(place, await change(place, before="0" * 64)) == "file-changed"
    assert await refused(place, await change(place, after="0" * 64)) == "outcome-differs"
    never = await place.order({}, act="restore", after="0" * 64)
    assert await refused(place, never) == "no-original"


async def it_takes_no_order_that_another_one_has_overtaken(place: Place) -> None:
    older = await change(place)
    newer = await change(place)
    await place.give(newer)
    assert await refused(place, older) == "epoch"
    same_number = msgspec.structs.replace(newer, rollout="another")
    assert await refused(place, same_number) == "epoch-twice"


Check = Callable[[Place], Awaitable[None]]
CONTRACT = [
    pytest.param(each, id=each.__name__)
    for each in (
        it_applies_a_change,
        it_does_nothing_twice,
        it_goes_back_by_itself_when_the_kubelet_dies,
        it_does_not_try_again_what_it_took_back,
        it_takes_a_better_order_after_one_that_it_took_back,
        it_restores_what_stood_there_before_the_first_change,
        it_refuses_what_is_not_for_here_or_not_for_now,
        it_takes_no_order_that_another_one_has_overtaken,
    )
]
