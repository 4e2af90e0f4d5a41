"""Whatever a page shows, the API has: for each page and each tab the addresses, for each exported column the field."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.test import Client
from django.utils import timezone

from monitoring import urls
from monitoring.api import kubernetes as told
from monitoring.api import rows
from monitoring.views import kubernetes, lists, node
from numacore.change.wish import Wish
from policies import urls as policies_urls
from policies.models import Cleanup
from policies.services import policy as policies
from policies.services.policy import Target
from policies.services.who import Who
from tests.monitoring.api.conftest import LAB, ROOT, Get
from tests.monitoring.api.inventory import Lab
from tests.policies import rollouts

NODE = f"{LAB}nodes/worker-1/"
PAGES = {
    "home": [f"{ROOT}clusters/"],
    "clusters": [f"{ROOT}clusters/"],
    "search": [f"{ROOT}search/?q=worker"],
    "overview": [f"{LAB}overview/"],
    "fleet": [f"{LAB}overview/", f"{LAB}fleet/"],
    "monitoring": [f"{LAB}nodes/", f"{LAB}overview/"],
    "nodes_export": [f"{LAB}nodes/"],
    "containers": [f"{LAB}containers/"],
    "containers_export": [f"{LAB}containers/"],
    "failures": [f"{LAB}failures/"],
    "failures_export": [f"{LAB}failures/"],
    "starting": [f"{LAB}failures/starting/"],
    "starting_export": [f"{LAB}failures/starting/"],
    "ask_planner": [f"{LAB}failures/"],
    "pods": [f"{LAB}pods/"],
    "pods_export": [f"{LAB}pods/"],
    "connection": [f"{LAB}connection/"],
    "node": [NODE],
    "drawing": [NODE, f"{NODE}topology/", f"{NODE}containers/"],
    "history": [f"{NODE}history/"],
    "document": [f"{NODE}document/", NODE],
}
POLICY = f"{LAB}policies/{{policy}}/"
ROLLOUT = f"{LAB}rollouts/{{rollout}}/"
CLEANUP = f"{LAB}cleanups/{{cleanup}}/"
POLICY_PAGES = {
    "audit": [f"{ROOT}audit/"],
    "audit_export": [f"{ROOT}audit/"],
    "cleanups": [f"{LAB}cleanups/"],
    "cleanup": [CLEANUP, f"{CLEANUP}pods/"],
    "rollouts": [f"{LAB}rollouts/"],
    "rollout": [ROLLOUT, f"{ROLLOUT}nodes/", f"{ROLLOUT}nodes/worker-1/acts/"],
    "policies": [f"{LAB}policies/", f"{LAB}pools/", f"{LAB}standing/", f"{LAB}changed-nodes/"],
    "restore": [f"{LAB}changed-nodes/"],
    "policy_pool_new": [f"{LAB}pools/"],
    "policy_pool": [f"{LAB}pools/gold/"],
    **{key: [POLICY, f"{POLICY}versions/"] for key in ("policy", "policy_cluster")},
    **{key: [f"{POLICY}preview/"] for key in ("preview", "preview_cluster")},
    # Files for a person's hands, made of what the preview tells.
    **{key: [f"{POLICY}preview/"] for key in ("by_hand", "by_hand_cluster")},
}
"""Of the other room, with the numbers of what is there."""
ASKED = {"planner": [f"{LAB}plan/", f"{LAB}lint/"]}
"""Addresses that answer to a question in the body."""
TABS = {
    "topology": [NODE, f"{NODE}topology/"],
    "distances": [f"{NODE}distances/"],
    "containers": [f"{NODE}containers/"],
    "history": [f"{NODE}history/"],
    "kubelet": [f"{NODE}kubelet/"],
    "sources": [f"{NODE}sources/"],
    "events": [f"{NODE}events/", f"{NODE}cluster-events/", NODE],
    "document": [f"{NODE}document/"],
}
RENAMED = {"node__name": "node", "container_id": "id", "node_name": "node", "owner_name": "owner"}


def test_each_page_and_tab_has_its_addresses() -> None:
    assert {each.name for each in urls.urlpatterns} == PAGES.keys() | ASKED.keys()
    assert {each.name for each in policies_urls.urlpatterns} == POLICY_PAGES.keys()
    assert node.TABS.keys() == TABS.keys()


@pytest.mark.parametrize(
    "address", sorted({each for names in (PAGES, TABS) for found in names.values() for each in found})
)
def test_the_address_answers(get: Get, lab: Lab, address: str) -> None:
    assert get(address)


@pytest.fixture
def numbers(lab: Lab) -> Mapping[str, int]:
    """A policy, a pool, a rollout and a clean-up, and their numbers."""
    now, ada = timezone.now(), Who("ada", "10.0.0.9")
    wish = Wish(topology_policy="restricted")
    policy = policies.save(lab.cluster, Target("cluster"), wish, True, ada, now)
    policies.save_pool(lab.cluster, "gold", "tier=gold", ada, now)
    rollout = rollouts.rollout(lab.cluster, rollouts.State.STOPPED)
    rollout.nodes.filter(name="node-0").update(name="worker-1")
    cleanup = Cleanup.objects.create(cluster=lab.cluster, made=now, made_by="otto")
    return {"policy": policy.pk, "rollout": rollout.pk, "cleanup": cleanup.pk}


@pytest.mark.parametrize("address", sorted({each for found in POLICY_PAGES.values() for each in found}))
def test_the_address_of_the_other_room_answers(
    as_administrator: Client, numbers: Mapping[str, int], address: str
) -> None:
    answer = as_administrator.get(address.format(**numbers))
    assert answer.status_code == 200, answer.content
    assert answer.json()


def test_where_nodes_stand_is_told_as_the_page_does(
    as_viewer: Client, numbers: Mapping[str, int], lab: Lab
) -> None:
    found = as_viewer.get(f"{LAB}standing/").json()
    assert sum(found["counts"].values()) == len(found["results"]) == 2
    differing = as_viewer.get(f"{LAB}standing/?state=differs").json()["results"]
    assert [each["node"] for each in differing] == ["worker-1"]
    wanted = {"field": "topologyManagerPolicy", "is_now": "best-effort", "wanted": "restricted"}
    assert wanted in differing[0]["differences"]
    assert differing[0]["policy"] == numbers["policy"]
    assert as_viewer.get(f"{LAB}standing/?state=odd").status_code == 400


@pytest.mark.parametrize("address", [each for found in ASKED.values() for each in found])
def test_the_address_answers_to_a_question(as_viewer: Client, lab: Lab, address: str) -> None:
    manifest = "kind: Pod\nspec: {containers: [{name: web}]}"
    answer = as_viewer.post(address, {"manifest": manifest}, content_type="application/json")
    assert answer.status_code == 200, answer.content


def test_each_exported_column_is_a_field() -> None:
    assert set(lists.NODE_COLUMNS) <= set(rows.NODES.names())
    assert {RENAMED.get(name, name) for name in lists.CONTAINER_COLUMNS} <= set(rows.CONTAINERS.names())
    assert {RENAMED.get(name, name) for name in kubernetes.POD_COLUMNS} <= set(told.PODS.names())
