"""Which policy counts for a node: its own before its pool's before the cluster's; pools that share nodes are frozen."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from monitoring.models import Cluster, KubernetesNode
from policies import selectors
from policies.models import Policy, Pool
from policies.selectors import Applied, Overlap
from tests.monitoring.pages import seeds
from tests.policies.conftest import LABELS


def pool(cluster: Cluster, name: str, selector: str) -> Pool:
    return Pool.objects.create(
        cluster=cluster, name=name, selector=selector, changed=timezone.now(), changed_by="ada"
    )


def policy(cluster: Cluster, level: str, wish: str, *, on: bool = True, **target: Any) -> Policy:
    return Policy.objects.create(
        cluster=cluster,
        level=level,
        wish={"topology_policy": wish},
        on=on,
        changed=timezone.now(),
        changed_by="ada",
        **target,
    )


def wanted(cluster: Cluster) -> dict[str, str]:
    """The topology policy that counts for each node; "" = nobody wants anything."""
    return {
        each.node: each.policy.wish["topology_policy"] if each.policy else ""
        for each in selectors.applying(cluster)
    }


def of(cluster: Cluster, node: str) -> Applied:
    return next(each for each in selectors.applying(cluster) if each.node == node)


def test_nothing_is_wanted_where_nobody_wants_anything(west: Cluster) -> None:
    assert wanted(west) == dict.fromkeys(sorted(LABELS), "")


def test_the_nearest_policy_counts(west: Cluster) -> None:
    policy(west, "cluster", "best-effort")
    policy(west, "pool", "single-numa-node", pool=pool(west, "gold", "tier=gold"))
    policy(west, "node", "restricted", node_name="fast-1")
    assert wanted(west) == {
        "fast-0": "single-numa-node",
        "fast-1": "restricted",
        "plain-0": "best-effort",
        "slow-0": "best-effort",
    }


def test_a_policy_that_is_off_leaves_the_node_to_the_next(west: Cluster) -> None:
    policy(west, "cluster", "best-effort")
    policy(west, "pool", "single-numa-node", pool=pool(west, "gold", "tier=gold"), on=False)
    policy(west, "node", "restricted", node_name="fast-1", on=False)
    assert set(wanted(west).values()) == {"best-effort"}


def test_a_label_that_makes_pools_meet_freezes_both(west: Cluster) -> None:
    """slow-0 gets a label that puts it into both: nodes of either pool are frozen, also those that only one of them has."""
    policy(west, "pool", "single-numa-node", pool=pool(west, "gold", "tier=gold"))
    policy(west, "pool", "restricted", pool=pool(west, "iron", "iron=yes"))
    assert not any(each.frozen for each in selectors.applying(west))
    KubernetesNode.objects.filter(node__name="slow-0").update(labels={"tier": "gold", "iron": "yes"})
    found = {each.node: each.frozen for each in selectors.applying(west)}
    assert found == {"fast-0": ("gold",), "fast-1": ("gold",), "slow-0": ("gold", "iron"), "plain-0": ()}
    inside = selectors.members(west, list(west.pools.all()))
    assert selectors.overlaps(inside) == [Overlap(("gold", "iron"), ("slow-0",))]


def test_a_node_with_a_policy_of_its_own_is_not_frozen_with_its_pools(west: Cluster) -> None:
    pool(west, "gold", "tier=gold")
    pool(west, "zone-a", "zone=a")
    policy(west, "node", "none", node_name="fast-0")
    assert of(west, "fast-0").frozen == ()
    assert of(west, "fast-1").frozen == ("gold",)


def test_policies_of_other_clusters_are_theirs(west: Cluster) -> None:
    other = seeds.cluster("north", "North")
    policy(other, "cluster", "restricted")
    policy(other, "pool", "restricted", pool=pool(other, "gold", "tier=gold"))
    assert set(wanted(west).values()) == {""}


def test_more_nodes_are_no_more_queries(west: Cluster) -> None:
    policy(west, "pool", "single-numa-node", pool=pool(west, "gold", "tier=gold"))
    with CaptureQueriesContext(
        connection,
    ) as few:
        selectors.applying(west)
    for number in range(20):
        seeds.unheard(west, f"more-{number}", labels={"tier": "gold"})
    with CaptureQueriesContext(connection) as many:
        assert len(selectors.applying(west)) == 24
    assert len(many) == len(few)


@pytest.mark.parametrize(
    "target",
    [{"level": "cluster"}, {"level": "node", "node_name": "fast-0"}],
    ids=["cluster", "node"],
)
def test_a_target_has_one_policy(west: Cluster, target: dict[str, Any]) -> None:
    level = target.pop("level")
    policy(west, level, "none", **target)
    with pytest.raises(IntegrityError):
        policy(west, level, "restricted", **target)


@pytest.mark.parametrize(
    "target",
    [{"level": "node"}, {"level": "pool"}, {"level": "cluster", "node_name": "fast-0"}],
    ids=["no node", "no pool", "a node too many"],
)
def test_a_policy_without_its_target_is_not_stored(west: Cluster, target: dict[str, Any]) -> None:
    level = target.pop("level")
    with pytest.raises(IntegrityError):
        policy(west, level, "none", **target)
