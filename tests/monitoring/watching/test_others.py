"""Events, DaemonSets of exporters, and what custom resources say of a node."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from monitoring.kube import resources
from monitoring.kube.objects import NodeResourceTopology, Numatopology
from monitoring.models import Cluster, ClusterEvent, Connection, Node, SourceView
from monitoring.services.watching import told
from monitoring.services.watching.daemonsets import DaemonSetKeeper
from monitoring.services.watching.events import EventKeeper
from monitoring.services.watching.nodes import NodeKeeper
from monitoring.services.watching.views import ViewKeeper
from tests.monitoring.watching import objects

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(slug="lab", name="Lab")


def numatopology(name: str = "n1", policy: str = "single-numa-node", **spec: Any) -> Numatopology:
    document = {
        "metadata": {"name": name, "uid": f"u-{name}"},
        "spec": {
            "policies": {"TopologyManagerPolicy": policy, "CPUManagerPolicy": "static"},
            "resReserved": {"cpu": "500m"},
            "numares": {"cpu": {"allocatable": "0-1,3", "capacity": 4}},
            "cpuDetail": {"0": {}, "1": {"core": 1}, "2": {"numa": 1, "socket": 1}, "3": {"numa": 1}},
            **spec,
        },
    }
    return resources.NUMATOPOLOGIES.decode(msgspec.Raw(json.dumps(document).encode()))


def topology(**more: Any) -> NodeResourceTopology:
    zone = {
        "name": "node-0",
        "type": "Node",
        "costs": [{"name": "node-0", "value": 10}, {"name": "node-1", "value": 21}],
        "resources": [
            {"name": "cpu", "capacity": 16, "allocatable": "15500m", "available": "3"},
            {"name": "memory", "capacity": "64Gi", "available": "many"},
        ],
    }
    document = {"metadata": {"name": "n1", "uid": "x"}, "zones": [zone, {"name": "cache-3"}], **more}
    return resources.NRT_ALPHA2.decode(msgspec.Raw(json.dumps(document).encode()))


# ---------------------------------------------------------------- what they say


def test_it_reads_a_numatopology_in_which_zeros_are_left_out() -> None:
    assert told.numatopology(numatopology()) == {
        "topology_policy": "single-numa-node",
        "cpu_policy": "static",
        "reserved_cpus": 0.5,
        "cpus": {"0": "0-1", "1": "2-3"},
        "free_cpus": "0-1,3",
    }


@pytest.mark.parametrize(("allocations", "pods"), [([], 0), ([{"uid": "a"}], 1), (None, None)])
def test_it_tells_no_allocations_from_allocations_that_are_not_told(
    allocations: list[dict[str, str]] | None, pods: int | None
) -> None:
    spec: dict[str, Any] = {} if allocations is None else {"podAllocations": allocations}
    assert told.numatopology(numatopology(**spec)).get("pods") == pods


def test_it_reads_the_newer_form_of_a_resource_topology() -> None:
    said = [
        {"name": "topologyManagerPolicy", "value": "restricted"},
        {"name": "topologyManagerScope", "value": "pod"},
    ]
    assert told.resource_topology(topology(attributes=said)) == {
        "topology_policy": "restricted",
        "topology_scope": "pod",
        "distances": {"0": {"0": 10, "1": 21}},
        "cpu_capacity": {"0": 16.0},
        "cpu_allocatable": {"0": 15.5},
        "cpu_available": {"0": 3.0},
        "memory_capacity": {"0": float(64 << 30)},
    }


@pytest.mark.parametrize(
    ("said", "policy", "scope"),
    [
        ("SingleNUMANodePodLevel", "single-numa-node", "pod"),
        ("SingleNUMANodeContainerLevel", "single-numa-node", "container"),
        ("BestEffortContainerLevel", "best-effort", "container"),
        ("Restricted", "restricted", None),
        ("Inventive", None, None),
    ],
)
def test_it_reads_the_older_form_of_its_policy(said: str, policy: str | None, scope: str | None) -> None:
    found = told.resource_topology(topology(topologyPolicies=[said]))
    assert (found.get("topology_policy"), found.get("topology_scope")) == (policy, scope)


# ---------------------------------------------------------------- what is kept of it


def views(cluster: Cluster) -> ViewKeeper[Numatopology]:
    made: ViewKeeper[Numatopology] = ViewKeeper(cluster.pk, "numatopology", "v1alpha1", told.numatopology)
    made.now = START
    made.begin()
    return made


def test_a_view_stands_beside_its_node_and_goes_with_its_object(cluster: Cluster) -> None:
    node = Node.objects.create(cluster=cluster, name="n1", uid="u1", first_seen=START)
    keeper = views(cluster)
    keeper.put([numatopology(), numatopology("nowhere")])
    view = SourceView.objects.get()
    assert (view.node, view.version, view.values["topology_policy"]) == (node, "v1alpha1", "single-numa-node")
    keeper.put([numatopology(policy="none")])
    assert SourceView.objects.get().values["topology_policy"] == "none"
    keeper.drop([numatopology()])
    assert not SourceView.objects.exists()


def test_a_view_waits_for_its_node(cluster: Cluster) -> None:
    keeper = views(cluster)
    keeper.put([numatopology()])
    Node.objects.create(cluster=cluster, name="n1", uid="u1", first_seen=START)
    keeper.put([numatopology("other")])
    assert SourceView.objects.get().node.name == "n1"


def test_a_view_is_of_the_node_that_has_the_name_now(cluster: Cluster) -> None:
    """A custom resource outlives the Node object that it is named after, and nobody tells of it again."""
    old = Node.objects.create(cluster=cluster, name="n1", uid="u1", first_seen=START)
    keeper = views(cluster)
    keeper.put([numatopology(), numatopology("late")])
    Node.objects.filter(pk=old.pk).update(gone_at=START)
    nodes = NodeKeeper(cluster.pk, keeper.arrived)
    nodes.now = START
    nodes.begin()
    nodes.put(
        [objects.node("n1", uid="u2"), objects.node("late", uid="uid-late"), objects.node("silent", uid="u3")]
    )
    current = SourceView.objects.filter(node__gone_at=None)
    assert sorted(current.values_list("node__name", "node__uid")) == [("late", "uid-late"), ("n1", "u2")]


def test_what_was_withdrawn_while_it_waited_for_its_node_does_not_come(cluster: Cluster) -> None:
    keeper = views(cluster)
    keeper.put([numatopology()])
    keeper.begin()
    keeper.end()
    Node.objects.create(cluster=cluster, name="n1", uid="u1", first_seen=START)
    keeper.arrived(["n1"], START)
    assert not SourceView.objects.exists()


def test_views_of_an_earlier_watcher_go_when_the_list_lacks_them(cluster: Cluster) -> None:
    Node.objects.create(cluster=cluster, name="n1", uid="u1", first_seen=START)
    views(cluster).put([numatopology()])
    later = views(cluster)
    later.end()
    assert not SourceView.objects.exists()


def test_only_events_about_placement_are_kept_and_they_stay(cluster: Cluster) -> None:
    keeper = EventKeeper(cluster.pk)
    keeper.now = START
    scarce = "0/4 nodes are unavailable: 1 numa info is empty, 2 Insufficient cpu."
    found = [
        objects.event(
            "TopologyAffinityError", uid="e1", source={"component": "kubelet", "host": "n1"}, count=7
        ),
        objects.event("FailedScheduling", uid="e2", message=scarce),
        objects.event("FailedScheduling", uid="e3", message="0/4 nodes: 4 node(s) had untolerated taint"),
        objects.event("Pulled", uid="e4"),
        objects.event("Rebooted", "Node", uid="e5", name="n2"),
        objects.event("Pulled", "Node", uid="e6", name="n2"),
    ]
    keeper.put(found)
    keeper.end()
    kept = ClusterEvent.objects.order_by("uid")
    assert [(row.uid, row.node_name, row.count) for row in kept] == [
        ("e1", "n1", 7),
        ("e2", "", 1),
        ("e5", "n2", 1),
    ]
    keeper.drop(found)
    assert ClusterEvent.objects.count() == 3


def test_it_keeps_the_newest_count_of_an_event(cluster: Cluster) -> None:
    keeper = EventKeeper(cluster.pk)
    keeper.now = START
    for count in (1, 12):
        keeper.put([objects.event("TopologyAffinityError", count=count)])
    assert ClusterEvent.objects.get().count == 12


def test_it_knows_on_how_many_nodes_exporters_should_be(cluster: Cluster) -> None:
    connection = Connection.objects.create(cluster=cluster)
    keeper = DaemonSetKeeper(connection.pk)
    keeper.begin()
    keeper.put([objects.daemonset(), objects.daemonset("d2", label="else")])
    connection.refresh_from_db()
    assert connection.daemonsets == [
        {"namespace": "numaweb", "name": "numa-exporter", "desired": 4, "ready": 3, "misscheduled": 0}
    ]
    keeper.begin()
    keeper.end()
    connection.refresh_from_db()
    assert connection.daemonsets == []
