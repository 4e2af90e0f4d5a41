"""Plans and the linter by REST: answers, faults with their field and remedy, and who may ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import yaml
from django.contrib.auth.models import User
from django.test import Client

from monitoring.models import Cluster
from monitoring.selectors import planning
from numaweb import access
from tests.monitoring import planned

EAST = "/api/v1/clusters/east/"


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    planning.forget()
    yield
    planning.forget()


@pytest.fixture
def cluster(db: None) -> Cluster:
    return planned.cluster()


def post(client: Client, path: str, body: Any, status: int = 200, **headers: str) -> Any:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    response = client.post(path, data, content_type="application/json", headers=headers)
    assert response.status_code == status, response.content
    return msgspec.json.decode(response.content)


def test_it_answers_for_every_node(cluster: Cluster, as_viewer: Client) -> None:
    (group,) = post(as_viewer, f"{EAST}plan/", {"manifest": planned.job()})["groups"]
    assert group["workload"] == "Job/train/worker"
    assert group["summary"].startswith("2 of 4 nodes would take it.")
    assert (group["best"], group["pending"]) == ("wide", 0)
    wide = group["nodes"][0]
    assert wide["outcome"] == "admitted"
    assert wide["containers"] == [{"name": "main", "cpus": "4-5", "memory": []}]
    assert wide["volcano"]["fits"]
    assert {each["node"]: each["outcome"] for each in group["nodes"]} == {
        "wide": "admitted",
        "strict": "admitted",
        "blind": "unknown",
        "silent": "unknown",
    }


def test_a_refusal_has_code_sentence_and_remedy(cluster: Cluster, as_viewer: Client) -> None:
    (group,) = post(as_viewer, f"{EAST}plan/", {"manifest": planned.job("5"), "nodes": ["strict"]})["groups"]
    (node,) = group["nodes"]
    (reason,) = node["reasons"]
    assert reason["code"] == "numa-lacks"
    assert "NUMA node 1 comes nearest" in reason["text"]
    assert reason["remedy"]
    assert node["policies"]["restricted"] == "admitted"


def test_a_manifest_may_be_a_document_or_several(cluster: Cluster, as_viewer: Client) -> None:
    document = yaml.safe_load(planned.job())
    assert len(post(as_viewer, f"{EAST}plan/", {"manifest": document})["groups"]) == 1
    assert len(post(as_viewer, f"{EAST}plan/", {"manifest": [document, document]})["groups"]) == 2


def test_another_policy_may_be_imagined(cluster: Cluster, as_viewer: Client) -> None:
    body = {"manifest": planned.job("5"), "policy": "single-numa-node", "scope": "pod", "find": "wide"}
    (node,) = post(as_viewer, f"{EAST}plan/", body)["groups"][0]["nodes"]
    assert (node["outcome"], node["policy"], node["scope"]) == ("refused", "single-numa-node", "pod")


def test_the_only_cluster_need_not_be_named(cluster: Cluster, as_viewer: Client) -> None:
    assert post(as_viewer, "/api/v1/plan/", {"manifest": planned.job()})["cluster"] == "east"
    Cluster.objects.create(slug="west", name="West")
    problem = post(as_viewer, "/api/v1/plan/", {"manifest": planned.job()}, 400)
    assert problem["errors"]["cluster"] == ["Name one of the clusters: east, west."]
    assert (
        post(as_viewer, "/api/v1/plan/", {"manifest": planned.job(), "cluster": "east"})["cluster"] == "east"
    )


def test_every_fault_of_a_manifest_is_named(cluster: Cluster, as_viewer: Client) -> None:
    text = "kind: Pod\nspec: {containers: [{name: a}]}\n---\nkind: Pod\nspec: {containers: [{name: b, resources: {limits: {cpu: two}}}]}"
    problem = post(as_viewer, f"{EAST}plan/", {"manifest": text}, 400)
    assert problem["status"] == 400
    assert problem["errors"]["manifest"] == [
        {
            "document": "2",
            "field": "spec.containers[0].resources.limits.cpu",
            "code": "no-quantity",
            "text": "'two' is no quantity.",
            "remedy": "Write a quantity such as 500m, 4Gi or 2.",
        }
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "manifest"),
        ({"manifest": "a: b: c"}, "manifest"),
        ({"manifest": 7}, "manifest"),
        ({"manifest": [planned.job()]}, "manifest"),
        ({"manifest": planned.job(), "nodes": ["nowhere"]}, "nodes"),
        ({"manifest": planned.job(), "nodes": "wide"}, "nodes"),
        ({"manifest": planned.job(), "policy": "strict"}, "policy"),
        ({"manifest": planned.job(), "scope": "node"}, "scope"),
        ({"manifest": planned.job(), "replicas": 0}, "replicas"),
        ({"manifest": planned.job(), "replicas": 10**9}, "replicas"),
        ({"manifest": planned.job(), "polcy": "none"}, "polcy"),
        ({"manifest": [yaml.safe_load(planned.job())] * 21}, "manifest"),
    ],
)
def test_it_names_the_field_that_is_wrong(
    body: dict[str, Any], field: str, cluster: Cluster, as_viewer: Client
) -> None:
    assert list(post(as_viewer, f"{EAST}plan/", body, 400)["errors"]) == [field]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"manifest": "' + b"x" * (2 << 20) + b'"}'])
def test_it_refuses_rubbish(body: bytes, cluster: Cluster, as_viewer: Client) -> None:
    assert post(as_viewer, f"{EAST}plan/", body, 400)["title"] == "Bad Request"


def test_the_linter_says_what_is_wrong_and_where(cluster: Cluster, as_viewer: Client) -> None:
    (group,) = post(as_viewer, f"{EAST}lint/", {"manifest": planned.job("5", "single-numa-node")})["groups"]
    (finding,) = group["findings"]
    assert (finding["severity"], finding["code"]) == ("error", "larger-than-numa")
    assert finding["field"] == "spec.tasks[0].template.spec.containers[0].resources.requests.cpu"
    assert finding["text"] == "Container “main” asks for 5 CPUs; the largest NUMA node has 4 to give."
    assert post(as_viewer, "/api/v1/lint/", {"manifest": planned.job()})["groups"][0]["findings"] == []


def test_it_speaks_the_callers_language(cluster: Cluster, as_viewer: Client) -> None:
    headers = {"Accept-Language": "zh-hans"}
    (group,) = post(as_viewer, f"{EAST}plan/", {"manifest": planned.job()}, 200, **headers)["groups"]
    assert group["summary"].startswith("4 个节点中有 2 个会接纳它。")


def test_a_cluster_that_is_not_there_is_said_to_be_so(cluster: Cluster, as_viewer: Client) -> None:
    assert post(as_viewer, "/api/v1/clusters/west/plan/", {"manifest": planned.job()}, 404)["status"] == 404


def test_who_may_read_may_ask_with_the_smallest_token(
    cluster: Cluster,
    client: Client,
    viewer: User,
    stranger: User,
    bearer: Callable[[User, str], dict[str, Any]],
) -> None:
    body = {"manifest": planned.job()}
    post(client, f"{EAST}plan/", body, **bearer(viewer, "read"))
    post(client, f"{EAST}plan/", body, 403, **bearer(stranger, "admin"))
    post(client, f"{EAST}plan/", body, 401)


def test_it_is_throttled_like_everything_else(
    cluster: Cluster, as_viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access.PerCaller, "get_rate", lambda _self: "1/min")
    post(as_viewer, f"{EAST}plan/", {"manifest": planned.job()})
    post(as_viewer, f"{EAST}plan/", {"manifest": planned.job()}, 429)
