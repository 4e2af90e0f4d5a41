"""The page of refused pods: one line for a loop, the reason in words, and what is said where nobody knows."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from django.test import Client

from monitoring.models import Cluster, Connection, Failure, Pod, WatchHealth
from tests.monitoring.pages import refusals
from tests.monitoring.pages.refusals import owned, told
from tests.monitoring.watching import objects

REFUSED = {"phase": "Failed", "reason": "TopologyAffinityError", "message": "Pod was rejected"}
TRAIN = {"nodeName": "node-07", "schedulerName": "volcano", "containers": [objects.container("40")]}
ROW = re.compile(r"<tr.*?</tr>", re.DOTALL)
PAGE, STARTING = "/c/east/failures/", "/c/east/failures/starting/"


@pytest.fixture
def scene(east: Cluster) -> Cluster:
    refusals.scene(east)
    return east


def text(client: Client, path: str = PAGE, **query: str) -> str:
    response = client.get(path, query)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode().replace("&#x27;", "'"))


def rows(page: str) -> list[str]:
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    return [re.sub(r"<[^>]+>|\s+", " ", row) for row in body.split("</tr>")[:-1]]


def owners(page: str) -> list[str]:
    return re.findall(r'<div class="nw-owner">([^<]+)</div>', page)


def test_a_loop_of_refused_pods_is_one_line_with_its_count(scene: Cluster, as_viewer: Client) -> None:
    page = text(as_viewer)
    assert sorted(owners(page)) == ["batch", "cache", "debug", "edge", "inference"]
    line = next(row for row in rows(page) if "inference" in row)
    assert re.search(r"node-07 TopologyAffinityError 7 7 still there", re.sub(r" +", " ", line))
    assert "Kubelets refused 11 pods." in page
    assert "They are 5 lines by owner, node and reason. 11 pods are still there." in page


def test_the_menu_leads_to_it(scene: Cluster, as_viewer: Client) -> None:
    assert f'href="{PAGE}" aria-current="page"' in text(as_viewer)
    assert f'href="{PAGE}" aria-current="page"' in text(as_viewer, STARTING)


def test_a_line_is_explained_with_amounts_and_what_would_have_fitted(
    scene: Cluster, as_viewer: Client
) -> None:
    line = next(row for row in rows(text(as_viewer)) if "inference" in row)
    assert "must fit into one NUMA node (single-numa-node)" in line
    assert "32 of 32 CPUs are free there, 40 are asked for." in line
    assert "Container “main” asks for 32 CPUs; 1 more would be refused." in line
    assert "What would have fitted:" in line
    assert refusals.WORDS in line
    assert "Judged from the node's state at that moment." in line


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        ("cache", "at that moment the node's exporter had told nothing for too long"),
        ("edge", "no numa-exporter ever told of this node"),
        ("debug", "by now the node has room, or something that is not judged was in the way"),
    ],
)
def test_where_the_engine_does_not_refuse_it_says_so(
    scene: Cluster, as_viewer: Client, owner: str, words: str
) -> None:
    assert words in next(row for row in rows(text(as_viewer)) if owner in row)


def test_an_old_state_is_named_with_its_age_and_a_later_pod_too(scene: Cluster, as_viewer: Client) -> None:
    later = datetime.now(UTC) + timedelta(seconds=5)
    Failure.objects.filter(owner_name="inference").update(state_age=12.4, last=later)
    line = next(row for row in rows(text(as_viewer)) if "inference" in row)
    assert "Judged from the node's state 12 s before. The newest pod came after that." in line


def test_a_verdict_of_another_version_breaks_nothing(scene: Cluster, as_viewer: Client) -> None:
    Failure.objects.filter(owner_name="inference").update(verdict={"state": "perhaps"})
    line = next(row for row in rows(text(as_viewer)) if "inference" in row)
    assert "another version of numaweb wrote this explanation" in line


def test_pods_that_were_removed_stay_counted(scene: Cluster, as_viewer: Client) -> None:
    Pod.objects.filter(owner_name="inference", name__gte="inference-2").delete()
    Pod.objects.filter(owner_name="batch").delete()
    page = text(as_viewer)
    lines = {owner: re.sub(r" +", " ", row) for owner in owners(page) for row in rows(page) if owner in row}
    assert " 7 2 still there" in lines["inference"]
    assert " 1 none there" in lines["batch"]
    assert "Ask the Planner" in lines["inference"]
    assert "Ask the Planner" in lines["batch"]  # what it asked for is kept


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"namespace": "jobs"}, ["batch"]),
        ({"node": "solo"}, ["debug"]),
        ({"reason": "OutOfcpu"}, ["edge"]),
        ({"owner": "cache"}, ["cache"]),
        ({"q": "ALLOCATE FAILED"}, ["debug"]),
        ({"after": "2999-01-01T00:00"}, []),
        ({"before": "2999-01-01T00:00", "node": "silent"}, ["cache"]),
    ],
)
def test_it_filters(scene: Cluster, as_viewer: Client, query: dict[str, str], found: list[str]) -> None:
    assert owners(text(as_viewer, **query)) == found


def test_it_sorts_and_pages(scene: Cluster, as_viewer: Client) -> None:
    assert owners(text(as_viewer, sort="-count"))[0] == "inference"
    assert owners(text(as_viewer, sort="owner")) == ["batch", "cache", "debug", "edge", "inference"]
    told(scene, *(owned(f"one-{number:02}", number, node="elsewhere") for number in range(12)))
    page = text(as_viewer, sort="owner", per_page="10", page="2")
    assert owners(page)[0] == "one-05"
    assert "11 to 17 of 17" in page


def test_the_planner_gets_the_newest_pod_on_that_node(scene: Cluster, as_viewer: Client) -> None:
    line = Failure.objects.get(owner_name="inference")
    answer = as_viewer.get(f"{PAGE}{line.pk}/planner/")
    assert answer.status_code == 302
    address = urlsplit(answer["Location"])
    asked = parse_qs(address.query)
    assert (address.path, asked["find"], asked["node"]) == ("/c/east/planner/", ["node-07"], ["node-07"])
    manifest = yaml.safe_load(asked["m"][0])
    assert manifest["metadata"] == {"name": "inference-6", "namespace": "shop"}
    assert manifest["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "40", "memory": "8Gi"}
    assert "refused" in as_viewer.get(answer["Location"]).content.decode()


def test_the_planner_can_be_asked_about_a_pod_that_is_gone(scene: Cluster, as_viewer: Client) -> None:
    Pod.objects.filter(owner_name="batch").delete()
    line = Failure.objects.get(owner_name="batch")
    address = f"{PAGE}{line.pk}/planner/"
    assert address in as_viewer.get(PAGE).content.decode()
    asked = parse_qs(urlsplit(as_viewer.get(address)["Location"]).query)
    manifest = yaml.safe_load(asked["m"][0])
    assert manifest["metadata"] == {"name": "batch-0", "namespace": "jobs"}
    assert manifest["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "60", "memory": "16Gi"}


def test_the_planner_gets_the_wish_for_a_policy_too(scene: Cluster, as_viewer: Client) -> None:
    wish = {"annotations": {"volcano.sh/numa-topology-policy": "restricted", "secret": "of nobody's concern"}}
    meta = {"name": "train-1", "uid": "t1", "namespace": "shop", **wish}
    told(scene, objects.pod("train-1", "t1", meta=meta, spec=TRAIN, status=REFUSED))
    line = Failure.objects.get(last_pod="train-1")
    asked = parse_qs(urlsplit(as_viewer.get(f"{PAGE}{line.pk}/planner/")["Location"]).query)
    manifest = yaml.safe_load(asked["m"][0])
    assert manifest["metadata"]["annotations"] == {"volcano.sh/numa-topology-policy": "restricted"}
    assert manifest["spec"]["schedulerName"] == "volcano"


def test_the_planner_takes_a_pod_of_sixty_containers(scene: Cluster, as_viewer: Client) -> None:
    spec = {"nodeName": "node-07", "containers": [objects.container("1", name=f"c{i}") for i in range(60)]}
    told(scene, objects.pod("wide-1", "w1", spec=spec, status=REFUSED))
    line = Failure.objects.get(last_pod="wide-1")
    answer = as_viewer.get(f"{PAGE}{line.pk}/planner/")
    assert answer["Location"].startswith("/c/east/planner/?")
    assert "c59" in as_viewer.get(answer["Location"]).content.decode()


def test_the_planner_cannot_be_asked_what_nobody_kept(scene: Cluster, as_viewer: Client) -> None:
    Pod.objects.filter(owner_name="batch").delete()
    Failure.objects.filter(owner_name="batch").update(asked=None)  # a line of an earlier version
    line = Failure.objects.get(owner_name="batch")
    answer = as_viewer.get(f"{PAGE}{line.pk}/planner/")
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert "No pod of this line is there any more" in text(as_viewer)


def test_pods_that_do_not_start_are_lines_too(scene: Cluster, as_viewer: Client) -> None:
    page = text(as_viewer, STARTING)
    assert owners(page) == ["web"]
    assert re.search(
        r"CreateContainerError .*The container runtime refuses .* 3 web-2", re.sub(r" +", " ", rows(page)[0])
    )
    assert owners(text(as_viewer, STARTING, owner="nobody")) == []
    assert owners(text(as_viewer, STARTING, node="node-07", sort="-last")) == ["web"]


def test_the_list_is_a_file_too(scene: Cluster, as_viewer: Client) -> None:
    answer = as_viewer.get(f"{PAGE}failures.csv?reason=TopologyAffinityError&namespace=shop")
    found = list(csv.DictReader(answer.getvalue().decode().splitlines()))
    assert sorted(row["owner_name"] for row in found) == ["cache", "inference"]
    assert next(row for row in found if row["owner_name"] == "inference")["count"] == "7"


# ---------------------------------------------------------------- nothing to show


def test_pods_that_do_not_start_are_a_file_too(scene: Cluster, as_viewer: Client) -> None:
    address = f"{PAGE}not-starting.csv"
    assert address in as_viewer.get(STARTING).content.decode()
    (row,) = csv.DictReader(as_viewer.get(address).getvalue().decode().splitlines())
    assert (row["line_name"], row["reason"], row["pods"], row["example"]) == (
        *("web", "CreateContainerError", "3", "web-2"),
    )
    assert not list(csv.DictReader(as_viewer.get(f"{address}?owner=none").getvalue().decode().splitlines()))
    (found,) = json.loads(as_viewer.get(f"{PAGE}not-starting.json").getvalue())
    assert (found["line_kind"], found["pods"]) == ("ReplicaSet", 3)


def test_a_line_leads_to_its_pods(scene: Cluster, as_viewer: Client) -> None:
    for owner, pods in (("inference", 7), ("debug", 1)):
        line = next(row for row in ROW.findall(as_viewer.get(PAGE).content.decode()) if owner in row)
        (address,) = re.findall(r'href="(/c/east/pods/[^"]*)"', line)
        page = text(as_viewer, unescape(address))
        assert f"1 to {pods} of {pods}" in page


def test_without_a_connection_it_says_what_to_do(east: Cluster, as_viewer: Client) -> None:
    page = text(as_viewer)
    assert "this cluster has no connection to Kubernetes" in page
    assert "NUMAWEB_KUBECONFIG" in page
    assert "No pod was refused" not in page


def test_without_the_right_it_names_the_right(east: Cluster, as_viewer: Client) -> None:
    missing = [{"verb": "list", "group": "", "resource": "pods", "subresource": "", "why": "pods"}]
    refusals.connected(east, missing=missing)
    page = text(as_viewer)
    assert "Grant this right to its ServiceAccount: list pods." in page
    assert "No pod was refused" not in page
    assert "Grant this right to its ServiceAccount: list pods." in text(as_viewer, STARTING)


def test_a_server_that_does_not_answer_is_no_clean_cluster(east: Cluster, as_viewer: Client) -> None:
    refusals.connected(east, state="failing", error="connection refused")
    assert "the API server does not answer" in text(as_viewer)
    assert "connection refused" in text(as_viewer)


def test_before_the_first_list_nothing_is_claimed(east: Cluster, as_viewer: Client) -> None:
    refusals.connected(east)
    WatchHealth.objects.update(listed=None)
    assert "The pods of this cluster are being read for the first time" in text(as_viewer)


def test_a_cluster_without_refusals_says_since_when(east: Cluster, as_viewer: Client) -> None:
    refusals.connected(east)
    WatchHealth.objects.update(listed=datetime(2026, 3, 4, 5, 6, tzinfo=UTC))
    page = text(as_viewer)
    assert "No pod was refused" in page
    assert "03/04/2026 5:06 a.m." in page
    assert "Every admitted pod starts" in text(as_viewer, STARTING)


def test_lines_of_a_cluster_that_is_no_longer_read_are_marked(scene: Cluster, as_viewer: Client) -> None:
    Connection.objects.update(enabled=False)
    page = text(as_viewer)
    assert "What stands here is not current." in page
    assert "the connection to Kubernetes is switched off" in page


# ---------------------------------------------------------------- the overview


def test_the_overview_leads_to_it(scene: Cluster, as_viewer: Client) -> None:
    page = text(as_viewer, "/c/east/")
    assert "Kubelets refused pods in the last 24 hours" in page
    assert "Owners: 5, nodes: 4." in page
    assert "5 lines: pods of 5 owners were refused on 4 nodes" in page
    assert "3 pods were admitted and do not start" in page


def test_yesterdays_refusals_need_no_attention(scene: Cluster, as_viewer: Client) -> None:
    Failure.objects.update(last=datetime.now(UTC) - timedelta(hours=25))
    page = text(as_viewer, "/c/east/")
    assert "Kubelets refused pods" not in page
    assert "No pod was refused" in page


def test_an_overview_without_knowledge_claims_nothing(scene: Cluster, as_viewer: Client) -> None:
    Failure.objects.all().delete()
    Connection.objects.update(enabled=False)
    page = text(as_viewer, "/c/east/")
    assert "unknown: the pods of this cluster are not read" in page
    assert "No pod was refused" not in page


def test_an_overview_of_machines_without_kubernetes_speaks_of_no_refusals(
    east: Cluster, as_viewer: Client
) -> None:
    assert "Failed admissions" not in text(as_viewer, "/c/east/")


def test_it_speaks_chinese(scene: Cluster, as_viewer: Client) -> None:
    as_viewer.cookies.load({"numaweb_language": "zh-hans"})
    page = text(as_viewer)
    assert "<h1>准入失败</h1>" in page
    assert "必须" in next(row for row in rows(page) if "inference" in row)
