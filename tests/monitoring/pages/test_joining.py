"""Containers that an exporter cannot name and pods that it does not show: joined by uid everywhere, with the source of each name."""

from __future__ import annotations

import csv
import html
import re
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from monitoring import hot
from monitoring.figures import placing
from monitoring.models import Cluster, Container, Failure, Node, Pod
from monitoring.selectors import kubernetes
from numacore.report import node_report
from tests.monitoring.pages import machines, seeds
from tests.monitoring.pages.blind import nameless, pod, scene

NODE = "/c/east/nodes/blind/"
RANKER = f"{2:064x}"


def text(client: Client, path: str, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, path
    plain = re.sub(r"<(script|svg|style)\b.*?</\1>", "", answer.content.decode(), flags=re.S)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", plain)))


def links(client: Client, path: str, to: str) -> list[str]:
    found = re.findall(r'href="([^"]+)"', client.get(path).content.decode())
    return [html.unescape(each) for each in found if each.startswith(to)]


@pytest.fixture
def blind(east: Cluster) -> Node:
    return scene(east)


# ---------------------------------------------------------------- names


def test_the_list_of_containers_names_them_and_says_whence(blind: Node, as_viewer: Client) -> None:
    said = text(as_viewer, "/c/east/containers/?node=blind&q=ranker")
    assert re.search(r"ranker-5f7c / \S+ Deployment owner-of-ranker-5f7c · named by Kubernetes ", said)
    own = text(as_viewer, "/c/east/containers/?node=node-07&q=ranker")
    assert "ranker-5f7c" in own
    assert "named by Kubernetes" not in own


def test_files_and_rest_say_the_same(blind: Node, as_viewer: Client) -> None:
    lines = (
        as_viewer.get("/c/east/containers/containers.csv?node=blind&q=ranker")
        .getvalue()
        .decode()
        .splitlines()
    )
    (row,) = csv.DictReader(lines)
    assert (row["pod"], row["told_by_api"]) == ("ranker-5f7c", "namespace,pod,name")
    assert (row["owner_kind"], row["owner_name"]) == ("Deployment", "owner-of-ranker-5f7c")
    (found,) = as_viewer.get("/api/v1/clusters/east/containers/?node=blind&q=ranker").json()["results"]
    assert found["told_by_api"] == ["namespace", "pod", "name"]
    assert (found["owner_kind"], found["owner"]) == ("Deployment", "owner-of-ranker-5f7c")
    assert found["pod"] == "ranker-5f7c"


def test_owners_find_their_containers(blind: Node, as_viewer: Client) -> None:
    address = (
        "/api/v1/clusters/east/containers/?owner=owner-of-ranker-5f7c&owner_kind=Deployment&fields=id,node"
    )
    assert as_viewer.get(address).json()["results"] == [{"id": RANKER, "node": "blind"}]
    assert as_viewer.get(f"{address}&owner=nobody").json()["results"] != []
    assert as_viewer.get(address.replace("Deployment", "Job")).json()["results"] == []


def test_the_nodes_page_and_its_drawing_name_them_too(blind: Node, as_viewer: Client) -> None:
    said = text(as_viewer, f"{NODE}?tab=containers")
    assert re.search(
        r"ml-serve / ranker-5f7c / \S+ .{0,80}named by Kubernetes Deployment owner-of-ranker-5f7c ", said
    )
    drawn = {each["id"]: each["title"] for each in as_viewer.get(f"{NODE}drawing.json").json()["containers"]}
    assert drawn[RANKER].startswith("ml-serve / ranker-5f7c / ")
    told = as_viewer.get("/api/v1/clusters/east/nodes/blind/containers/").json()
    named = next(
        found for each in told["results"] if (found := each["placement"]["container"])["id"] == RANKER
    )
    assert (named["pod"], named["told_by_api"]) == ("ranker-5f7c", ["namespace", "pod", "name"])


def test_a_name_that_comes_later_is_another_answer_of_the_api(blind: Node, as_viewer: Client) -> None:
    address = "/api/v1/clusters/east/nodes/blind/containers/"
    Pod.objects.filter(node_name="blind").update(kubelet_uid="unknown")
    before = as_viewer.get(address)
    assert "ranker-5f7c" not in before.content.decode()
    for row in Pod.objects.filter(node_name="blind"):
        Pod.objects.filter(pk=row.pk).update(kubelet_uid=row.uid)
    again = as_viewer.get(address, headers={"if-none-match": before["ETag"]})
    assert again.status_code == 200
    assert "ranker-5f7c" in again.content.decode()


# ---------------------------------------------------------------- ways from one to the other


def test_a_container_leads_to_its_pod_and_back(blind: Node, as_viewer: Client) -> None:
    uid = Container.objects.get(node=blind, container_id=RANKER).pod_uid
    there = f"/c/east/pods/?q={uid}"
    for page in ("/c/east/containers/?node=blind&q=ranker", f"{NODE}?tab=containers&q=ranker"):
        assert there in links(as_viewer, page, "/c/east/pods/?q")
        assert "1 to 1 of 1" in text(as_viewer, there)
    (back,) = links(as_viewer, there, "/c/east/containers/?node")
    assert "1 to 1 of 1" in text(as_viewer, back)
    assert "ranker-5f7c" in text(as_viewer, back)


def test_a_container_leads_to_the_refusals_of_its_owner(blind: Node, as_viewer: Client) -> None:
    now = timezone.now()
    for number, kind in enumerate(("Deployment", "Deployment", "Job")):
        Failure.objects.create(
            cluster=blind.cluster,
            namespace="ml-serve",
            owner_kind=kind,
            owner_name="owner-of-ranker-5f7c",
            node_name=f"n{number}",
            reason="TopologyAffinityError",
            count=3,
            first=now,
            last=now,
        )
    assert "refused pods: 6" in text(as_viewer, f"{NODE}?tab=containers")
    (there,) = links(as_viewer, f"{NODE}?tab=containers", "/c/east/failures/?")
    assert "1 to 2 of 2" in text(as_viewer, there)


def test_a_pod_leads_to_its_failure(blind: Node, as_viewer: Client) -> None:
    pod(blind.cluster, "r-1", "blind", "Failed", reason="SMTAlignmentError", owner_kind="Job", owner_name="r")
    pod(blind.cluster, "w-1", "blind", "Pending", reason="CreateContainerError")
    pod(blind.cluster, "e-1", "blind", "Failed", reason="Evicted")
    (refused,) = links(as_viewer, "/c/east/pods/", "/c/east/failures/?namespace")
    assert refused == (
        "/c/east/failures/?namespace=shop&owner=r&owner_kind=Job&node=blind&reason=SMTAlignmentError"
    )
    (starting,) = links(as_viewer, "/c/east/pods/", "/c/east/failures/starting/?namespace")
    assert "w-1" in text(as_viewer, starting)


# ---------------------------------------------------------------- pods that nobody shows


def test_a_pod_that_its_exporter_does_not_show_is_there_with_the_reason(
    blind: Node, as_viewer: Client
) -> None:
    why = "The exporter on its node answers and does not show it."
    assert re.search(rf"kata-1 shop blind unknown {why}", text(as_viewer, "/c/east/pods/?q=kata"))
    said = text(as_viewer, f"{NODE}?tab=containers")
    assert re.search(r"Running here, and not shown by the exporter .{0,400}kata-1 shop none unknown", said)
    assert said.count("kata-1") == 1
    listed = text(as_viewer, "/c/east/pods/?placement=not-shown")
    assert "1 to 1 of 1" in listed
    (row,) = as_viewer.get("/api/v1/clusters/east/pods/?placement=not-shown").json()["results"]
    assert (row["name"], row["placement"], row["told"]) == ("kata-1", "not-shown", True)


def test_each_placement_is_told_apart(blind: Node, as_viewer: Client) -> None:
    seeds.unheard(blind.cluster, "bare")
    pod(blind.cluster, "bare-1", "bare")
    pod(blind.cluster, "quiet-1", "silent")
    pod(blind.cluster, "late-1", "", "Pending")
    Node.objects.filter(name="silent").update(last_seen=timezone.now() - 2 * kubernetes.SILENT_AFTER)
    listed: QuerySet[Any] = kubernetes.pods(blind.cluster, timezone.now())
    found = dict(listed.values_list("name", "placement"))
    assert {found.pop(name) for name in ("bare-1", "quiet-1", "late-1", "kata-1")} == {
        *("no-exporter", "silent", "not-running", "not-shown"),
    }
    assert set(found.values()) == {"known"}
    lines = as_viewer.get("/c/east/pods/pods.csv?placement=silent").getvalue().decode().splitlines()
    assert [row["name"] for row in csv.DictReader(lines)] == ["quiet-1"]
    refused = as_viewer.get("/api/v1/clusters/east/pods/?placement=lost")
    assert refused.status_code == 400
    assert "not-shown" in refused.content.decode()


def test_a_silent_node_accuses_no_pod(blind: Node, as_viewer: Client) -> None:
    Node.objects.filter(pk=blind.pk).update(last_seen=timezone.now() - timedelta(hours=1))
    told = nameless(machines.server(machines.topology(sockets=2, numa=2, cores=32, threads=1)))
    hot.store().forget([blind.pk])
    seeds.live(blind, told, node_report(told), time.time() - 3600)
    assert "Running here, and not shown" not in text(as_viewer, f"{NODE}?tab=containers")


def test_every_placement_has_words_in_both_languages() -> None:
    codes = set(kubernetes.Placement.__args__)  # type: ignore[attr-defined]  # of a Literal
    assert codes == set(placing.LABELS)
    assert set(placing.REASONS) == codes - {"known", "not-running"}
    for code in codes:
        with translation.override("en"):
            english = (placing.label(code), placing.reason(code))
        with translation.override("zh-hans"):
            assert placing.label(code) != english[0]
            assert english[1] is None or placing.reason(code) != english[1]


# ---------------------------------------------------------------- queries


@pytest.mark.parametrize(
    "path", ["/c/east/containers/?per_page=100", "/c/east/pods/?per_page=100", f"{NODE}?tab=containers"]
)
def test_it_costs_the_same_with_more_containers_and_pods(path: str, blind: Node, as_viewer: Client) -> None:
    def cost() -> int:
        as_viewer.get(path)
        with CaptureQueriesContext(connection) as caught:
            assert as_viewer.get(path).status_code == 200
        return len(caught)

    before = cost()
    for number in range(40):
        pod(blind.cluster, f"more-{number}", "blind", owner_kind="Job", owner_name=f"job-{number}")
        Container.objects.create(
            node=blind,
            container_id=f"c{number}",
            pod_uid=f"uid-more-{number}",
            kubernetes=True,
            updated=timezone.now(),
        )
    assert cost() == before
