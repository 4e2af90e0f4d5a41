"""The overview answers whether something is wrong, and leads to it."""

import re

from django.test import Client

from monitoring.models import Cluster, Container, Endpoint, Node
from tests.monitoring.pages.conftest import POSTGRES


def page(client: Client, **query: str) -> str:
    return client.get("/c/east/", query).content.decode()


def test_it_answers_in_its_first_sentence(east: Cluster, as_viewer: Client) -> None:
    text = page(as_viewer)
    assert "4 containers reach across NUMA nodes." in text
    assert "1 of 3 nodes sends no current data." in text


def test_it_says_so_when_nothing_is_wrong(east: Cluster, as_viewer: Client) -> None:
    Container.objects.all().delete()
    Node.objects.filter(name="silent").update(gone_at="2026-01-01T00:00:00Z")
    Node.objects.update(crossing=0)
    assert "Nothing needs attention" in page(as_viewer)


def test_it_explains_numa_in_three_sentences(east: Cluster, as_viewer: Client) -> None:
    text = page(as_viewer)
    assert "A server&#x27;s memory is divided into NUMA nodes" in text or "A server's memory" in text
    assert "runs fastest and steadiest" in text


def test_it_leads_from_a_crossing_container_to_its_row(east: Cluster, as_viewer: Client) -> None:
    assert f"/c/east/nodes/node-07/?tab=containers&amp;container={POSTGRES}" in page(as_viewer)


def test_it_names_an_exporter_that_fails_with_cause_and_remedy(east: Cluster, as_viewer: Client) -> None:
    Endpoint.objects.filter(node__name="solo").update(
        state="failing", error="connection refused", remedy="check-exporter-runs"
    )
    text = page(as_viewer)
    assert "connection refused" in text
    assert "Check that numa-exporter runs on that node" in text
    assert "2 of 3 answer" in text


def test_it_never_shows_unknown_as_zero(east: Cluster, as_viewer: Client) -> None:
    Node.objects.update(busy=None, pinned=None, pinnable=None, memory_used=None)
    text = page(as_viewer)
    values = re.findall(r'<span class="nw-kpi-value">([^<]*)</span>', text)
    assert values[:3] == ["unknown", "unknown", "unknown"]
    assert "no kubelet tells which may be pinned" in text


def test_it_sends_only_its_parts_when_a_script_asks(east: Cluster, as_viewer: Client) -> None:
    text = as_viewer.get("/c/east/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert 'data-for="side"' in text


def test_it_puts_every_node_into_a_tile(east: Cluster, as_viewer: Client) -> None:
    found = as_viewer.get("/c/east/fleet.json").json()
    assert found["unit"] == 200
    (group,) = found["groups"]
    assert group["policy"] == "single-numa-node"
    assert group["names"] == ["node-07", "silent", "solo"]
    assert group["cells"] == [4, 2, 1]
    assert group["states"] == [0, 2, 0]


def test_it_says_what_to_do_without_nodes(as_viewer: Client) -> None:
    Cluster.objects.create(slug="east", name="East")
    text = page(as_viewer)
    assert "No node has been heard of yet." in text
    assert "Start numa-exporter on a node" in text


def test_it_says_what_still_fits_on_one_numa_node(east: Cluster, as_viewer: Client) -> None:
    Node.objects.update(free_cpus=None)
    Node.objects.filter(name="node-07").update(free_cpus={"0": 3, "1": 12, "2": 3, "3": None})
    text = page(as_viewer)
    assert re.search(
        r"The largest pod that still fits has <strong>12 CPUs</strong>: on <a [^>]*>node-07</a>, NUMA 1\.",
        text,
    )
    assert "18 free CPUs on 3 NUMA nodes · 3 unknown" in text
    found = as_viewer.get("/c/east/", {"save": "room.csv"}).getvalue().decode().splitlines()
    assert found[1:] == ["2,8,9,1", "4,3,4,1", "8,1,2,1", "16,0,1,1"]
    part = as_viewer.get("/c/east/", headers={"HX-Request": "true"}).content.decode()
    assert 'id="room"' in part  # so it follows as the other cards do


def test_room_that_nobody_knows_is_unknown(east: Cluster, as_viewer: Client) -> None:
    Node.objects.update(free_cpus=None)
    card = page(as_viewer).split('id="room"', 1)[1].split("</section>", 1)[0]
    assert "<strong>unknown</strong>" in card
    assert "<table" not in card


def test_room_is_told_from_what_nodes_report(east: Cluster, as_viewer: Client) -> None:
    free = Node.objects.get(name="node-07").free_cpus
    assert free is not None
    assert set(free) == {"0", "1", "2", "3"}
    assert max(free.values()) == 32


def test_it_has_the_questions_that_people_come_with(east: Cluster, as_viewer: Client) -> None:
    text = page(as_viewer)
    entries = text.split("nw-entries", 1)[1].split("</nav>", 1)[0]
    addresses = re.findall(r'href="([^"]+)"', entries)
    assert "/c/east/planner/" in addresses
    assert "/c/east/policies/" in addresses
    assert "/c/east/containers/?sort=-cost" in addresses
    assert all(as_viewer.get(each).status_code == 200 for each in addresses)
