"""A node's applier that is played: it believes what the real one believes, changes a text instead of a file, and answers in its words.

It keeps the contract of `tests.appliers.contract`. What it plays of a kubelet: one that finds a state file of another policy answers and dies.
"""

from __future__ import annotations

import hashlib
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from numacore.change import editing
from numacore.change import order as orders
from numacore.change.editing import EditError
from numacore.change.order import CPU_STATE, Answer, Order
from numacore.diagnosis import Reason
from numacore.kubelet.checks import documents


class PlayedNode:
    """`text`: of the kubelet's file, None = there is none. `fails`: what goes wrong, as an outcome and a cause."""

    def __init__(self, name: str, text: str | None, machine_id: str = "", cpu_policy: str = "none") -> None:
        self.name, self.text, self.machine_id = name, text, machine_id
        self.cpu_policy: str | None = cpu_policy
        """In the state file of the CPU manager; None = it is not there."""
        self.fails: tuple[str, str] | None = None
        self.epoch, self.document = 0, ""
        self.original: tuple[str | None, bool] | None = None
        """What stood there first, and whether it was restored."""
        self.changes: list[tuple[int, str]] = []
        """Epoch and act of every change that was really made."""
        self._answers: dict[str, Answer] = {}

    def give(self, data: bytes, public_pem: str, now: float) -> Answer:
        """What comes of a signed order."""
        signed = orders.decode_signed(data)
        key = serialization.load_pem_public_key(public_pem.encode())
        assert isinstance(key, Ed25519PublicKey)
        order = orders.decode(signed.document)
        try:
            key.verify(signed.signature, orders.signed_bytes(signed.document))
        except InvalidSignature:
            return self._refused(order, "signature")
        document = hashlib.sha256(signed.document).hexdigest()
        before = self._answers.get(document)
        if before is not None and before.outcome == "restored":
            return before
        answer = self._given(order, document, now)
        self._answers[document] = answer
        return answer

    def _given(self, order: Order, document: str, now: float) -> Answer:
        if order.node != self.name or (order.machine_id and order.machine_id != self.machine_id):
            return self._refused(order, "wrong-node")
        if order.epoch < self.epoch:
            return self._refused(order, "epoch")
        if order.epoch == self.epoch and document != self.document:
            return self._refused(order, "epoch-twice")
        present = orders.sha256(self.text)
        if present == order.after:
            self.epoch, self.document = order.epoch, document
            return self._answer(order, "unchanged")
        if present != order.before:
            return self._refused(order, "file-changed")
        after = self._after(order)
        if isinstance(after, str) and after.startswith("!"):
            return self._refused(order, after[1:])
        if order.expires <= now:
            return self._refused(order, "expired")
        if self.fails is not None and self.fails[0] == "refused":
            return self._refused(order, self.fails[1])
        return self._change(order, document, after)

    def _after(self, order: Order) -> str | None:
        """The text as it will be; with "!" a cause instead."""
        if order.act == "restore":
            if self.original is None:
                return "!no-original"
            text = self.original[0]
            return text if orders.sha256(text) == order.after else "!original-differs"
        try:
            if order.drop_in:
                text = editing.drop_in(order.keys)
            else:
                text = editing.edit(self.text or "", {**order.keys, **dict.fromkeys(order.removed)})
        except EditError:
            return "!not-editable"
        return text if orders.sha256(text) == order.after else "!outcome-differs"

    def _change(self, order: Order, document: str, after: str | None) -> Answer:
        before, state = self.text, self.cpu_policy
        self.epoch, self.document = order.epoch, document
        if self.original is None or (self.original[1] and self.original[0] != before):
            self.original = (before, False)
        removed = (CPU_STATE,) if CPU_STATE in order.state_files and self.cpu_policy is not None else ()
        policy = self._policy(after, order)
        if state is not None and not removed and state != policy:
            return self._answer(
                order, "restored", Reason("kubelet-dies", {"times": 3, "status": 1}), step="back"
            )
        if self.fails is not None:
            if self.fails[0] == "failed":
                self.text = after
            return self._answer(order, self.fails[0], Reason(self.fails[1]), step="back")
        self.text, self.cpu_policy = after, policy
        self.original = (self.original[0], order.act == "restore")
        self.changes.append((order.epoch, order.act))
        return self._answer(order, "applied", removed=removed, step="commit")

    def _policy(self, text: str | None, order: Order) -> str:
        value = documents.read(text).value if text else {}
        found = value.get("cpuManagerPolicy") if isinstance(value, dict) else None
        if found is None and order.drop_in:
            found = order.keys.get("cpuManagerPolicy")
        return str(found or "none")

    def _refused(self, order: Order, code: str) -> Answer:
        return self._answer(order, "refused", Reason(code), step="check")

    def _answer(
        self,
        order: Order,
        outcome: Any,
        cause: Reason | None = None,
        *,
        removed: Any = (),
        step: str = "check",
    ) -> Answer:
        return Answer(
            outcome=outcome,
            node=order.node,
            epoch=order.epoch,
            rollout=order.rollout,
            step=step,
            cause=cause,
            words=cause.code if cause else "",
            before=order.before,
            after=orders.sha256(self.text),
            removed_state=removed,
        )
