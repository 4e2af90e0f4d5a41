"""The applier beside a real kubelet, systemd and containerd keeps the contract that senders of orders rely on."""

import asyncio
from typing import Any

import pytest

from numacore.change.order import Answer, Order
from tests.appliers.contract import CONTRACT, Check
from tests.node.applier import Applier
from tests.node.lab import Lab
from tests.node.test_changes import NONE


class Real:
    """The lab's node as the contract wants it."""

    def __init__(self, lab: Lab, applier: Applier) -> None:
        self._lab, self._applier = lab, applier

    async def text(self) -> str:
        return await asyncio.to_thread(self._lab.settings)

    async def order(self, keys: dict[str, Any], **fields: Any) -> Order:
        return await asyncio.to_thread(lambda: self._applier.order(keys, **fields))

    async def give(self, order: Order) -> Answer:
        return await asyncio.to_thread(self._applier.give, order)


@pytest.mark.parametrize("it", CONTRACT)
async def test_the_applier(it: Check, shared_lab: Lab) -> None:
    shared_lab.fresh(*NONE)
    await it(Real(shared_lab, Applier(shared_lab)))
