"""A node is looked at once more before anything is done to it: what was planned must still be true."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from monitoring.selectors.planning import UnknownNodesError
from numacore.diagnosis import Reason
from policies import selectors
from policies.gateway.nodes import LiveNode
from policies.models import Policy, RolloutNode
from policies.plan import PlannedNode
from policies.selectors.exported import Exported
from policies.services.rollout import gates, originals
from policies.services.rollout.desk import Desk
from policies.services.rollout.targets import unsound

FRESH = 60.0
"""Seconds that an exporter's word may be old, and that a silent one is waited for."""


class Found(NamedTuple):
    """`obstacle`: why the node is left alone. `is_so`: it is already as it is to be. `waits`: its exporter is silent just now."""

    obstacle: Reason | None = None
    is_so: bool = False
    waits: bool = False


def judge(desk: Desk, node: RolloutNode, live: LiveNode | None) -> Found:
    """Raises hot.StoreError."""
    if obstacle := of_kubernetes(desk, node, live):
        return Found(obstacle)
    planned, told = desk.planned[node.name], desk.told(node)
    if told is None or told.kubelet is None or desk.now.timestamp() - told.at > FRESH:
        return Found(Reason("no-data")) if node.spent > FRESH else Found(waits=True)
    if planned.topology and told.topology != planned.topology:
        return Found(Reason("other-topology"))
    expected, wanted = planned.before, gates.changed(planned)
    if node.back:
        expected, wanted = planned.after, gates.went_back(planned, planned.before)
    if not gates.differing(told, wanted):
        originals.settle(desk.rollout.cluster, planned, wanted.sha256, desk.now)
        return Found(is_so=True)
    if told.sha256(planned.path) != expected:
        return Found(Reason("stale", {"file": planned.path}))
    return Found(None if node.back else _of_change(desk, planned, told))


def of_kubernetes(desk: Desk, node: RolloutNode, live: LiveNode | None) -> Reason | None:
    """Why it cannot be begun, by its Node object."""
    if live is None:
        return Reason("gone")
    if node.uid and live.uid != node.uid:
        return Reason("replaced")
    if live.cordoned and not desk.is_ours(live):
        return Reason("cordoned-by-others")
    return None if live.ready else Reason("not-ready")


def _of_change(desk: Desk, planned: PlannedNode, told: Exported) -> Reason | None:
    """The preview made again: pods have come and gone since the plan."""
    wish = desk.wish_of(planned)
    if wish is None:
        return None
    try:
        (previewed,) = selectors.preview(
            desk.rollout.cluster, Policy(wish=msgspec.to_builtins(wish)), [told.name], desk.now
        )
    except UnknownNodesError:
        return Reason("gone")
    change = previewed.change
    if change is None or change.refusals:
        return (change.refusals[0] if change else previewed.problem) or Reason("no-data")
    files = tuple(each.file for each in change.state_files)
    if change.after != planned.after or set(files) - set(planned.state_files):
        return Reason("stale", {"file": planned.path})
    return unsound(change)
