"""What runs now and then: silent nodes leave, what is too old goes, and what administrators set counts."""

from datetime import UTC, datetime, timedelta

import pytest

from monitoring import hot, services
from monitoring.models import Cluster, Container, HistoryChunk, Node, NodeEvent, Placement, Settings, Topology
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
