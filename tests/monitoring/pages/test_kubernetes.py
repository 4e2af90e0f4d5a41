"""What pages say of a cluster whose API server is read: nodes without an exporter, sources, events, pods, and the connection."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from monitoring import selectors
from monitoring.figures import connecting, sentences
from monitoring.kube import errors
from monitoring.models import (
    Cluster,
    ClusterEvent,
    Connection,
    Container,
    Endpoint,
    Node,
    NodeEvent,
    Pod,
    SourceView,
    WatchHealth,
)
from monitoring.selectors import kubernetes, reaching
from monitoring.services.watching import wanted
from tests.monitoring.pages import seeds
from tests.monitoring.pages.conftest import POSTGRES

BARE = "/c/east/nodes/bare/"
LIST_PODS = {"verb": "list", "group": "", "resource": "pods", "subresource": "", "why": "pods"}


def text(client: Client, path: str, **headers: str) -> str:
    """What a page says, without its marks."""
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, path
    plain = re.sub(r"<(script|svg|style)\b.*?</\1>", "", answer.content.decode(), flags=re.S)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", plain)))


def connected(cluster: Cluster, **known: Any) -> Connection:
    values = {
        "state": "ok",
        "source": "in-cluster",
        "version": "v1.37.2",
        "reached": "https://10.0.0.1:6443",
        **known,
    }
    return Connection.objects.create(cluster=cluster, **values)


def watched(of: Connection, resource: str, state: str = "watching", **known: Any) -> None:
    now = timezone.now()
    WatchHealth.objects.create(connection=of, resource=resource, state=state, since=now, **known)


def pod(cluster: Cluster, name: str, node: str, phase: str = "Running", **known: Any) -> Pod:
    values = {"namespace": "shop", "qos": "Burstable", "cpu_request": 1.5, "created": timezone.now(), **known}
    values.setdefault("kubelet_uid", f"uid-{name}")
    return Pod.objects.create(
        cluster=cluster, uid=f"uid-{name}", name=name, node_name=node, phase=phase, **values
    )


def event(cluster: Cluster, node: str, reason: str, ago: int = 0, **known: Any) -> ClusterEvent:
    values = {
        "kind": "Node",
        "name": node,
        "warning": True,
        "last": timezone.now() - timedelta(minutes=ago),
        **known,
    }
    return ClusterEvent.objects.create(
        cluster=cluster, uid=f"{reason}-{node}-{ago}", node_name=node, reason=reason, **values
    )


@pytest.fixture
def bare(east: Cluster) -> Node:
    """A node without an exporter, with pods, in a cluster that is read."""
    watched(connected(east), "nodes", objects_known=1)
    pod(east, "web-1", "bare")
    pod(east, "done-1", "bare", "Succeeded")
    return seeds.unheard(east, "bare")


# ---------------------------------------------------------------- a node without an exporter


def test_a_node_without_an_exporter_shows_what_kubernetes_says(bare: Node, as_viewer: Client) -> None:
    said = text(as_viewer, BARE)
    assert "No numa-exporter ever told of this node" in said
    for known in ("v1.37.2", "containerd://2.1.4", "openEuler 24.03", "pool=gold", "63500m", "KubeletReady"):
        assert known in said
    assert "ready" in said
    assert "MemoryPressure True" in said


def test_it_has_none_of_the_tabs_that_need_an_exporter(bare: Node, as_viewer: Client) -> None:
    page = as_viewer.get(BARE).content.decode()
    assert "?tab=" not in page
    assert as_viewer.get(f"{BARE}?tab=containers").status_code == 200


def test_its_pods_are_listed_with_an_unknown_placement(bare: Node, as_viewer: Client) -> None:
    said = text(as_viewer, BARE)
    assert re.search(r"web-1 shop .* Running Burstable 1\.5 unknown unknown", said)
    assert "done-1" not in said


def test_it_says_so_where_there_is_no_daemonset(bare: Node, as_viewer: Client) -> None:
    said = text(as_viewer, BARE)
    assert "No DaemonSet of this cluster runs numa-exporter" in said
    assert "kubectl apply -f docs/kubernetes/numa-exporter.yaml" in said


def test_it_tells_the_numbers_of_the_daemonset(bare: Node, as_viewer: Client) -> None:
    told = {"namespace": "numa", "name": "numa-exporter", "desired": 0, "ready": 0, "misscheduled": 0}
    Connection.objects.update(daemonsets=[told])
    said = text(as_viewer, BARE)
    assert "The DaemonSet numa/numa-exporter wants numa-exporter on 0 of 1 nodes; it is ready on 0." in said
    assert "It leaves nodes out" in said
    Connection.objects.update(daemonsets=[{**told, "desired": 1}])
    assert "look at why its pod on this one does not run" in text(as_viewer, BARE)


@pytest.mark.parametrize(
    ("taint", "named"),
    [
        ({"key": "gpu", "value": "a100", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "", "effect": "NoExecute"}, True),
        ({"key": "gpu", "value": "", "effect": "PreferNoSchedule"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}, False),
    ],
)
def test_it_names_taints_that_keep_an_exporter_away(
    taint: dict[str, str], named: bool, bare: Node, as_viewer: Client
) -> None:
    bare.kubernetes.taints = [taint]
    bare.kubernetes.save()
    assert ("pods that do not tolerate it stay away" in text(as_viewer, BARE)) is named


def test_it_names_the_exporter_that_does_not_answer(bare: Node, as_viewer: Client) -> None:
    Endpoint.objects.create(
        cluster=bare.cluster,
        url="http://10.0.0.9:9117",
        name="bare",
        state="failing",
        error="connection refused",
        remedy="check-exporter-runs",
    )
    said = text(as_viewer, BARE)
    assert "it does not answer: connection refused" in said
    assert "Check that numa-exporter runs on that node" in said


def test_it_says_which_rights_it_lacks(bare: Node, as_viewer: Client) -> None:
    sets = {"verb": "list", "group": "apps", "resource": "daemonsets", "subresource": "", "why": "exporters"}
    Connection.objects.update(missing=[LIST_PODS, sets])
    said = text(as_viewer, BARE)
    assert "Pods cannot be read, because these rights are missing: list pods." in said
    assert "list daemonsets.apps" in said
    assert "No DaemonSet of this cluster" not in said


@pytest.mark.parametrize("part", ["drawing.json", "document.json", "document.yaml"])
def test_what_only_an_exporter_tells_is_not_there_and_says_why(
    part: str, bare: Node, as_viewer: Client
) -> None:
    answer = as_viewer.get(f"{BARE}{part}")
    assert answer.status_code == 404
    assert as_viewer.get(f"{BARE}history.json?range=10m").status_code == 200


def test_lists_show_it_with_unknown_figures(bare: Node, as_viewer: Client) -> None:
    row = re.search(r"bare (.*?)no numa-exporter", text(as_viewer, "/c/east/monitoring/?name=bare&sort=name"))
    assert row is not None
    assert "unknown" in row[1]
    assert not re.search(r"\d", row[1])
    lines = as_viewer.get("/c/east/monitoring/nodes.csv?name=bare").getvalue().decode().splitlines()
    assert lines[1].split(",")[2:] == [""] * (len(lines[0].split(",")) - 2)
    assert "bare" in text(as_viewer, "/search/?q=bare")
    for column in ("last_seen", "-last_seen", "crossing", "-busy"):
        assert as_viewer.get(f"/c/east/monitoring/?sort={column}").status_code == 200


def test_no_live_connection_is_for_it(bare: Node) -> None:
    assert selectors.node_ids([("east", "bare"), ("east", "node-07")]).keys() == {("east", "node-07")}


@pytest.mark.parametrize(
    "path", ["/c/east/planner/", "/c/east/containers/", "/c/east/fleet.json", "/c/east/failures/"]
)
def test_it_is_in_nobodys_way(path: str, bare: Node, as_viewer: Client) -> None:
    assert as_viewer.get(path).status_code == 200


def test_the_page_is_the_full_one_after_the_first_answer(bare: Node, as_viewer: Client) -> None:
    known = Node.objects.get(name="solo")
    Node.objects.filter(pk=bare.pk).update(topology=known.topology, slot=100, last_seen=timezone.now())
    assert "?tab=topology" in as_viewer.get(BARE).content.decode()


# ---------------------------------------------------------------- the overview


def test_the_overview_counts_what_nobody_tells_of(bare: Node, as_viewer: Client) -> None:
    said = text(as_viewer, "/c/east/")
    assert "No numa-exporter on this node" in said
    assert "Running pods that no exporter tells of: 1" in said
    page = as_viewer.get("/c/east/").content.decode()
    assert "/c/east/pods/?told=false&amp;phase=Running" in page
    found = text(as_viewer, "/c/east/pods/?told=false&phase=Running")
    assert "web-1" in found
    assert "done-1" not in found


@pytest.mark.parametrize(
    ("known", "state", "words"),
    [
        ({}, "ok", "Kubernetes v1.37.2"),
        ({"missing": [LIST_PODS]}, "failing", "answers; 1 right is missing"),
        (
            {"state": "failing", "error": "Connection refused", "remedy": "check-api-server-runs"},
            "failing",
            "Connection refused Check that the API server runs",
        ),
        ({"enabled": False}, "absent", "switched off"),
        ({"state": "new"}, "absent", "does “manage.py watch” run?"),
    ],
)
def test_the_components_tell_how_the_connection_goes(
    known: dict[str, Any], state: str, words: str, east: Cluster, as_viewer: Client
) -> None:
    connected(east, **known)
    page = as_viewer.get("/c/east/").content.decode()
    line = re.search(r'<li[^>]*>(?:(?!</li>).)*connection/">Kubernetes</a>.*?</li>', page, re.S)
    assert line is not None
    assert f"nw-dot-{state}" in line[0]
    assert words in text(as_viewer, "/c/east/")


def test_a_cluster_without_a_connection_is_no_fault(east: Cluster, as_viewer: Client) -> None:
    assert "no connection" in text(as_viewer, "/c/east/")


def test_the_switcher_marks_a_cluster_that_does_not_answer(east: Cluster, as_viewer: Client) -> None:
    other = Cluster.objects.create(slug="west", name="West")
    mark = "The API server of this cluster does not answer"
    connected(other)
    assert mark not in text(as_viewer, "/c/east/monitoring/")
    Connection.objects.update(state="failing")
    assert f"West {mark}" in text(as_viewer, "/c/east/monitoring/")
    assert mark in text(as_viewer, "/clusters/")
    Connection.objects.update(enabled=False)
    assert mark not in text(as_viewer, "/c/east/monitoring/")


# ---------------------------------------------------------------- sources


def test_a_contradiction_is_named_on_the_tab_and_on_the_overview(east: Cluster, as_viewer: Client) -> None:
    node = Node.objects.get(name="node-07")
    seeds.in_kubernetes(node, kubelet_version="")
    own = node.topology_policy
    assert own
    values = {"topology_policy": "none" if own != "none" else "restricted", "distances": {"0": {"1": 21}}}
    SourceView.objects.create(node=node, source="numatopology", changed=timezone.now(), values=values)
    said = text(as_viewer, "/c/east/nodes/node-07/?tab=sources")
    assert "Numatopology (Volcano)" in said
    assert re.search(
        rf"Topology manager policy contradiction {own} believed {values['topology_policy']} says otherwise",
        said,
    )
    assert "In Kubernetes" in said
    overview = text(as_viewer, "/c/east/")
    assert "Sources contradict each other about the Topology manager policy" in overview
    assert f"The exporter says {own}, Numatopology (Volcano) says {values['topology_policy']}" in overview
    SourceView.objects.update(values={"topology_policy": own})
    assert "contradict" not in text(as_viewer, "/c/east/")
    assert "says otherwise" not in text(as_viewer, "/c/east/nodes/node-07/?tab=sources")


def test_only_a_node_of_kubernetes_has_the_tab(east: Cluster, as_viewer: Client) -> None:
    assert "?tab=sources" not in as_viewer.get("/c/east/nodes/node-07/").content.decode()
    seeds.in_kubernetes(Node.objects.get(name="node-07"))
    assert "?tab=sources" in as_viewer.get("/c/east/nodes/node-07/").content.decode()
    assert "No API server tells of this node" in text(as_viewer, "/c/east/nodes/solo/?tab=sources")


# ---------------------------------------------------------------- events


def test_events_of_numaweb_and_of_the_cluster_stand_in_one_row(east: Cluster, as_viewer: Client) -> None:
    node = Node.objects.get(name="node-07")
    now = timezone.now()
    NodeEvent.objects.create(node=node, at=now - timedelta(minutes=2), code="rebooted")
    event(east, "node-07", "NodeNotReady", ago=1, message="Node is not ready")
    event(east, "node-07", "Starting", ago=3)
    event(east, "solo", "SystemOOM")
    said = text(as_viewer, "/c/east/nodes/node-07/?tab=events")
    places = [said.index(word) for word in ("NodeNotReady", "numaweb ", "Starting")]
    assert said.index("Kubernetes") < places[0]
    assert (
        said.index("NodeNotReady")
        < said.rindex("numaweb", 0, said.index("Starting"))
        < said.index("Starting")
    )
    assert "SystemOOM" not in said


def test_events_come_in_pages(east: Cluster, as_viewer: Client) -> None:
    for ago in range(60):
        event(east, "node-07", f"Reason{ago:02}", ago=ago)
    first = text(as_viewer, "/c/east/nodes/node-07/?tab=events")
    second = text(as_viewer, "/c/east/nodes/node-07/?tab=events&page=2")
    assert "Reason49" in first
    assert "Reason50" not in first
    assert "Reason50" in second
    assert "Reason49" not in second


def test_a_container_shows_the_events_of_its_pod(east: Cluster, as_viewer: Client) -> None:
    uid = Container.objects.get(container_id=POSTGRES, node__name="node-07").pod_uid
    event(east, "node-07", "OOMKilling", kind="Pod", name="postgres-0", object_uid=uid, message="out of it")
    said = text(as_viewer, "/c/east/nodes/node-07/?tab=containers")
    assert re.search(r"Events of its pod: \S+ \S+ OOMKilling out of it", said)
    assert said.count("OOMKilling") == 1


def test_the_tab_names_the_missing_right(east: Cluster, as_viewer: Client) -> None:
    right = {"verb": "watch", "group": "", "resource": "events", "subresource": "", "why": "events"}
    connected(east, missing=[right])
    assert "these rights are missing: watch events" in text(as_viewer, "/c/east/nodes/node-07/?tab=events")


# ---------------------------------------------------------------- pods


def test_the_pods_page_tells_which_placements_nobody_knows(bare: Node, as_viewer: Client) -> None:
    uid = Container.objects.get(container_id=POSTGRES, node__name="node-07").pod_uid
    pod(bare.cluster, "cart-1", "node-07", kubelet_uid=uid)
    pod(bare.cluster, "late-1", "", "Pending")
    said = text(as_viewer, "/c/east/pods/")
    assert re.search(r"web-1 shop bare unknown No numa-exporter ever told of its node\. Running", said)
    assert re.search(r"cart-1 shop node-07 its containers Running", said)
    assert "late-1 shop not scheduled" in said
    told = text(as_viewer, "/c/east/pods/?told=true")
    assert "cart-1" in told
    assert "web-1" not in told
    lines = as_viewer.get("/c/east/pods/pods.csv?told=false&phase=Running").getvalue().decode().splitlines()
    assert len(lines) == 2
    assert "web-1" in lines[1]


def test_an_exporter_that_is_silent_for_long_tells_of_no_pod(bare: Node, as_viewer: Client) -> None:
    pod(bare.cluster, "cart-1", "node-07")
    Node.objects.filter(name="node-07").update(last_seen=timezone.now() - 2 * kubernetes.SILENT_AFTER)
    assert "cart-1" in text(as_viewer, "/c/east/pods/?told=false")


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (None, "This cluster has no connection to Kubernetes."),
        ({"missing": [LIST_PODS]}, "these rights: list pods"),
        ({"enabled": False}, "The connection to Kubernetes is switched off."),
        ({"state": "failing", "error": "no route"}, "The API server does not answer: no route"),
        ({}, "This cluster has no pod"),
    ],
)
def test_an_empty_list_of_pods_says_why(
    known: dict[str, Any] | None, words: str, east: Cluster, as_viewer: Client
) -> None:
    if known is not None:
        connected(east, **known)
    assert words in text(as_viewer, "/c/east/pods/")


# ---------------------------------------------------------------- the connection


def test_the_connection_page_tells_how_each_watch_goes(east: Cluster, as_viewer: Client) -> None:
    row = connected(
        east,
        missing=[LIST_PODS],
        daemonsets=[{"namespace": "numa", "name": "x", "desired": 4, "ready": 3, "misscheduled": 0}],
    )
    watched(row, "nodes", objects_known=12, listed=timezone.now())
    watched(row, "pods", "forbidden", error="pods is forbidden", remedy="grant-right", failures=3)
    watched(row, "events", "waiting", error="etcd is leaderless", remedy="see-api-server-log")
    watched(row, "numatopologies.nodeinfo.volcano.sh", "absent")
    said = text(as_viewer, "/c/east/connection/")
    assert "The API server answers, and not everything can be read. 1 right is missing." in said
    assert "list pods pods, refused ones among them" in said
    assert "No right to read them. Needed for: pods, refused ones among them" in said
    assert "etcd is leaderless Look at the API server's log" in said
    assert "This cluster has no such objects, which is no fault." in said
    assert "numa/x: ready on 3 of 4 wanted nodes" in said


def test_no_page_shows_what_a_cluster_is_reached_with(east: Cluster, as_administrator: Client) -> None:
    connected(
        east,
        source="kubeconfig",
        kubeconfig="apiVersion: hush-hush",
        token="hush-token",
        exporter_token="hush-x",
    )
    for path in ("/c/east/", "/c/east/connection/", "/api/v1/clusters/east/connection/"):
        assert "hush" not in as_administrator.get(path).content.decode()


def test_who_may_change_it_is_led_there_and_others_are_told_the_role(
    east: Cluster, as_viewer: Client, as_administrator: Client
) -> None:
    assert (
        f"/admin/monitoring/connection/add/?cluster={east.pk}"
        in as_administrator.get("/c/east/connection/").content.decode()
    )
    page = as_viewer.get("/c/east/connection/").content.decode()
    assert "/admin/" not in page
    assert "This needs the role “administrator”." in html.unescape(page)


def test_every_remedy_and_every_need_has_a_sentence() -> None:
    for code in (*errors.REMEDIES, reaching.CREDENTIALS, reaching.SEALED):
        assert sentences.remedy(code), code
    for right in wanted.RIGHTS:
        assert connecting.why(right.why) != right.why
    assert {each.name for each in wanted.RESOURCES} == connecting.OBJECTS.keys()


@pytest.mark.parametrize(
    "path", [BARE, "/c/east/connection/", "/c/east/pods/", "/c/east/nodes/node-07/?tab=sources"]
)
def test_it_is_said_in_chinese_too(path: str, bare: Node, as_viewer: Client) -> None:
    as_viewer.cookies["django_language"] = "zh-hans"
    said = text(as_viewer, path, **{"accept-language": "zh-hans"})
    for english in (
        "Kubernetes says",
        "In Kubernetes",
        "Who says what",
        "How to get an exporter",
        "What is read",
        "Placement",
    ):
        assert english not in said


def test_many_nodes_without_an_exporter_are_one_line_of_the_overview(
    east: Cluster, as_viewer: Client
) -> None:
    for number in range(4):
        seeds.unheard(east, f"bare-{number}")
    said = text(as_viewer, "/c/east/")
    assert "Nodes without a numa-exporter: 4" in said
    assert "No numa-exporter on this node" not in said
