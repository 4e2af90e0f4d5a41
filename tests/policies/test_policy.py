"""Pools and policies are written down: checked, versioned, in the audit log; of two editors the second hears of the first."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from monitoring.models import Cluster
from numacore.change.wish import Wish
from policies import selectors
from policies.models import AuditEntry, Policy, PolicyVersion, Pool
from policies.services import policy
from policies.services.policy import PolicyError, Target
from policies.services.who import Who

ADA = Who("ada", "10.0.0.9")
SINGLE = Wish(topology_policy="single-numa-node", prefer_closest=True)
CLUSTER, GOLD = Target("cluster"), Target("pool", "gold")


def save(
    cluster: Cluster, target: Target, wish: Wish = SINGLE, on: bool = True, seen: int | None = None
) -> Policy:
    return policy.save(cluster, target, wish, on, ADA, timezone.now(), seen)


def pool(cluster: Cluster, name: str, text: str, seen: int | None = None) -> Pool:
    return policy.save_pool(cluster, name, text, ADA, timezone.now(), seen)


def refused(do: Any) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        do()
    return caught.value


def test_a_policy_is_written_with_its_first_version_and_in_the_audit_log(west: Cluster) -> None:
    made = save(west, CLUSTER)
    assert (made.version, made.on, made.changed_by) == (1, True, "ada")
    assert [(each.version, each.by) for each in made.versions.all()] == [(1, "ada")]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target, entry.actor) == ("affinity policy", "cluster west cluster", "ada")
    assert entry.before is None
    assert entry.after == {"on": True, "topology_policy": "single-numa-node", "prefer_closest": True}


def test_every_change_is_a_version_and_earlier_ones_stay(west: Cluster) -> None:
    made = save(west, CLUSTER)
    save(west, CLUSTER, Wish(topology_policy="restricted"), seen=1)
    save(west, CLUSTER, Wish(topology_policy="restricted"), on=False, seen=2)
    told = [
        (each.version, each.on, each.wish["topology_policy"]) for each in made.versions.order_by("version")
    ]
    assert told == [(1, True, "single-numa-node"), (2, True, "restricted"), (3, False, "restricted")]


def test_what_stays_the_same_is_no_version(west: Cluster) -> None:
    save(west, CLUSTER)
    assert save(west, CLUSTER, seen=1).version == 1
    assert (PolicyVersion.objects.count(), AuditEntry.objects.count()) == (1, 1)


@pytest.mark.parametrize("seen", [None, 1, 3])
def test_who_comes_second_changes_nothing_and_hears_of_it(west: Cluster, seen: int | None) -> None:
    """None: somebody made the policy while the form for a new one was open."""
    save(west, CLUSTER)
    save(west, CLUSTER, Wish(topology_policy="restricted"), seen=1)
    assert refused(lambda: save(west, CLUSTER, Wish(topology_policy="none"), seen=seen)).code == "changed"
    assert Policy.objects.get().wish["topology_policy"] == "restricted"


def test_a_version_of_nothing_is_one_that_somebody_took_away(west: Cluster) -> None:
    assert refused(lambda: save(west, CLUSTER, seen=1)).code == "changed"


def test_a_wish_that_contradicts_itself_names_each_field(west: Cluster) -> None:
    wish = Wish(topology_policy="single-numa-node", cpu_options={"align-by-socket": True}, reserved_cpus="0-")
    error = refused(lambda: save(west, CLUSTER, wish))
    assert error.code == "wish"
    assert {each.field for each in error.faults} == {"cpu_options", "reserved_cpus"}
    assert not Policy.objects.exists()


def test_a_policy_needs_a_target_that_is_there(west: Cluster) -> None:
    assert refused(lambda: save(west, Target("node", "fast-9"))).code == "no-node"
    assert refused(lambda: save(west, GOLD)).code == "no-pool"


def test_a_policy_of_a_node_that_went_can_still_be_switched_off(west: Cluster) -> None:
    save(west, Target("node", "fast-0"))
    west.nodes.filter(name="fast-0").update(gone_at=timezone.now())
    assert not save(west, Target("node", "fast-0"), on=False, seen=1).on


def test_pools_share_no_node(west: Cluster) -> None:
    pool(west, "gold", "tier=gold")
    error = refused(lambda: pool(west, "zone-a", "zone=a"))
    assert (error.code, error.field) == ("overlap", "selector")
    assert [(each.pools, each.nodes) for each in error.overlaps] == [(("gold", "zone-a"), ("fast-0",))]
    assert pool(west, "zone-a", "zone=a,tier!=gold").version == 1


def test_a_pool_gets_another_selector_from_whoever_saw_its_newest(west: Cluster) -> None:
    pool(west, "gold", "tier=gold")
    assert pool(west, "gold", "zone=a", seen=1).version == 2
    assert refused(lambda: pool(west, "gold", "zone=b", seen=1)).code == "changed"
    assert refused(lambda: pool(west, "gold", "zone=b")).code == "name-taken"
    assert selectors.members(west, list(Pool.objects.all())) == {"gold": {"fast-0", "slow-0"}}
    last = AuditEntry.objects.order_by("-sequence")[0]
    assert (last.before, last.after) == ({"selector": "tier=gold"}, {"selector": "zone=a"})


def test_a_selector_that_cannot_be_read_is_not_stored(west: Cluster) -> None:
    error = refused(lambda: pool(west, "gold", "tier in (gold"))
    assert (error.code, error.field) == ("selector", "selector")
    assert not Pool.objects.exists()


def test_a_pool_with_a_policy_stays(west: Cluster) -> None:
    """Also when the policy is off: it knows what its nodes are to go back to."""
    made = pool(west, "gold", "tier=gold")
    save(west, GOLD, on=False)
    assert refused(lambda: policy.remove_pool(made, ADA)).code == "in-use"
    Policy.objects.all().delete()
    policy.remove_pool(made, ADA)
    assert not Pool.objects.exists()
    assert AuditEntry.objects.order_by("-sequence")[0].after is None


def test_where_nodes_stand(west: Cluster) -> None:
    """As wanted, otherwise, unknown: an unknown setting is no difference. Options and reservations are in `test_standing`."""
    save(west, CLUSTER, Wish(topology_policy="none", scope="pod"))
    west.nodes.filter(name="fast-0").update(topology_policy="none", topology_scope="pod")
    west.nodes.filter(name="fast-1").update(topology_policy="best-effort", topology_scope="pod")
    found = {each.node: each for each in selectors.standing(west)}
    assert {name: each.state for name, each in found.items()} == {
        "fast-0": "agrees",
        "fast-1": "differs",
        "plain-0": "unknown",
        "slow-0": "unknown",
    }
    (difference,) = found["fast-1"].differences
    assert (difference.field, difference.is_now, difference.wanted) == (
        "topologyManagerPolicy",
        "best-effort",
        "none",
    )
    assert selectors.counts(found.values()) == {
        "differs": 1,
        "frozen": 0,
        "unknown": 2,
        "agrees": 1,
        "nothing": 0,
    }


def test_targets_tell_for_how_many_nodes_they_count(west: Cluster) -> None:
    pool(west, "gold", "tier=gold")
    save(west, CLUSTER, Wish(topology_policy="none"))
    save(west, GOLD)
    save(west, Target("node", "fast-1"), Wish(topology_policy="restricted"))
    told = [(each.level, each.name, each.nodes) for each in selectors.targets(west, selectors.standing(west))]
    assert told == [("cluster", "", 2), ("pool", "gold", 1), ("node", "fast-1", 1)]
