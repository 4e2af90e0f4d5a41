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
from numacore.kubeletstate import Setting
from numacore.workload import DeviceClaim
from numaweb import access
from tests.monitoring import planned
from tests.monitoring.pages import seeds
from tests.numacore.whatif import nodes

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
    assert wide["containers"] == [{"name": "main", "cpus": "4-5", "memory": [], "devices": []}]
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


def test_a_trace_has_offers_merges_advice_and_volcanos_steps(cluster: Cluster, as_viewer: Client) -> None:
    body = {"manifest": planned.job("5"), "nodes": ["strict"], "trace": True}
    (node,) = post(as_viewer, f"{EAST}plan/", body)["groups"][0]["nodes"]
    trace = node["trace"]
    assert trace["reason"] == "TopologyAffinityError"
    (merge,) = trace["merges"]
    (offer,) = merge["offers"]
    assert (merge["container"], merge["accepted"], offer["resource"], offer["requested"]) == (
        "main",
        False,
        "cpu",
        5,
    )
    assert offer["amounts"] == [
        {"numa_node": 0, "free": 1, "total": 4},
        {"numa_node": 1, "free": 4, "total": 4},
    ]
    assert (offer["hints"], offer["count"]) == ([[0, 1]], 1)
    assert {
        "kind": "request",
        "name": "cpu",
        "value": "4",
        "container": "main",
        "step": "1",
        "text": "Container “main” asks for 4 CPUs; 1 more would be refused.",
    } in trace["advice"]
    assert {"topologyManagerPolicy"} <= {each["name"] for each in trace["advice"]}
    assert trace["policies"][0]["policy"] == "none"
    assert trace["open"] == []
    stages = {each["stage"]: each for each in trace["volcano"]}
    assert (
        stages["filter"]["message"]
        == "task topology policy[restricted] is different with node[single-numa-node]"
    )
    assert stages["score"]["text"] == "None: a refused node gets no score."


def test_volcanos_steps_are_told_with_numbers(cluster: Cluster, as_viewer: Client) -> None:
    body = {"manifest": planned.job(), "nodes": ["wide"], "trace": True, "weight": "10"}
    (node,) = post(as_viewer, f"{EAST}plan/", body)["groups"][0]["nodes"]
    assert [(each["stage"], each["text"]) for each in node["trace"]["volcano"]] == [
        (
            "filter",
            "Passed: the node's CPU manager is static, and its policy has the same name as the pod's, restricted.",
        ),
        (
            "predicate",
            "Container “main” asks for 2 CPUs. Volcano takes none for reserved; free then: 6 (NUMA 0: 2, NUMA 1: 4). 3 sets of NUMA nodes have "
            "as many, the narrowest is {0}. It prefers {0} (restricted).",
        ),
        ("allocation", "Container “main” would get the CPUs 0,3 on NUMA 0."),
        (
            "score",
            "0 = weight 10 × (100 − 100 × 1 ÷ 1): no candidate needs more NUMA nodes than this one. A single candidate always gets 0, and so does "
            "each of several that need equally many.",
        ),
    ]


@pytest.mark.parametrize(("weight", "used"), [("10", True), ('"10"', False), ("10.0", False), ("ten", False)])
def test_a_weight_that_is_no_whole_number_is_said_to_be_unused(
    weight: str, used: bool, cluster: Cluster, as_viewer: Client
) -> None:
    body = {"manifest": planned.job(), "weight": weight}
    (group,) = post(as_viewer, f"{EAST}plan/", body)["groups"]
    told = any("no whole number; Volcano says nothing and takes 1." in each for each in group["assumptions"])
    assert told is not used


def test_where_the_kubelet_is_not_deterministic_every_answer_is_told(
    cluster: Cluster, as_viewer: Client
) -> None:
    """Two devices of one plugin on each NUMA node, and none bound: the kubelet takes any."""
    nics = (DeviceClaim("vendor.com/nic", ("a", "b"), (0,)), DeviceClaim("vendor.com/nic", ("c", "d"), (1,)))
    told = msgspec.structs.replace(
        planned.facts(topologyManagerPolicy="none"),
        kubelet=nodes.kubelet(topologyManagerPolicy=Setting("none", "file"), allocatable_devices=nics),
    )
    seeds.node(cluster, "open", told)
    text = planned.job().replace("memory: 1Gi", "memory: 1Gi, vendor.com/nic: 1")
    body = {"manifest": text, "nodes": ["open"], "trace": True}
    (node,) = post(as_viewer, f"{EAST}plan/", body)["groups"][0]["nodes"]
    answers = node["trace"]["open"]
    assert [each["outcome"] for each in answers] == ["admitted", "admitted"]
    places = [each["containers"][0]["devices"][0]["numa_nodes"] for each in answers]
    assert sorted(places) == [[0], [1]]


def test_without_being_asked_there_is_no_trace(cluster: Cluster, as_viewer: Client) -> None:
    (group,) = post(as_viewer, f"{EAST}plan/", {"manifest": planned.job()})["groups"]
    assert {each["trace"] for each in group["nodes"]} == {None}


def test_workloads_may_stand_on_a_node_together_in_their_order(cluster: Cluster, as_viewer: Client) -> None:
    text = f"{planned.job('4', 'restricted')}---\n{planned.job('2', 'restricted', 2)}"
    alone = post(as_viewer, f"{EAST}plan/", {"manifest": text, "nodes": ["wide"]})["groups"]
    assert [group["nodes"][0]["fits"] for group in alone] == [1, 2]
    body = {"manifest": text, "nodes": ["wide"], "together": True, "trace": True}
    first, second = post(as_viewer, f"{EAST}plan/", body)["groups"]
    assert (first["after"], second["after"]) == ([], ["Job/train/worker"])
    assert second["nodes"][0]["outcome"] == "refused"
    turns = [(each["tried"], each["fits"], each["outcome"]) for each in second["nodes"][0]["trace"]["turns"]]
    assert turns == [(1, 1, "admitted"), (2, 0, "refused")]


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
