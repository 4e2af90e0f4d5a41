"""What the API server tells, by REST: nodes without an exporter, pods, events, sources, and the connection without its secrets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from monitoring.models import ClusterEvent, Connection, KubernetesNode, Node, Pod, SourceView, WatchHealth
from tests.monitoring.api.conftest import LAB, Get
from tests.monitoring.api.inventory import Lab

BARE = f"{LAB}nodes/bare/"


@pytest.fixture
def bare(lab: Lab) -> Node:
    """A node that the API server has and no exporter told of."""
    node = Node.objects.create(cluster=lab.cluster, name="bare", uid="uid-bare", first_seen=timezone.now())
    KubernetesNode.objects.create(
        node=node,
        labels={"pool": "gold"},
        taints=[{"key": "gpu", "value": "", "effect": "NoSchedule"}],
        allocatable={"cpu": "63500m"},
        conditions=[{"type": "Ready", "status": "Unknown", "reason": "", "message": "", "since": None}],
        kubelet_version="v1.37.2",
        updated=timezone.now(),
    )
    return node


def pod(of: Node, name: str, phase: str = "Running") -> Pod:
    return Pod.objects.create(
        cluster=of.cluster,
        uid=f"uid-{name}",
        namespace="shop",
        name=name,
        node_name=of.name,
        phase=phase,
        cpu_request=1.5,
        created=timezone.now(),
    )


def event(node: str, lab: Lab, reason: str, ago: int) -> None:
    ClusterEvent.objects.create(
        cluster=lab.cluster,
        uid=f"{node}-{reason}",
        kind="Node",
        name=node,
        node_name=node,
        warning=True,
        reason=reason,
        last=timezone.now() - timedelta(minutes=ago),
    )


def test_a_node_without_an_exporter_is_answered_with_nulls_and_the_remedy(get: Get, bare: Node) -> None:
    found = get(BARE)
    assert found["node"]["name"] == "bare"
    assert found["node"]["cpus"] is None
    assert found["node"]["last_seen"] is None
    assert found["node"]["state"] == "no-data"
    assert found["report"] is found["attributes"] is found["exporter"] is found["endpoint"] is None
    assert found["data"]["cause"] == "never-heard"
    assert "kubectl apply -f docs/kubernetes/numa-exporter.yaml" in found["data"]["remedy"]


@pytest.mark.parametrize("part", ["topology", "distances", "containers", "kubelet", "document"])
def test_what_only_an_exporter_tells_names_the_remedy(part: str, get: Get, bare: Node) -> None:
    problem = get(f"{BARE}{part}/", 404)
    assert "Let the DaemonSet of numa-exporter run there" in problem["detail"]


def test_the_rest_of_it_is_answered(get: Get, bare: Node) -> None:
    assert get(f"{BARE}events/")["results"] == []
    assert get(f"{BARE}history/")["series"] is not None
    assert "bare" in [each["name"] for each in get(f"{LAB}fleet/")["results"]]
    assert "bare" in [each["name"] for each in get(f"{LAB}nodes/?sort=-last_seen")["results"]]
    assert [
        each["node"] for each in get(f"{LAB}overview/")["attention"] if each["code"] == "node-unheard"
    ] == ["bare"]


def test_a_node_as_kubernetes_has_it(get: Get, bare: Node) -> None:
    found = get(f"{BARE}kubernetes/")
    assert found["labels"] == {"pool": "gold"}
    assert found["taints"] == [{"key": "gpu", "value": None, "effect": "NoSchedule"}]
    assert found["ready"] is None
    assert found["conditions"][0]["good"] is None
    assert found["kernel_version"] is None
    assert "connection/" in get(f"{LAB}nodes/worker-2/kubernetes/", 404)["detail"]


def test_sources_and_their_contradictions(get: Get, lab: Lab, bare: Node) -> None:
    values = {"topology_policy": "restricted"}
    SourceView.objects.create(node=lab.node, source="numatopology", changed=timezone.now(), values=values)
    found = get(f"{LAB}nodes/worker-1/sources/")
    assert found["contradictions"] == 1
    policy = next(each for each in found["results"] if each["fact"] == "topology_policy")
    assert policy["contradicted"] is True
    assert [(each["source"], each["value"]) for each in policy["told"]] == [
        ("exporter", "best-effort"),
        ("numatopology", "restricted"),
    ]
    assert {each["told"][0]["source"] for each in get(f"{BARE}sources/")["results"]} == {"api"}
    notes = [each for each in get(f"{LAB}overview/")["attention"] if each["code"] == "sources-contradict"]
    assert [each["node"] for each in notes] == ["worker-1"]


def test_pods_with_filters_and_pages(get: Get, lab: Lab, bare: Node) -> None:
    for number in range(5):
        pod(bare, f"web-{number}")
    pod(lab.node, "cart-1")
    pod(bare, "done-1", "Succeeded")
    found = get("pods/?told=false&phase=Running&sort=name&page_size=2&count=true")
    assert [each["name"] for each in found["results"]] == ["web-0", "web-1"]
    assert found["count"] == 5
    assert found["results"][0]["told"] is False
    assert found["results"][0]["memory_request"] is None
    second = get(found["next"])
    assert [each["name"] for each in second["results"]] == ["web-2", "web-3"]
    assert [each["name"] for each in get("pods/?told=true")["results"]] == ["cart-1"]
    assert get("pods/?fields=name,node&node=worker-1")["results"] == [{"name": "cart-1", "node": "worker-1"}]
    assert "told" in get("pods/?told=perhaps", 400)["errors"]
    assert get("pods/?nods=bare", 400)


def test_pods_that_did_not_change_are_not_sent_again(as_viewer: Client, bare: Node) -> None:
    pod(bare, "web-1")
    first = as_viewer.get(f"{LAB}pods/")
    assert as_viewer.get(f"{LAB}pods/", headers={"if-none-match": first["ETag"]}).status_code == 304
    Pod.objects.update(phase="Failed")
    assert as_viewer.get(f"{LAB}pods/", headers={"if-none-match": first["ETag"]}).status_code == 200


def test_events_of_the_cluster_and_of_a_node(get: Get, lab: Lab, bare: Node) -> None:
    event("bare", lab, "NodeNotReady", 2)
    event("worker-1", lab, "SystemOOM", 1)
    assert [each["reason"] for each in get("events/")["results"]] == ["SystemOOM", "NodeNotReady"]
    assert [each["reason"] for each in get(f"{BARE}cluster-events/")["results"]] == ["NodeNotReady"]
    assert get("events/?warning=false")["results"] == []


def test_how_the_connection_goes(get: Get, lab: Lab) -> None:
    assert get("connection/")["state"] == "none"
    right: dict[str, Any] = {
        "verb": "list",
        "group": "",
        "resource": "pods",
        "subresource": "",
        "why": "pods",
    }
    row = Connection.objects.create(
        cluster=lab.cluster,
        source="kubeconfig",
        kubeconfig="hush: hush",
        token="hush-token",
        exporter_token="hush-exporter",
        state="ok",
        version="v1.37.2",
        missing=[right],
    )
    WatchHealth.objects.create(
        connection=row, resource="pods", state="forbidden", since=timezone.now(), remedy="grant-right"
    )
    found = get("connection/")
    assert found["state"] == "partial"
    assert [each["right"] for each in found["missing"]] == ["list pods"]
    assert "Failures" in found["missing"][0]["text"]
    assert found["watches"][0]["state"] == "forbidden"
    assert "watcher.yaml" in found["watches"][0]["remedy"]
    assert "hush" not in str(found)
    Connection.objects.update(state="failing", error="Connection refused", remedy="check-api-server-runs")
    found = get("connection/")
    assert found["state"] == "failing"
    assert found["cause"] == "Connection refused"
    assert "Check that the API server runs" in found["remedy"]
