"""Affinity policies and pools by REST: read by everybody, written by administrators who say what they have seen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from monitoring.models import Cluster
from numacore.change.wish import Wish
from policies.models import AuditEntry, Policy, Pool
from policies.services.policy import Target
from tests.monitoring.pages import seeds
from tests.policies.test_policy import pool, save
from tests.policies.test_preview import PATH, told

POLICIES = "/api/v1/clusters/west/policies/"
POOLS = "/api/v1/clusters/west/pools/"
SINGLE = {"topology_policy": "single-numa-node"}


def send(client: Client, method: str, address: str, body: Any = None, **headers: str) -> Any:
    return client.generic(
        method, address, data=json.dumps(body), content_type="application/json", headers=headers
    )


def test_a_policy_is_made_read_and_changed(as_administrator: Client, west: Cluster) -> None:
    body = {"level": "node", "target": "fast-0", "on": True, "wish": SINGLE}
    made = send(as_administrator, "POST", POLICIES, body)
    assert made.status_code == 201, made.content
    assert made["ETag"] == '"1"'
    address = made["Location"]
    assert as_administrator.get(address).json()["wish"] == SINGLE
    changed = send(as_administrator, "PATCH", address, {"on": False}, **{"If-Match": '"1"'})
    assert (changed.status_code, changed["ETag"]) == (200, '"2"')
    assert (changed.json()["on"], changed.json()["wish"]) == (False, SINGLE)
    assert [each["id"] for each in as_administrator.get(POLICIES).json()["results"]] == [made.json()["id"]]
    assert AuditEntry.objects.filter(action="affinity policy").count() == 2


def test_memory_is_reserved_by_numa_node(as_administrator: Client, west: Cluster) -> None:
    wish = {**SINGLE, "memory_policy": "Static", "reserved_memory": {"0": 1024, "1": 512}}
    made = send(as_administrator, "POST", POLICIES, {"level": "cluster", "wish": wish})
    assert (made.status_code, made.json()["wish"]) == (201, wish)
    for address in ("/c/west/policies/", "/c/west/policies/cluster/", "/c/west/policies/cluster/preview/"):
        assert as_administrator.get(address).status_code == 200, address
    bad = {**wish, "reserved_memory": {"first": 1024}}
    refused = send(as_administrator, "POST", POLICIES, {"level": "node", "target": "fast-0", "wish": bad})
    assert refused.status_code == 400
    assert "wish" in json.dumps(refused.json())


def test_who_has_not_seen_the_newest_changes_nothing(as_administrator: Client, west: Cluster) -> None:
    held = save(west, Target("cluster"))
    address = f"{POLICIES}{held.pk}/"
    assert send(as_administrator, "PATCH", address, {"on": False}).status_code == 428
    old = send(as_administrator, "PATCH", address, {"on": False}, **{"If-Match": '"7"'})
    assert old.status_code == 412
    assert Policy.objects.get().on
    again = send(as_administrator, "POST", POLICIES, {"level": "cluster", "wish": SINGLE})
    assert again.status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"level": "cluster", "wish": {"topology_policy": "strict"}}, "wish"),
        ({"level": "cluster", "wish": {"topologyPolicy": "none"}}, "wish"),
        ({"level": "cluster", "wish": {"reserved_cpus": "0-"}}, "wish.reserved_cpus"),
        ({"level": "node", "target": "nobody", "wish": SINGLE}, "target"),
        ({"level": "pool", "target": "gold", "wish": SINGLE}, "target"),
        ({"level": "zone", "wish": SINGLE}, "level"),
        ({"level": "cluster"}, "wish"),
        ({"level": "cluster", "wish": SINGLE, "enabled": True}, "enabled"),
    ],
)
def test_what_cannot_be_is_told_at_its_field(
    as_administrator: Client, west: Cluster, body: dict[str, Any], field: str
) -> None:
    answer = send(as_administrator, "POST", POLICIES, body)
    assert answer.status_code == 400
    assert field in answer.content.decode()
    assert not Policy.objects.exists()


def test_a_pool_is_made_parted_and_taken_away(as_administrator: Client, west: Cluster) -> None:
    made = send(as_administrator, "POST", POOLS, {"name": "gold", "selector": "tier=gold"})
    assert made.status_code == 201, made.content
    assert made.json()["nodes"] == ["fast-0", "fast-1"]
    shared = send(as_administrator, "POST", POOLS, {"name": "zone-a", "selector": "zone=a"})
    assert shared.status_code == 400
    assert "gold and zone-a share: fast-0" in shared.content.decode()
    address = f"{POOLS}gold/"
    changed = send(as_administrator, "PATCH", address, {"selector": "zone=b"}, **{"If-Match": '"1"'})
    assert changed.json()["nodes"] == ["fast-1"]
    save(west, Target("pool", "gold"))
    assert send(as_administrator, "DELETE", address, **{"If-Match": '"2"'}).status_code == 409
    Policy.objects.all().delete()
    assert send(as_administrator, "DELETE", address, **{"If-Match": '"2"'}).status_code == 204
    assert not Pool.objects.exists()


def test_others_read_and_do_not_write(
    as_viewer: Client, as_operator: Client, as_stranger: Client, west: Cluster
) -> None:
    held = save(west, Target("cluster"))
    pool(west, "gold", "tier=gold")
    for somebody in (as_viewer, as_operator):
        assert somebody.get(POLICIES).status_code == 200
        assert somebody.get(f"{POOLS}gold/").status_code == 200
        for method, address in (
            ("POST", POLICIES),
            ("PATCH", f"{POLICIES}{held.pk}/"),
            ("DELETE", f"{POOLS}gold/"),
        ):
            assert send(somebody, method, address, {}, **{"If-Match": "*"}).status_code == 403
    assert as_stranger.get(POLICIES).status_code == 403
    assert as_viewer.get(f"{POLICIES}{held.pk}/preview/").status_code == 403


def test_a_preview_tells_the_file_and_why_not(as_operator: Client, west: Cluster) -> None:
    seeds.node(west, "server-0", told())
    held = save(west, Target("cluster"), Wish(topology_policy="single-numa-node"))
    found = as_operator.get(f"{POLICIES}{held.pk}/preview/").json()
    assert found["total"] == 5
    by_name = {each["node"]: each for each in found["results"]}
    assert by_name["server-0"]["path"] == PATH
    assert "+topologyManagerPolicy: single-numa-node  # since May" in by_name["server-0"]["diff"]
    assert (by_name["fast-0"]["outcome"], by_name["fast-0"]["diff"]) == ("unknown", [])
    assert by_name["fast-0"]["refusals"]
    rest = as_operator.get(f"{POLICIES}{held.pk}/preview/?offset=4").json()
    assert [each["node"] for each in rest["results"]] == ["slow-0"]


@pytest.mark.parametrize(
    "address", [f"{POLICIES}9999/", f"{POOLS}nobody/", "/api/v1/clusters/nowhere/policies/"]
)
def test_what_is_not_there_is_said(as_viewer: Client, west: Cluster, address: str) -> None:
    assert as_viewer.get(address).status_code == 404
