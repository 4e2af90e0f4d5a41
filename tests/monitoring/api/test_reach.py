"""Whatever a page shows, the API has: for each page and each tab the addresses, for each exported column the field."""

from __future__ import annotations

import pytest
from django.test import Client

from monitoring import urls
from monitoring.api import kubernetes as told
from monitoring.api import rows
from monitoring.views import kubernetes, lists, node
from tests.monitoring.api.conftest import LAB, ROOT, Get
from tests.monitoring.api.inventory import Lab

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
    assert node.TABS.keys() == TABS.keys()


@pytest.mark.parametrize(
    "address", sorted({each for names in (PAGES, TABS) for found in names.values() for each in found})
)
def test_the_address_answers(get: Get, lab: Lab, address: str) -> None:
    assert get(address)


@pytest.mark.parametrize("address", [each for found in ASKED.values() for each in found])
def test_the_address_answers_to_a_question(as_viewer: Client, lab: Lab, address: str) -> None:
    manifest = "kind: Pod\nspec: {containers: [{name: web}]}"
    answer = as_viewer.post(address, {"manifest": manifest}, content_type="application/json")
    assert answer.status_code == 200, answer.content


def test_each_exported_column_is_a_field() -> None:
    assert set(lists.NODE_COLUMNS) <= set(rows.NODES.names())
    assert {RENAMED.get(name, name) for name in lists.CONTAINER_COLUMNS} <= set(rows.CONTAINERS.names())
    assert {RENAMED.get(name, name) for name in kubernetes.POD_COLUMNS} <= set(told.PODS.names())
