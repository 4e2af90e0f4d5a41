"""How many queries each page costs, whatever the cluster's size. A page that needs more says so in queries.json."""

import json
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from monitoring.models import Cluster
from tests.monitoring.pages import machines, seeds

FILE = Path(__file__).with_name("queries.json")
ALLOWED: dict[str, int] = json.loads(FILE.read_text())


def cost(client: Client, path: str) -> int:
    client.get(path)  # content types, permissions and sites are looked up once a process
    with CaptureQueriesContext(
        connection,
    ) as caught:
        assert client.get(path).status_code == 200
    return len(caught)


@pytest.mark.parametrize("path", list(ALLOWED))
def test_it_costs_no_more_than_before(path: str, east: Cluster, as_viewer: Client) -> None:
    assert cost(as_viewer, path) <= ALLOWED[path]


@pytest.mark.parametrize(
    "path", ["/c/east/", "/c/east/monitoring/?per_page=100", "/c/east/containers/?per_page=100"]
)
def test_it_costs_the_same_with_more_nodes(path: str, east: Cluster, as_viewer: Client) -> None:
    before = cost(as_viewer, path)
    facts = machines.server(machines.topology(sockets=1, numa=2, cores=4, threads=1))
    for number in range(12):
        seeds.node(east, f"more-{number}", facts)
    assert cost(as_viewer, path) == before
