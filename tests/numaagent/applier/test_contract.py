"""The applier beside a played systemd keeps the contract that senders of orders rely on."""

from __future__ import annotations

from typing import Any

import pytest

from numacore.change.order import Answer, Order
from tests.appliers.contract import CONTRACT, Check
from tests.numaagent.applier.node import Node


class Played:
    """A node on a tree as the contract wants it."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def text(self) -> str:
        return self._node.config.read_text()

    async def order(self, keys: dict[str, Any], **fields: Any) -> Order:
        return self._node.order(**{"keys": keys, "state_files": (), **fields})

    async def give(self, order: Order) -> Answer:
        answer = await self._node.give(order, hurry=1)
        assert answer is not None
        return answer


@pytest.mark.parametrize("it", CONTRACT)
async def test_the_applier(it: Check, node: Node) -> None:
    await it(Played(node))
