"""Refused pods by REST: typed and in words, filtered, paged, conditional."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from monitoring.models import Cluster, Failure, Pod
from tests.monitoring.pages import machines, refusals, seeds
from tests.monitoring.pages.refusals import owned, told

FAILURES = "/api/v1/clusters/east/failures/"


@pytest.fixture
def scene(db: None) -> Cluster:
    east = seeds.cluster()
    seeds.node(east, "node-07", machines.server(machines.topology(sockets=2, numa=2, cores=32, threads=1)))
    seeds.node(east, "solo", machines.server(machines.topology(sockets=1, numa=1, cores=8, threads=1)))
    refusals.scene(east)
    return east


def get(client: Client, path: str = FAILURES, status: int = 200, **headers: str) -> Any:
    response = client.get(path, headers=headers)
    assert response.status_code == status, response.content
    return response.json() if response.content else response


def test_a_line_has_its_explanation_typed_and_in_words(scene: Cluster, as_viewer: Client) -> None:
    (row,) = get(as_viewer, f"{FAILURES}?owner=inference")["results"]
    assert (row["namespace"], row["owner_kind"], row["node"], row["reason"]) == (
        "shop",
        "StatefulSet",
        "node-07",
        "TopologyAffinityError",
    )
    assert (row["count"], row["remaining"], row["last_pod"]) == (7, 7, "inference-6")
    assert row["message"] == refusals.WORDS
    told_ = row["explanation"]
    assert (told_["state"], told_["why"][0]["code"], row["obstacle"]) == ("refused", "numa-lacks", None)
    assert "32 of 32 CPUs are free there, 40 are asked for." in told_["why"][0]["text"]
    first = told_["advice"][0]
    assert (first["kind"], first["container"], first["name"], first["value"]) == (
        "request",
        "main",
        "cpu",
        "32",
    )


def test_where_nobody_can_explain_it_says_why(scene: Cluster, as_viewer: Client) -> None:
    (row,) = get(as_viewer, f"{FAILURES}?owner=edge")["results"]
    assert row["explanation"] is None
    assert row["obstacle"]["code"] == "no-node"
    assert "no numa-exporter ever told of this node" in row["obstacle"]["text"]


def test_it_pages_by_cursor_without_a_gap(scene: Cluster, as_viewer: Client) -> None:
    seen, path = [], f"{FAILURES}?page_size=2&sort=owner"
    while path:
        page = get(as_viewer, path)
        seen += [row["owner"] for row in page["results"]]
        path = page["next"]
    assert seen == ["batch", "cache", "debug", "edge", "inference"]


def test_it_filters_chooses_fields_and_refuses_what_it_does_not_know(
    scene: Cluster, as_viewer: Client
) -> None:
    page = get(
        as_viewer,
        f"{FAILURES}?reason=OutOfcpu&reason=UnexpectedAdmissionError&fields=owner,remaining&count=true&sort=owner",
    )
    assert page["results"] == [{"owner": "debug", "remaining": 1}, {"owner": "edge", "remaining": 1}]
    assert page["count"] == 2
    assert "namespace" in get(as_viewer, f"{FAILURES}?namespaces=shop", 400)["errors"]["namespaces"][0]


def test_it_answers_again_only_when_something_changed(scene: Cluster, as_viewer: Client) -> None:
    tag = as_viewer.get(FAILURES)["ETag"]
    assert as_viewer.get(FAILURES, headers={"If-None-Match": tag}).status_code == 304
    Pod.objects.filter(owner_name="inference").first().delete()
    assert as_viewer.get(FAILURES, headers={"If-None-Match": tag}).status_code == 200


def test_it_costs_the_same_with_more_lines(scene: Cluster, as_viewer: Client) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            get(as_viewer)
        return len(queries)

    get(as_viewer)
    before = cost()
    told(scene, *(owned(f"more-{number}", number, node="node-07") for number in range(20)))
    assert Failure.objects.count() == 25
    assert cost() == before


def test_pods_that_do_not_start_are_grouped(scene: Cluster, as_viewer: Client) -> None:
    (row,) = get(as_viewer, f"{FAILURES}starting/?node=node-07")["results"]
    assert (row["owner"], row["reason"], row["pods"], row["example"]) == (
        "web",
        "CreateContainerError",
        3,
        "web-2",
    )
    assert get(as_viewer, f"{FAILURES}starting/?node=solo")["results"] == []


def test_the_overview_tells_of_them(scene: Cluster, as_viewer: Client) -> None:
    notes = get(as_viewer, "/api/v1/clusters/east/overview/")["attention"]
    note = next(each for each in notes if each["code"] == "admission-refused")
    assert (note["values"]["owners"], note["values"]["nodes"]) == (5, 4)


def test_a_stranger_reads_nothing(scene: Cluster, as_stranger: Client) -> None:
    get(as_stranger, FAILURES, 403)
    get(as_stranger, f"{FAILURES}starting/", 403)
