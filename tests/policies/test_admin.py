"""Pools and policies in the administration: all of it to be seen with its versions, nothing of it to be changed there."""

from __future__ import annotations

import pytest
from django.test import Client

from monitoring.models import Cluster
from numacore.change.wish import Wish
from policies.models import Act, Notice, Original, Policy
from policies.services.policy import Target
from tests.policies import rollouts
from tests.policies.test_policy import pool, save

POLICIES, POOLS = "/admin/policies/policy/", "/admin/policies/pool/"


@pytest.fixture
def held(west: Cluster) -> Policy:
    pool(west, "gold", "tier=gold")
    save(west, Target("pool", "gold"), Wish(topology_policy="best-effort"))
    return save(west, Target("pool", "gold"), Wish(topology_policy="restricted"), seen=1)


def test_it_shows_what_is_wanted_with_every_version(as_administrator: Client, held: Policy) -> None:
    assert "topology_policy: restricted" in as_administrator.get(POLICIES).content.decode()
    one = as_administrator.get(f"{POLICIES}{held.pk}/change/").content.decode()
    assert "best-effort" in one
    assert "/c/west/policies/pool/gold/" in one
    assert "tier=gold" in as_administrator.get(POOLS).content.decode()


@pytest.mark.parametrize("address", [f"{POLICIES}add/", f"{POOLS}add/"])
def test_nothing_is_made_there(as_administrator: Client, held: Policy, address: str) -> None:
    assert as_administrator.post(address, {}).status_code == 403


def test_nothing_is_changed_or_removed_there(as_administrator: Client, held: Policy) -> None:
    for address in (
        f"{POLICIES}{held.pk}/change/",
        f"{POLICIES}{held.pk}/delete/",
        f"{POOLS}{held.pool_id}/delete/",
    ):
        assert as_administrator.post(address, {"on": "", "post": "yes"}).status_code == 403, address
    held.refresh_from_db()
    assert (held.on, held.version) == (True, 2)


def test_rollouts_with_their_nodes_acts_and_notices_are_to_be_seen_and_never_changed(
    as_administrator: Client, as_viewer: Client, west: Cluster
) -> None:
    made = rollouts.rollout(west, rollouts.State.STOPPED)
    node = rollouts.settle(made, "node-1", rollouts.Outcome.FAILED)
    Act.objects.create(node=node, kind="evict", subject="shop/db-0", at=made.made)
    Original.objects.create(
        cluster=west, node_name="node-1", uid="u", path="/k.yaml", drop_in=False, taken=made.made
    )
    Notice.objects.create(rollout=made, channel="mail", event="stopped", made=made.made, error="no such host")
    pages = {
        f"/admin/policies/rollout/{made.pk}/change/": "no such host",
        f"/admin/policies/rolloutnode/{node.pk}/change/": "shop/db-0",
        "/admin/policies/original/": "/k.yaml",
        "/admin/policies/notice/": "no such host",
        "/admin/policies/rollout/": made.made_by,
        "/admin/policies/rolloutnode/": "node-1",
    }
    for address, text in pages.items():
        assert text in as_administrator.get(address).content.decode(), address
        assert as_viewer.get(address).status_code in (302, 403), address
    for kind in ("rollout", "rolloutnode", "original", "notice"):
        assert as_administrator.post(f"/admin/policies/{kind}/add/", {}).status_code == 403
    assert (
        as_administrator.post(f"/admin/policies/rollout/{made.pk}/delete/", {"post": "yes"}).status_code
        == 403
    )
    assert (
        f"/c/west/rollouts/{made.pk}/"
        in as_administrator.get(f"/admin/policies/rollout/{made.pk}/change/").content.decode()
    )
