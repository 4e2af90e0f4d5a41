"""Tables of pages as files: whole, behind the page's filter, with nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from monitoring.models import Cluster, Node, NodeEvent
from tests.monitoring.pages import refusals, seeds
from tests.monitoring.pages.conftest import POSTGRES
from tests.monitoring.pages.test_kubernetes import connected, event, pod, watched

NODE = "/c/east/nodes/node-07/"


def whole(client: Client, address: str, **query: str) -> Any:
    answer = client.get(address, query)
    assert answer.status_code == 200, answer.content
    return answer


def rows(client: Client, address: str, table: str, **query: str) -> list[dict[str, str]]:
    """Lines of the CSV file."""
    answer = whole(client, address, save=f"{table}.csv", **query)
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode())))


def values(client: Client, address: str, table: str, **query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(whole(client, address, save=f"{table}.json", **query).getvalue())
    return found


def test_the_allocation_of_a_node_has_what_its_page_shows(east: Cluster, as_viewer: Client) -> None:
    found = {each["id"]: each for each in values(as_viewer, NODE, "containers")}
    postgres = found[POSTGRES]
    assert postgres["kind"] == "exclusive"
    assert "memory" in postgres["cross"]
    assert postgres["pinning"].startswith("Pinned")
    assert set(postgres["cpu_shares"]) <= {"0", "1", "2", "3"}
    (line,) = rows(as_viewer, NODE, "containers", q="postgres")
    assert line["id"] == POSTGRES


def test_a_file_is_in_the_order_of_the_page(east: Cluster, as_viewer: Client) -> None:
    by_name = [each["pod"] or each["name"] for each in rows(as_viewer, NODE, "containers", order="name")]
    by_cost = [each["pod"] or each["name"] for each in rows(as_viewer, NODE, "containers", order="cost")]
    assert sorted(by_name) == sorted(by_cost)
    assert by_name != by_cost


def test_sentences_come_in_the_language_of_the_page(east: Cluster, as_viewer: Client) -> None:
    as_viewer.cookies["numaweb_language"] = "zh-hans"
    (line,) = rows(as_viewer, NODE, "containers", q="postgres")
    assert line["pinning"].startswith("已绑核")


def test_distances_are_pairs(east: Cluster, as_viewer: Client) -> None:
    found = values(as_viewer, NODE, "distances")
    assert len(found) == 16
    assert found[0] == {"from": 0, "to": 0, "distance": 10}


def test_events_are_whole_though_the_page_shows_fifty(east: Cluster, as_viewer: Client) -> None:
    node = Node.objects.get(name="node-07")
    NodeEvent.objects.all().delete()
    NodeEvent.objects.bulk_create(NodeEvent(node=node, at=timezone.now(), code="rebooted") for _ in range(70))
    event(east, "node-07", "OOMKilling", message="=cmd|' /C calc'!A0")
    found = rows(as_viewer, NODE, "events", tab="events", page="2")
    assert len(found) == 71
    (told,) = [each for each in found if each["what"] == "OOMKilling"]
    assert told["detail"] == "'=cmd|' /C calc'!A0"
    assert told["warning"] == "True"


def test_figures_that_nobody_knows_are_empty(east: Cluster, as_viewer: Client) -> None:
    found = values(as_viewer, "/c/east/nodes/silent/", "numa-nodes")
    assert [each["memory_used"] for each in found] == [None, None]
    assert [each["memory_used"] for each in rows(as_viewer, "/c/east/nodes/silent/", "numa-nodes")] == [
        "",
        "",
    ]


@pytest.mark.parametrize("table", ["settings", "sources", "conditions", "resources", "problems", "latency"])
def test_each_table_of_a_node_is_a_file(table: str, east: Cluster, as_viewer: Client) -> None:
    answer = whole(as_viewer, NODE, save=f"{table}.csv")
    assert answer["Content-Disposition"] == f'attachment; filename="east-node-07-{table}.csv"'
    assert len(answer.getvalue().decode().splitlines()[0].split(",")) > 2
    assert isinstance(values(as_viewer, NODE, table), list)


def test_a_node_without_an_exporter_saves_its_tables(east: Cluster, as_viewer: Client) -> None:
    watched(connected(east), "nodes", objects_known=1)
    for number in range(60):
        pod(east, f"web-{number}", "bare")
    seeds.unheard(east, "bare")
    event(east, "bare", "NodeNotReady")
    bare = "/c/east/nodes/bare/"
    assert len(rows(as_viewer, bare, "pods")) == 60
    assert [each["reason"] for each in rows(as_viewer, bare, "events")] == ["NodeNotReady"]
    assert [each["resource"] for each in rows(as_viewer, "/c/east/connection/", "watches")] == ["nodes"]


def test_pods_that_an_exporter_does_not_show_are_saved(east: Cluster, as_viewer: Client) -> None:
    refusals.connected(east)
    seeds.in_kubernetes(Node.objects.get(name="node-07"))
    pod(east, "hidden", "node-07")
    assert [each["name"] for each in rows(as_viewer, NODE, "not-shown")] == ["hidden"]


def test_links_keep_the_filter_and_leave_the_page_out(east: Cluster, as_viewer: Client) -> None:
    text = whole(as_viewer, NODE, tab="containers", q="post", container=POSTGRES, part="containers")
    assert "?tab=containers&amp;q=post&amp;save=containers.csv" in text.content.decode()
    assert "?tab=containers&amp;q=post&amp;save=containers.json" in text.content.decode()


@pytest.mark.parametrize("asked", ["containers.xml", "users.csv", "", "csv", "..csv"])
def test_what_a_page_does_not_save_is_not_there(asked: str, east: Cluster, as_viewer: Client) -> None:
    answer = as_viewer.get(NODE, {"save": asked})
    assert answer.status_code == 404
    assert "containers.csv" in answer.content.decode()


def test_who_may_not_read_a_page_does_not_get_its_tables(
    east: Cluster, as_stranger: Client, client: Client
) -> None:
    query = {"save": "containers.csv"}
    assert as_stranger.get(NODE, query).status_code == 403
    assert client.get(NODE, query).status_code == 302
