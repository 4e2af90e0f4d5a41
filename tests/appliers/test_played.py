"""The applier that is played where nodes are played keeps the contract that the real one keeps."""

from __future__ import annotations

import time
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from numacore.change import editing
from numacore.change import order as orders
from numacore.change.order import Answer, Order, Signed
from tests.appliers.contract import CONTRACT, Check
from tests.appliers.played import PlayedNode

TEXT = """# The operator's own words
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
topologyManagerPolicy: none   # until the new machines come
"""
PATH = "/var/lib/kubelet/config.yaml"


class Played:
    """A played node as the contract wants it."""

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        self._node = PlayedNode("one", TEXT)
        self._epoch = 7

    async def text(self) -> str:
        return self._node.text or ""

    async def order(self, keys: dict[str, Any], **fields: Any) -> Order:
        self._epoch += 1
        text = await self.text()
        given = {
            "act": "apply",
            "node": "one",
            "epoch": self._epoch,
            "rollout": "3",
            "path": PATH,
            "keys": keys,
            "before": orders.sha256(text),
            "after": orders.sha256(editing.edit(text, keys)),
            "expires": int(time.time()) + 600,
        }
        return Order(**{**given, **fields})

    async def give(self, order: Order) -> Answer:
        document = orders.encode(order)
        public = self._key.public_key()
        signed = Signed(
            document=document,
            signature=self._key.sign(orders.signed_bytes(document)),
            key=orders.key_name(public.public_bytes_raw()),
        )
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        pem = public.public_bytes(serialization.Encoding.PEM, form).decode()
        return self._node.give(orders.encode_signed(signed), pem, time.time())


@pytest.mark.parametrize("it", CONTRACT)
async def test_the_played_applier(it: Check) -> None:
    await it(Played())
