"""What runs now and then: silent nodes leave, what is too old goes, and what administrators set counts."""

from datetime import UTC, datetime, timedelta

import pytest

from monitoring import hot, services
from monitoring.models import (
    Cluster,
    ClusterEvent,
    Connection,
    Container,
    Failure,
    HistoryChunk,
    KubernetesNode,
    Node,
    NodeEvent,
    Placement,
    Pod,
    Settings,
    SourceView,
    Topology,
)
from tests.monitoring import hot_contract

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def node() -> Node:
    cluster = Cluster.objects.create(slug="lab", name="Lab")
    topology = Topology.objects.create(hash="t", document=b"{}", cpus=2, numa_nodes=2, sockets=1)
    return Node.objects.create(
        cluster=cluster,
        name="n1",
        topology=topology,
        slot=0,
        first_seen=NOW,
        last_seen=NOW - timedelta(hours=23),
    )


def test_it_retires_a_node_that_was_silent_for_long(node: Node) -> None:
    Container.objects.create(node=node, container_id="c", kubernetes=True, updated=NOW)
    hot.store().put([hot_contract.state(node.pk)])
    services.forget(NOW)
    node.refresh_from_db()
    assert node.gone_at is None
    services.forget(NOW + timedelta(hours=2))
    node.refresh_from_db()
    assert node.gone_at == NOW + timedelta(hours=2)
    assert not Container.objects.exists()
    assert [event.code for event in NodeEvent.objects.all()] == ["gone"]
    assert hot.store().get(node.pk) is None


def test_it_keeps_things_as_long_as_administrators_want(node: Node) -> None:
    services.ensure_settings()
    Settings.objects.update(detail_hours=1, minute_days=2, quarter_days=3, placement_days=4, gone_hours=1000)
    moment = int(NOW.timestamp())
    ages = {10: (1800, 7200), 60: (86400, 3 * 86400), 900: (2 * 86400, 4 * 86400)}
    for step, (young, old) in ages.items():
        for age in (young, old):
            HistoryChunk.objects.create(node=node, resolution=step, start=moment - age, data=b"")
    for days in (1, 10):
        at = NOW - timedelta(days=days)
        NodeEvent.objects.create(node=node, at=at, code="rebooted")
        Placement.objects.create(node=node, since=at, until=at, hash="h", data=b"")
    Placement.objects.create(node=node, since=NOW - timedelta(days=90), hash="h", data=b"")
    services.forget(NOW)
    left = {(row.resolution, moment - row.start) for row in HistoryChunk.objects.all()}
    assert left == {(step, young) for step, (young, _) in ages.items()}
    assert NodeEvent.objects.count() == 1
    assert Placement.objects.count() == 2  # the one that still holds stays, however old


def test_a_state_that_came_back_after_its_node_left_is_forgotten(node: Node) -> None:
    Node.objects.update(gone_at=NOW - timedelta(hours=1))
    hot.store().put([hot_contract.state(node.pk)])
    services.forget(NOW)
    assert hot.store().get(node.pk) is None


def event(cluster: Cluster, uid: str, age: timedelta) -> None:
    ClusterEvent.objects.create(
        cluster=cluster, uid=uid, kind="Pod", name="p", warning=True, reason="OOMKilling", last=NOW - age
    )


def failure(cluster: Cluster, owner: str, age: timedelta) -> None:
    at = NOW - age
    Failure.objects.create(
        cluster=cluster,
        namespace="shop",
        owner_kind="Job",
        owner_name=owner,
        node_name=owner,
        reason="TopologyAffinityError",
        count=3,
        first=at,
        last=at,
    )


def test_events_and_failures_of_clusters_are_kept_as_long_as_administrators_want(node: Node) -> None:
    cluster = node.cluster
    Connection.objects.create(cluster=cluster)
    services.ensure_settings()
    Settings.objects.update(event_days=2, failure_days=5)
    for name, days in (("young", 1), ("middle", 3), ("old", 6)):
        event(cluster, name, timedelta(days=days))
        failure(cluster, name, timedelta(days=days))
    failure(cluster, "stays", timedelta(days=100))
    Pod.objects.create(
        cluster=cluster,
        uid="p",
        namespace="shop",
        name="p",
        owner_name="stays",
        owner_kind="Job",
        node_name="stays",
        phase="Failed",
        reason="TopologyAffinityError",
    )
    services.forget(NOW)
    assert set(ClusterEvent.objects.values_list("uid", flat=True)) == {"young"}
    assert set(Failure.objects.values_list("owner_name", flat=True)) == {"young", "middle", "stays"}


def told_by_api(cluster: Cluster, name: str) -> Node:
    node = Node.objects.create(cluster=cluster, name=name, uid=name, first_seen=NOW)
    KubernetesNode.objects.create(node=node, updated=NOW)
    SourceView.objects.create(node=node, source="configz", changed=NOW)
    Pod.objects.create(cluster=cluster, uid=name, namespace="shop", name=name)
    return node


def test_what_nobody_keeps_true_goes_with_its_connection_and_what_happened_stays(node: Node) -> None:
    kept = Cluster.objects.create(slug="kept", name="Kept")
    Connection.objects.create(cluster=kept, enabled=False)
    stays, leaves = told_by_api(kept, "stays"), told_by_api(node.cluster, "leaves")
    KubernetesNode.objects.create(node=node, updated=NOW)
    event(node.cluster, "e", timedelta(hours=1))
    services.forget(NOW)
    assert set(Pod.objects.values_list("name", flat=True)) == {"stays"}
    assert set(KubernetesNode.objects.values_list("node__name", flat=True)) == {"stays"}
    assert set(SourceView.objects.values_list("node__name", flat=True)) == {"stays"}
    leaves.refresh_from_db()
    node.refresh_from_db()
    stays.refresh_from_db()
    assert (leaves.gone_at, node.gone_at, stays.gone_at) == (NOW, None, None)
    assert ClusterEvent.objects.count() == 1
