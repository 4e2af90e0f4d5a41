"""Where every node of a cluster stands beside what is wanted of it, from the summary of its newest report.

Compared are the four settings that a report sums up; options and reservations are compared in a node's preview.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from monitoring.models import Cluster, Node
from monitoring.selectors import inventory
from numacore.change.wish import Wish
from policies.models import Policy, Pool
from policies.selectors.precedence import Applied, Overlap, applying, members, overlaps

State = Literal["agrees", "differs", "unknown", "frozen", "nothing"]
STATES: tuple[State, ...] = ("differs", "frozen", "unknown", "agrees", "nothing")
"""In the order of what wants a person's eye."""
STATIC = "static"


class Difference(msgspec.Struct, frozen=True):
    """A setting that is not as wanted. `is_now` "" = unknown."""

    field: str
    is_now: str
    wanted: str


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One node: what counts for it, and how it differs."""

    applied: Applied
    state: State
    topology_policy: str
    """In force by its newest report; "" = unknown."""
    differences: tuple[Difference, ...] = ()

    @property
    def node(self) -> str:
        return self.applied.node


class TargetRow(msgspec.Struct, frozen=True, kw_only=True):
    """A target that may have a policy: the cluster, each pool, each node with a policy of its own. `nodes`: for how many it counts now."""

    level: str
    name: str
    selector: str = ""
    policy: Policy | None = None
    nodes: int = 0
    differ: int = 0
    frozen: bool = False


def standing(cluster: Cluster) -> list[Standing]:
    """Every current node by name."""
    columns = ("name", "topology_policy", "topology_scope", "cpu_policy", "memory_policy")
    now = {row.name: row for row in inventory.nodes(cluster).select_related(None).only(*columns)}
    wishes: dict[int, Wish] = {}
    return [_standing(each, now[each.node], wishes) for each in applying(cluster) if each.node in now]


def _standing(applied: Applied, node: Node, wishes: dict[int, Wish]) -> Standing:
    policy = applied.policy
    if policy is None:
        state: State = "frozen" if applied.frozen else "nothing"
        return Standing(applied=applied, state=state, topology_policy=node.topology_policy)
    if policy.pk not in wishes:
        wishes[policy.pk] = msgspec.convert(policy.wish, Wish)
    found = tuple(_differences(wishes[policy.pk], node))
    return Standing(
        applied=applied,
        state="frozen" if applied.frozen else _state(found),
        topology_policy=node.topology_policy,
        differences=found,
    )


def _state(found: tuple[Difference, ...]) -> State:
    if any(each.is_now for each in found):
        return "differs"
    return "unknown" if found else "agrees"


def _differences(wish: Wish, node: Node) -> Iterable[Difference]:
    pinned = wish.topology_policy not in (None, "none")
    wanted: Mapping[str, tuple[str, str | None]] = {
        "topologyManagerPolicy": (node.topology_policy, wish.topology_policy),
        "topologyManagerScope": (node.topology_scope, wish.scope),
        "cpuManagerPolicy": (node.cpu_policy, wish.cpu_policy or (STATIC if pinned else None)),
        "memoryManagerPolicy": (node.memory_policy, wish.memory_policy),
    }
    for field, (is_now, asked) in wanted.items():
        if asked is not None and is_now != asked:
            yield Difference(field, is_now, asked)


def counts(standing: Iterable[Standing]) -> dict[State, int]:
    """Nodes by state; every state is there."""
    found: dict[State, int] = dict.fromkeys(STATES, 0)
    for each in standing:
        found[each.state] += 1
    return found


def targets(cluster: Cluster, standing: Iterable[Standing]) -> list[TargetRow]:
    """The whole cluster first, then pools, then nodes with a policy of their own."""
    reached: dict[int, list[Standing]] = {}
    for each in standing:
        if each.applied.policy:
            reached.setdefault(each.applied.policy.pk, []).append(each)
    frozen = {name for each in frozen_pools(cluster) for name in each.pools}
    policies = {
        (each.level, each.target): each
        for each in Policy.objects.filter(cluster=cluster).select_related("pool")
    }
    found = [_target(policies.pop(("cluster", ""), None), reached, level="cluster")]
    for pool in Pool.objects.filter(cluster=cluster):
        policy = policies.pop(("pool", pool.name), None)
        found.append(
            _target(
                policy,
                reached,
                level="pool",
                name=pool.name,
                selector=pool.selector,
                frozen=pool.name in frozen,
            )
        )
    found += [
        _target(each, reached, level="node", name=each.node_name) for _key, each in sorted(policies.items())
    ]
    return found


def _target(
    policy: Policy | None,
    reached: Mapping[int, list[Standing]],
    *,
    level: str,
    name: str = "",
    selector: str = "",
    frozen: bool = False,
) -> TargetRow:
    mine = reached.get(policy.pk, []) if policy else []
    return TargetRow(
        level=level,
        name=name,
        selector=selector,
        policy=policy,
        nodes=len(mine),
        differ=sum(1 for each in mine if each.state == "differs"),
        frozen=frozen,
    )


def frozen_pools(cluster: Cluster) -> list[Overlap]:
    """Pools that have come to share nodes."""
    return overlaps(members(cluster, list(Pool.objects.filter(cluster=cluster))))


def policy_of(cluster: Cluster, level: str, name: str) -> Policy | None:
    """The policy of a target, on or off; None = nobody has written one."""
    found = Policy.objects.filter(cluster=cluster, level=level).select_related("pool")
    if level == Policy.Level.CLUSTER:
        return found.first()
    by = {"pool__name": name} if level == Policy.Level.POOL else {"node_name": name}
    return found.filter(**by).first()


def is_target(cluster: Cluster, level: str, name: str) -> bool:
    """Whether a policy can be written for it."""
    match level:
        case Policy.Level.CLUSTER:
            return True
        case Policy.Level.POOL:
            return Pool.objects.filter(cluster=cluster, name=name).exists()
    return inventory.nodes(cluster).filter(name=name).exists()
