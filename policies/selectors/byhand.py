"""The change that a preview shows as orders for somebody's own hands: scripts and playbooks, for nodes on which no Job can run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from monitoring.models import Cluster, KubernetesNode
from numacore.change.order import Order
from numacore.change.script import Given
from numacore.diagnosis import Reason
from policies.models import Policy
from policies.selectors import previewing
from policies.selectors.exported import Exported, exported
from policies.selectors.previewing import Previewed

HEALTHY_WITHIN, STEADY_FOR, DEAD_MAN = 120, 20, 300
"""Seconds, as an applier is given them."""
FOR = 24 * 3600
"""An order has an end; a script has none, but for the file that it expects."""
BY_HAND = "by hand"


class Handed(msgspec.Struct, frozen=True, kw_only=True):
    """One node. `given` None = there is nothing to hand out, for the reasons in `why`; without any, its file says already what is wanted."""

    node: str
    given: Given | None = None
    why: tuple[Reason, ...] = ()


def handed(cluster: Cluster, policy: Policy, names: Sequence[str], now: datetime) -> list[Handed]:
    """In the order of the names. Raises hot.StoreError, UnknownNodesError."""
    told = exported(cluster, names)
    machines = dict(
        KubernetesNode.objects.filter(node__in=[each.row for each in told.values()]).values_list(
            "node__name", "machine_id"
        )
    )
    return [
        _handed(each, told.get(each.node), machines.get(each.node, ""), now)
        for each in previewing.preview(cluster, policy, names, now)
    ]


def _handed(previewed: Previewed, told: Exported | None, machine_id: str, now: datetime) -> Handed:
    change = previewed.change
    if change is None or told is None:
        return Handed(node=previewed.node, why=(previewed.problem or Reason("no-data"),))
    if change.refusals:
        return Handed(node=previewed.node, why=change.refusals)
    if change.crashes:
        return Handed(node=previewed.node, why=(Reason("would-crash"),))
    if not change.diff:
        return Handed(node=previewed.node)
    order = Order(
        act="apply",
        node=previewed.node,
        machine_id=machine_id,
        epoch=int(now.timestamp()),
        rollout=BY_HAND,
        path=change.path,
        drop_in=change.drop_in,
        keys=change.keys,
        removed=change.removed,
        before=change.before,
        after=change.after,
        state_files=tuple(each.file for each in change.state_files),
        healthz_port=told.healthz_port,
        expires=int(now.timestamp()) + FOR,
        healthy_within=HEALTHY_WITHIN,
        steady_for=STEADY_FOR,
        dead_man=DEAD_MAN,
    )
    text = change.new_text if change.after else None
    given = Given(order=order, text=text, diff=change.diff, intended=change.intended)
    return Handed(node=previewed.node, given=given)
