"""How a round writes: every act is a row, and in the audit log, before it is done; every write counts only while the lease is held.

Whoever comes after a crash finds the row begun and does the act again, which changes nothing where it was done; so each act is done once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Max, QuerySet

from monitoring.services import leases
from monitoring.services.leases import Tenure
from numacore.change.wish import Wish
from numacore.diagnosis import Reason
from policies.gateway import Hands
from policies.gateway.nodes import LiveNode
from policies.models import Act, Rollout, RolloutNode
from policies.plan import Options, Plan, PlannedNode
from policies.selectors.exported import Exported, exported
from policies.services import notices
from policies.services.rollout import signing, telling
from policies.services.rollout.signing import Signer

State, Step, Outcome = Rollout.State, RolloutNode.Step, RolloutNode.Outcome
LOOKS = 2
"""As many intervals at most count for one look: time in which nobody looked, or by which a clock jumped, does not."""
PER_NODE = 0.05
"""Seconds that a round takes longer for each node in flight."""


class HaltedError(Exception):
    """Somebody changed the rollout's state: what was about to be done is judged anew."""


class Desk:
    """One round of one rollout. `state` is what its decisions stand on; no act begins once another one is written."""

    def __init__(
        self, rollout: Rollout, plan: Plan, hands: Hands, tenure: Tenure, now: datetime, working: int = 0
    ) -> None:
        self.rollout, self.hands, self.now, self._tenure = rollout, hands, now, tenure
        self.state = State(rollout.state)
        self.options: Options = plan.options
        self._wish = plan.wish
        self.planned: Mapping[str, PlannedNode] = {each.name: each for each in plan.nodes}
        self.left_out = tuple(each.name for each in plan.left_out)
        """Names of the target's nodes that the plan does not touch."""
        self._longest = LOOKS * settings.NUMAWEB_ROLLOUT_LOOK + PER_NODE * working

    @cached_property
    def signer(self) -> Signer:
        """Raises RolloutError."""
        return signing.signer()

    # ------------------------------------------------------------ what is so

    def winding_down(self, node: RolloutNode) -> bool:
        """Whether a node that was not changed yet is to be left as it is."""
        return self.state == State.STOPPING or (self.rollout.returns and not node.back)

    def is_ours(self, live: LiveNode) -> bool:
        return live.mark.partition("/")[0] == str(self.rollout.pk)

    def mark(self, node: RolloutNode) -> str:
        return f"{self.rollout.pk}/{node.epoch}"

    def wish_of(self, planned: PlannedNode) -> Wish | None:
        """What the node is to get; None = its original."""
        return self._wish if planned.act == "apply" else None

    def told(self, node: RolloutNode) -> Exported | None:
        """What its exporter says now. Raises hot.StoreError."""
        return exported(self.rollout.cluster, [node.name]).get(node.name)

    def passed(self, node: RolloutNode) -> float:
        """Seconds since the last look that count."""
        since = (self.now - node.looked).total_seconds() if node.looked else 0.0
        return min(max(since, 0.0), self._longest)

    def next_epoch(self, node: RolloutNode) -> int:
        """Counts up over all rollouts of a node of this name, also after the database came back from a backup."""
        same = RolloutNode.objects.filter(rollout__cluster=self.rollout.cluster_id, name=node.name)
        last = same.aggregate(Max("epoch"))["epoch__max"] or 0
        return max(last + 1, int(self.now.timestamp()))

    def act_of(self, node: RolloutNode, kind: str, subject: str = "") -> Act | None:
        return self._acts(node, kind, subject).last()

    def _acts(self, node: RolloutNode, kind: str, subject: str) -> QuerySet[Act]:
        return node.acts.filter(kind=kind, subject=subject[:400], epoch=node.epoch or 0).order_by("pk")

    # ------------------------------------------------------------ what is done

    def begin(
        self, node: RolloutNode, kind: str, subject: str = "", also: Callable[[], None] | None = None
    ) -> Act:
        """Writes down that an act is about to be done; one that was done before comes back as done. `also`: what is written with it.

        Raises HaltedError, LeaseLostError.
        """
        with transaction.atomic():
            leases.fence(self._tenure)
            self._check()
            act = self._acts(node, kind, subject).last()
            if act is not None and act.state == Act.State.DONE:
                return act
            if act is not None:
                act.tries, act.state = act.tries + 1, Act.State.BEGUN
                act.save()
                return act
            act = Act.objects.create(
                node=node, kind=kind, subject=subject[:400], epoch=node.epoch or 0, at=self.now
            )
            telling.act(node, f"{kind} {subject}".rstrip(), after={"epoch": act.epoch})
            if also is not None:
                also()
            node.save()
        return act

    def finish(
        self, node: RolloutNode, act: Act, said: Reason | None = None, *, failed: bool = False
    ) -> None:
        """What came of an act, with where the node stands by that. Raises LeaseLostError."""
        with transaction.atomic():
            leases.fence(self._tenure)
            act.state, act.ended = (Act.State.FAILED if failed else Act.State.DONE), self.now
            act.said = msgspec.to_builtins(said)
            act.save()
            node.save()
            if failed:
                detail = f"{act.kind} {act.subject}: {said.code if said else ''}"
                telling.act(node, detail.strip(), result="failed")

    def wait(self, act: Act, said: Reason) -> None:
        """An act that could not be done yet stays begun. Raises LeaseLostError."""
        if act.said == msgspec.to_builtins(said):
            return
        with transaction.atomic():
            leases.fence(self._tenure)
            act.said = msgspec.to_builtins(said)
            act.save()

    def note(self, node: RolloutNode, said: Reason, subject: str = "") -> None:
        """For the node's log. Raises LeaseLostError."""
        with transaction.atomic():
            leases.fence(self._tenure)
            Act.objects.create(
                node=node,
                kind="note",
                subject=subject,
                epoch=node.epoch or 0,
                state=Act.State.DONE,
                at=self.now,
                ended=self.now,
                said=msgspec.to_builtins(said),
            )

    # ------------------------------------------------------------ where a node stands

    def save(self, node: RolloutNode) -> None:
        """Raises LeaseLostError."""
        node.looked = self.now
        with transaction.atomic():
            leases.fence(self._tenure)
            node.save()

    def start(self, node: RolloutNode) -> None:
        """A node is begun. Raises HaltedError, LeaseLostError."""
        with transaction.atomic():
            leases.fence(self._tenure)
            self._check()
            node.epoch = self.next_epoch(node)
            node.cause, node.answer, node.ended, node.applied_at = None, None, None, None
            self._to(node, Step.PREFLIGHT)
            node.save()
            telling.act(node, "begun", after={"epoch": node.epoch, "back": node.back})

    def move(self, node: RolloutNode, step: RolloutNode.Step) -> None:
        """Raises LeaseLostError."""
        self._to(node, step)
        self.save(node)

    def _to(self, node: RolloutNode, step: RolloutNode.Step) -> None:
        node.step, node.step_since, node.steady, node.spent, node.looked = step, self.now, 0.0, 0.0, self.now

    def settle(self, node: RolloutNode, outcome: RolloutNode.Outcome, cause: Reason | None = None) -> None:
        """What came of a node is clear; it is uncordoned next. If it is nothing good, no further node is begun."""
        node.outcome = outcome
        if cause is not None or outcome in (Outcome.CHANGED, Outcome.RETURNED):
            node.cause = msgspec.to_builtins(cause)
        self._to(node, Step.UNCORDON)
        with transaction.atomic():
            leases.fence(self._tenure)
            node.save()
            if outcome in (Outcome.FAILED, Outcome.LOST):
                self._stop(node)

    def leave(self, node: RolloutNode, cause: Reason) -> None:
        """A node is left as it is. One that was to go back stands changed then."""
        if node.back and cause.code == "stopped":
            node.back = False
            self.settle(node, Outcome.CHANGED, cause)
        elif node.back and cause.code not in ("gone", "replaced"):
            self.settle(node, Outcome.FAILED, cause)
        else:
            self.settle(node, Outcome.SKIPPED, cause)

    def go_back(self, node: RolloutNode, cause: Reason) -> None:
        """The change of a node did not prove itself: by a new order it is taken back, and no further node is begun."""
        node.outcome, node.cause, node.epoch = "", msgspec.to_builtins(cause), self.next_epoch(node)
        node.applied_at = None
        self._to(node, Step.UNDO)
        with transaction.atomic():
            leases.fence(self._tenure)
            node.save()
            self._stop(node)

    def renumber(self, node: RolloutNode) -> None:
        """The order is made anew with the next epoch: its name was taken, or it would come too late."""
        node.epoch = self.next_epoch(node)
        self.save(node)

    def end(self, node: RolloutNode) -> None:
        node.ended = self.now
        self.move(node, Step.ENDED)

    # ------------------------------------------------------------ the rollout

    def _check(self) -> None:
        held = Rollout.objects.select_for_update().filter(pk=self.rollout.pk).first()
        if held is None or (held.state, held.returns) != (self.state, self.rollout.returns):
            raise HaltedError

    def _stop(self, node: RolloutNode) -> None:
        """Within a transaction."""
        why = str((node.cause or {}).get("code", ""))
        cause = msgspec.to_builtins(Reason("node-failed", {"node": node.name, "why": why}))
        running = Rollout.objects.filter(pk=self.rollout.pk, state__in=(State.RUNNING, State.RETURNING))
        if running.update(state=State.STOPPING, cause=cause, changed=self.now, waits_for=None):
            self.state = State.STOPPING
            # At once: with an API server that is away it may be long before it rests.
            notices.tell(self.rollout, "stopped", self.now)
            telling.act(node, f"stops the rollout: {why}", result="failed")

    def close(self, state: Rollout.State, event: str = "") -> None:
        """The rollout has come to a state of rest. Raises LeaseLostError."""
        with transaction.atomic():
            leases.fence(self._tenure)
            held = Rollout.objects.select_for_update().get(pk=self.rollout.pk)
            if held.state != self.state:
                return
            held.state, held.ended, held.changed, held.waits_for = state, self.now, self.now, None
            held.save()
            if state == State.RETURNED:
                not_begun = msgspec.to_builtins(Reason("not-begun"))
                waiting = held.nodes.filter(step=Step.WAITING)
                waiting.update(step=Step.ENDED, outcome=Outcome.SKIPPED, cause=not_begun, ended=self.now)
            telling.closed(held, state)
            if event:
                notices.tell(held, event, self.now)

    def wait_for(self, reason: Reason | None) -> None:
        """Why nothing is begun at the moment. Raises LeaseLostError."""
        said = msgspec.to_builtins(reason)
        with transaction.atomic():
            leases.fence(self._tenure)
            mine = Rollout.objects.filter(pk=self.rollout.pk, state=self.state)
            mine.update(looked=self.now, waits_for=said)
