"""Of many changes a node keeps the newest and the one whose original it has; wherever the applier dies at that, nothing else is lost."""

from __future__ import annotations

import asyncio
import shutil

from numacore.change.order import Order
from tests.numaagent.applier import node as nodes
from tests.numaagent.applier.node import Node

PAST = 6
"""Changes after the first."""
REMOVED = 2 * 6
"""Acts that take the two oldest of them away: five files each, and the folder."""


def kept(node: Node) -> set[str]:
    return {path.name for path in node.at("/var/lib/numaweb/changes").iterdir()}


async def changed_often(node: Node) -> Order:
    """The next order of a node that was changed first at 8 and then from 9 to 14."""
    first = node.order()
    await node.give(first)
    folder = node.at(f"/var/lib/numaweb/changes/{first.epoch}")
    assert len(list(folder.iterdir())) == REMOVED / 2 - 1
    for _ in range(PAST):
        node.epoch += 1
        shutil.copytree(folder, folder.with_name(str(node.epoch)))
    return node.order(keys={"topologyManagerPolicy": "restricted"}, state_files=())


async def test_the_newest_three_and_the_first_one_stay(node: Node) -> None:
    order = await changed_often(node)
    assert kept(node) == {"8", "9", "10", "11", "12", "13", "14"}
    answer = await node.give(order)
    assert answer is not None
    assert answer.outcome == "applied"
    assert kept(node) == {"8", "12", "13", "14", "15"}


async def test_an_order_that_is_refused_removes_nothing(node: Node) -> None:
    before = await changed_often(node)
    answer = await node.give(nodes.changed(before, after="0" * 64))
    assert answer is not None
    assert answer.outcome == "refused"
    assert kept(node) == {"8", "9", "10", "11", "12", "13", "14"}


async def test_nothing_goes_while_a_dead_man_watches(node: Node) -> None:
    order = await changed_often(node)
    assert await node.give(order, after="write") is None
    changes = node.at("/var/lib/numaweb/changes")
    shutil.copytree(changes / "8", changes / "9")
    answer = await node.give(order)
    assert answer is not None
    assert answer.outcome == "applied"
    assert kept(node) == {"8", "9", "12", "13", "14", "15"}


async def test_nothing_goes_when_nobody_knows_which_one_an_original_is_from(node: Node) -> None:
    order = await changed_often(node)
    other = node.at("/var/lib/numaweb/original/etc/kubernetes/kubelet.conf.d/90-numa.conf.json")
    other.parent.mkdir(parents=True)
    other.write_text('{"sha256":"", "ep')
    answer = await node.give(order)
    assert answer is not None
    assert answer.outcome == "applied"
    assert kept(node) == {"8", "9", "10", "11", "12", "13", "14", "15"}


async def killed_while_it_prunes(nth: int) -> tuple[str, str, bool, set[str]]:
    async with nodes.running() as node:
        order = await changed_often(node)
        settings = node.config.read_text()
        assert await node.give(order, pruned=nth) is None
        assert node.config.read_text() == settings
        assert await node.healthy()
        answer = await node.give(order)
        again = "" if answer is None else answer.outcome
        first = nodes.SETTINGS.format(health=node.health, port=node.port)
        original = node.at("/var/lib/numaweb/original/var/lib/kubelet/config.yaml").read_text() == first
        return (
            again,
            node.config.read_text().partition("topologyManagerPolicy: ")[2][:10],
            original,
            kept(node),
        )


async def test_killed_while_it_prunes_the_same_order_again_goes_on() -> None:
    """Before the first file, within a folder, before the folder itself, between two, at the end."""
    at = (1, 3, 6, 7, REMOVED)
    found = await asyncio.gather(*map(killed_while_it_prunes, at))
    whole = ("applied", "restricted", True, {"8", "12", "13", "14", "15"})
    assert dict(zip(at, found, strict=True)) == dict.fromkeys(at, whole)
