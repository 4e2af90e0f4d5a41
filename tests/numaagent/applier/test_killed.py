"""The applier is killed. What follows (the same order again, or the dead-man alone) leaves the whole new node or the whole old one."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from numacore.change import order as orders
from numacore.change.order import Order
from tests.numaagent.applier import node as nodes
from tests.numaagent.applier.node import TIMER, Node

STEPS = ("keep", "arm", "stop", "take", "write", "clear", "start", "health", "in-force")
NEW = {"settings": "new", "policy": "static", "left": [], "armed": False, "healthy": True}
OLD = {"settings": "old", "policy": "none", "left": [], "armed": False, "healthy": True}
GAP = int(os.environ.get("NUMAAGENT_KILL_GAP", "29"))
"""Of the things that the applier does to a node, every so manieth is one to be killed before; 1 = all (`make test-all`, `make fuzz`)."""


async def looks(node: Node, order: Order) -> dict[str, Any]:
    """What a person would find on the node."""
    healthy = await node.healthy()
    known = {order.before: "old", order.after: "new"}
    names = {path.name for path in node.at("/var/lib/kubelet").iterdir()}
    return {
        "settings": known.get(orders.sha256(node.config.read_text()), "neither"),
        "policy": json.loads(node.state())["policyName"],
        "left": sorted(names - {"config.yaml", "cpu_manager_state"}),
        "armed": node.at("/var/lib/numaweb/undo/armed").exists(),
        "healthy": healthy,
    }


async def killed(node: Node, order: Order, after: str, event: int) -> None:
    answer = await node.give(order, after=after, event=event)
    assert answer is None, f"{after or event}: {answer.words}"


async def killed_then_again(after: str = "", event: int = 0) -> tuple[str, dict[str, Any]]:
    async with nodes.running() as node:
        order = node.order()
        await killed(node, order, after, event)
        answer = await node.give(order)
        return "" if answer is None else answer.outcome, await looks(node, order)


async def killed_then_the_dead_man(after: str = "", event: int = 0) -> dict[str, Any]:
    async with nodes.running() as node:
        order = node.order()
        state = node.state()
        await killed(node, order, after, event)
        await node.systemd.fire(TIMER)
        found = await looks(node, order)
        if found["settings"] == "old":
            assert node.state() == state
        return found


async def test_the_same_order_again_goes_on() -> None:
    found = await asyncio.gather(*(killed_then_again(after=step) for step in STEPS))
    assert dict(zip(STEPS, found, strict=True)) == dict.fromkeys(STEPS, ("applied", NEW))


async def test_without_another_run_the_dead_man_goes_back() -> None:
    found = await asyncio.gather(*(killed_then_the_dead_man(after=step) for step in STEPS))
    # Before the arming nothing is changed; the new file waits beside the old one under a name that no kubelet reads.
    waits = {**OLD, "left": [".config.yaml.numaweb"]}
    assert dict(zip(STEPS, found, strict=True)) == {**dict.fromkeys(STEPS, OLD), "keep": waits}


async def test_a_reboot_midway_comes_back_to_the_old_settings() -> None:
    async with nodes.running() as node:
        order = node.order()
        assert await node.give(order, after="write") is None
        await node.systemd.boot()
        assert node.systemd.timers == {TIMER}
        await node.systemd.fire(TIMER)
        assert await looks(node, order) == OLD


async def test_once_called_off_the_dead_man_does_nothing_even_if_its_units_stay(node: Node) -> None:
    node.systemd.refuses = {"DisableUnitFiles"}
    order = node.order()
    answer = await node.give(order)
    assert answer is not None
    assert answer.outcome == "applied"
    starts = node.systemd.kubelet.starts
    assert node.at(f"/etc/systemd/system/{TIMER}").exists()
    await node.systemd.boot()
    await node.systemd.fire(TIMER)
    assert node.systemd.kubelet.starts == starts + 1
    assert await looks(node, order) == NEW


async def test_a_newer_order_first_takes_back_what_was_left(node: Node) -> None:
    first = node.order()
    assert await node.give(first, after="write") is None
    second = node.order(before=first.before, after=first.after)
    answer = await node.give(second)
    assert answer is not None
    assert answer.outcome == "applied"
    kept = orders.decode_answer(node.at(f"/var/lib/numaweb/changes/{first.epoch}/answer.json").read_bytes())
    assert (kept.outcome, kept.cause.code) == ("restored", "overtaken")
    assert await looks(node, second) == NEW


async def test_an_order_that_is_too_old_to_go_on_goes_back(node: Node) -> None:
    order = node.order(expires=nodes.soon(3))
    assert await node.give(order, after="write") is None
    await asyncio.sleep(3)
    answer = await node.give(order)
    assert answer is not None
    assert (answer.outcome, answer.cause.code) == ("restored", "expired")
    assert await looks(node, order) == OLD


async def test_whoever_ends_it_politely_makes_it_go_back_at_once(node: Node) -> None:
    order = node.order(steady_for=20)
    process = node.start(order)
    await nodes.until(lambda: node.systemd.kubelet.starts == 2)
    process.terminate()
    process.join(0)
    await nodes.until(lambda: not process.is_alive(), 60)
    process.close()
    answer = orders.decode_answer((node.folder / "termination-log").read_bytes())
    assert (answer.outcome, answer.cause and answer.cause.code) == ("restored", "ended"), answer
    assert await looks(node, order) == OLD


@pytest.mark.timeout(1800)
async def test_killed_before_single_acts() -> None:
    async with nodes.running() as node:
        counted = node.folder / "counted"
        await node.give(node.order(), counted=str(counted))
        acts = int(counted.read_text())
    assert acts > 60
    wrong = []
    chosen = range(min(3, GAP), acts + 1, GAP)
    for first in range(0, len(chosen), 6):
        batch = chosen[first : first + 6]
        again = await asyncio.gather(*(killed_then_again(event=each) for each in batch))
        alone = await asyncio.gather(*(killed_then_the_dead_man(event=each) for each in batch))
        for each, (outcome, found), left in zip(batch, again, alone, strict=True):
            if outcome not in ("applied", "unchanged") or found != NEW:
                wrong.append((each, "again", outcome, found))
            if left not in (OLD, NEW, {**OLD, "left": [".config.yaml.numaweb"]}):
                wrong.append((each, "dead-man", "", left))
    assert not wrong
