"""Which policy applies to which node of a cluster, and what stands in the way: pools that come to share nodes are frozen."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from monitoring.kube import selector
from monitoring.models import Cluster, KubernetesNode
from monitoring.selectors import inventory
from policies.models import Policy, Pool

Level = Policy.Level


class Overlap(msgspec.Struct, frozen=True):
    """Two pools that share nodes, by name."""

    pools: tuple[str, str]
    nodes: tuple[str, ...]


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What counts for one node. `policy` None = nobody wants anything of it. `frozen`: its pools that share nodes with others; until
    somebody parts them nothing of the node is changed, unless it has a policy of its own."""

    node: str
    policy: Policy | None = None
    pool: str = ""
    frozen: tuple[str, ...] = ()


def members(cluster: Cluster, pools: list[Pool]) -> dict[str, set[str]]:
    """Names of each pool's current nodes, by the pool's name. A node that Kubernetes does not tell of has no labels."""
    labels = labels_of(cluster)
    return {pool.name: selected(pool.selector, labels) for pool in pools}


def labels_of(cluster: Cluster) -> dict[str, Mapping[str, str]]:
    """Labels of every current node that Kubernetes tells of, by its name."""
    told = KubernetesNode.objects.filter(node__cluster=cluster, node__gone_at=None)
    return dict(told.values_list("node__name", "labels"))


def selected(text: str, labels: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Names of the nodes that a selector means. Raises selector.SelectorError."""
    wanted = selector.parse(text)
    return {name for name, held in labels.items() if wanted.holds(held)}


def overlaps(members: Mapping[str, set[str]]) -> list[Overlap]:
    """Every two pools that share nodes, in the order of their names."""
    names = sorted(members)
    return [
        Overlap((one, other), tuple(sorted(shared)))
        for i, one in enumerate(names)
        for other in names[i + 1 :]
        if (shared := members[one] & members[other])
    ]


def applying(cluster: Cluster, as_if_on: Policy | None = None) -> list[Applied]:
    """What counts for every current node, in the order of their names: a constant number of queries.

    `as_if_on`: a policy that is imagined to be switched on.
    """
    pools = list(Pool.objects.filter(cluster=cluster))
    inside = members(cluster, pools)
    frozen = {name for each in overlaps(inside) for name in each.pools}
    on = Policy.objects.filter(cluster=cluster, on=True).select_related("pool")
    policies = {(each.level, each.target): each for each in (*on, *filter(None, (as_if_on,)))}
    pools_of: dict[str, list[str]] = {}
    for pool in sorted(inside):
        for node in inside[pool]:
            pools_of.setdefault(node, []).append(pool)
    names = inventory.nodes(cluster).order_by("name").values_list("name", flat=True)
    return [_applied(name, pools_of.get(name, []), frozen, policies) for name in names]


def _applied(
    node: str, pools: list[str], frozen: set[str], policies: Mapping[tuple[str, str], Policy]
) -> Applied:
    held = tuple(pool for pool in pools if pool in frozen)
    mine = policies.get((Level.NODE, node))
    pooled = policies.get((Level.POOL, pools[0])) if len(pools) == 1 else None
    return Applied(
        node=node,
        policy=mine or pooled or policies.get((Level.CLUSTER, "")),
        pool=pools[0] if pools else "",
        frozen=() if mine else held,
    )
