"""How many queries each address costs: as written down in queries.json, and no more where there are more rows.

A smaller number is written down with `WRITE_QUERIES=1`; a larger one needs a reason in the commit.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.monitoring.api import inventory
from tests.monitoring.api.conftest import LAB, ROOT
from tests.monitoring.api.inventory import Lab

LEDGER = Path(__file__).with_name("queries.json")
COUNTED = {
    "root": ROOT,
    "clusters": f"{ROOT}clusters/",
    "cluster": LAB,
    "overview": f"{LAB}overview/",
    "fleet": f"{LAB}fleet/",
    "nodes": f"{ROOT}nodes/",
    "cluster-nodes": f"{LAB}nodes/?q=worker&count=true",
    "containers": f"{ROOT}containers/?crossing=true",
    "cluster-containers": f"{LAB}containers/",
    "endpoints": f"{ROOT}endpoints/",
    "cluster-endpoints": f"{LAB}endpoints/",
    "node": f"{LAB}nodes/worker-1/",
    "node-topology": f"{LAB}nodes/worker-1/topology/",
    "node-distances": f"{LAB}nodes/worker-1/distances/",
    "node-containers": f"{LAB}nodes/worker-1/containers/",
    "node-history": f"{LAB}nodes/worker-1/history/",
    "node-kubelet": f"{LAB}nodes/worker-1/kubelet/",
    "node-events": f"{LAB}nodes/worker-1/events/",
    "node-document": f"{LAB}nodes/worker-1/document/",
    "stored-node": f"{LAB}nodes/worker-2/",
    "cluster-pods": f"{LAB}pods/?told=false&count=true",
    "cluster-events": f"{LAB}events/",
    "cluster-connection": f"{LAB}connection/",
    "node-sources": f"{LAB}nodes/worker-1/sources/",
    "node-cluster-events": f"{LAB}nodes/worker-1/cluster-events/",
    "search": f"{ROOT}search/?q=web",
    "settings": f"{ROOT}settings/",
}


def counted(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    return len(queries)


@pytest.mark.parametrize("name", COUNTED)
def test_an_address_costs_as_many_queries_as_written_down(as_viewer: Client, lab: Lab, name: str) -> None:
    as_viewer.get(ROOT)  # what Django keeps of a session's first request
    ledger = json.loads(LEDGER.read_text())
    found = counted(as_viewer, COUNTED[name])
    if os.environ.get("WRITE_QUERIES"):
        LEDGER.write_text(json.dumps({**ledger, name: found}, indent=2, sort_keys=True) + "\n")
    else:
        assert found == ledger.get(name), f"{name}: {found} queries, {ledger.get(name)} written down"


def test_more_rows_cost_no_more_queries(as_viewer: Client, lab: Lab) -> None:
    as_viewer.get(ROOT)
    names = ("nodes", "containers", "overview", "cluster-nodes", "cluster-containers", "endpoints", "fleet")
    before = {name: counted(as_viewer, COUNTED[name]) for name in names}
    for number in range(30):
        node = inventory.node(lab.cluster, f"worker-1{number}", lab.node.topology, timezone.now())
        inventory.container(node, number, timezone.now(), crossing=True, cost=2.0 + number)
    after = {name: counted(as_viewer, COUNTED[name]) for name in names if name != "fleet"}
    assert all(after[name] <= before[name] for name in after), (before, after)
