"""What a policy would come to on each node that it counts for, from the newest state of the nodes. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from monitoring.models import Cluster, KubernetesNode, Pod
from monitoring.selectors.planning import Question, nodes
from monitoring.selectors.planning.nodes import Known
from numacore import wire
from numacore.change import wish as wishes
from numacore.change.managed import NodeInfo
from numacore.change.wish import Wish
from numacore.diagnosis import Reason
from numacore.facts import Facts
from numacore.whatif import changing
from numacore.whatif.changing import Change
from numacore.whatif.surviving import NO_AGES, Ages
from policies.models import Policy
from policies.selectors.precedence import applying

Outcome = Literal["crashes", "refused", "loses", "changes", "nothing", "unknown"]


class Previewed(msgspec.Struct, frozen=True, kw_only=True):
    """One node. `change` None = nothing is known of it, for the reason in `problem`. `age`: seconds since its exporter answered."""

    node: str
    outcome: Outcome
    age: float | None
    stale: bool
    change: Change | None = None
    problem: Reason | None = None
    names: dict[str, str] = {}
    """Of its pods by uid, as `namespace/name`."""


def reached(cluster: Cluster, policy: Policy) -> list[str]:
    """Names of the nodes that a policy counts for, or would if it were switched on; frozen ones are left out."""
    return [
        each.node
        for each in applying(cluster, as_if_on=policy)
        if each.policy and each.policy.pk == policy.pk and not each.frozen
    ]


def preview(cluster: Cluster, policy: Policy, names: Sequence[str], now: datetime) -> list[Previewed]:
    """What the policy would come to on these nodes, in the order of their names. Raises hot.StoreError, UnknownNodesError."""
    if not names:
        return []
    wish = wishes.read(policy.wish)
    rows = nodes.chosen(cluster, Question(names=tuple(names)))
    told = {each.node_id: each for each in KubernetesNode.objects.filter(node__in=rows)}
    infos = {row.name: _info(told.get(row.pk)) for row in rows}
    ages = _ages(cluster, [row.name for row in rows])
    return [
        _previewed(each, wish, infos[each.name], ages.get(each.name, NO_AGES))
        for each in nodes.known(cluster, rows, now)
    ]


def _ages(cluster: Cluster, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Of the pods on each node, as the API server tells them."""
    found: dict[str, dict[str, float]] = {}
    told = Pod.objects.filter(cluster=cluster, node_name__in=names, created__isnull=False)
    for name, uid, created in told.values_list("node_name", "kubelet_uid", "created"):
        if created is not None:
            found.setdefault(name, {})[uid] = created.timestamp()
    return found


def _info(told: KubernetesNode | None) -> NodeInfo:
    if told is None:
        return NodeInfo()
    return NodeInfo(labels=told.labels, os_image=told.os_image, version=told.kubelet_version)


def _previewed(known: Known, wish: Wish, info: NodeInfo, ages: Ages) -> Previewed:
    if known.state is None or wire.MACHINE not in known.state.sections:
        problem = Reason("no-data")
        return Previewed(
            node=known.name, outcome="unknown", age=known.age, stale=known.stale, problem=problem
        )
    facts, _machine = nodes.facts_of(known.state)
    change = changing.preview(_versioned(facts, known.kubelet), wish, info, ages)
    return Previewed(
        node=known.name,
        outcome=_outcome(change),
        age=known.age,
        stale=known.stale,
        change=change,
        names=change.unchanged.running,
    )


def _versioned(facts: Facts, version: str) -> Facts:
    """The API server knows a kubelet's version where its node does not tell it."""
    if not version or facts.kubelet is None or facts.kubelet.version:
        return facts
    kubelet = msgspec.structs.replace(facts.kubelet, version=version)
    return msgspec.structs.replace(facts, kubelet=kubelet)


def _outcome(change: Change) -> Outcome:
    if change.refusals:
        return "refused"
    if not change.diff:
        return "nothing"
    if change.crashes:
        return "crashes"
    return "loses" if change.changed and change.changed.lost else "changes"
