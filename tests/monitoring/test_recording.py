"""A node's report becomes rows: its summary, its containers, and a placement whenever it changed."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from pytest_django import DjangoAssertNumQueries

from monitoring import selectors, services
from monitoring.models import Cluster, Container, Endpoint, Node, NodeEvent, Placement
from monitoring.services import recording, topologies
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.report import node_report
from tests.monitoring.pages import machines

pytestmark = pytest.mark.django_db
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def node() -> Node:
    cluster = Cluster.objects.create(slug="lab", name="Lab")
    (topology,) = topologies.store([facts().topology]).values()
    return Node.objects.create(
        cluster=cluster, name="n1", uid="m1", topology=topology, slot=0, first_seen=START, last_seen=START
    )


def facts() -> Facts:
    return machines.server(machines.topology(sockets=2, numa=2, cores=4, threads=2))


def seen(node: Node, what: Facts, at: datetime = START, **rest: object) -> recording.Observation:
    made = recording.Observation(node.pk, what, node_report(what), 2, at)
    return msgspec.structs.replace(made, **rest)


def test_it_writes_the_summary(node: Node) -> None:
    what = facts()
    report = node_report(what)
    services.record([seen(node, what)])
    node.refresh_from_db()
    assert node.containers == len(what.containers)
    assert node.crossing == report.crossing
    assert (node.pinned, node.pinnable) == (report.pinned, report.pinnable)
    assert node.problems == 2
    assert node.topology_policy == (report.policy.topology if report.policy else "")
    owners = [node.cpus_exclusive, node.cpus_reserved, node.cpus_shared, node.cpus_offline, node.cpus_unknown]
    assert sum(each or 0 for each in owners) == node.cpus


def test_it_writes_each_container_as_it_is(node: Node) -> None:
    what = facts()
    services.record([seen(node, what)])
    report = node_report(what)
    rows = {row.container_id: row for row in selectors.containers()}
    assert len(rows) == len(what.containers)
    for each in report.containers:
        row = rows[each.container.id]
        assert row.kind == (each.kind or "")
        assert row.locality == each.locality
        assert row.crossing == (None if each.cross is None else bool(each.cross))
        assert row.cpus == ("" if each.cpus is None else str(each.cpus))
        assert row.pinning == each.pinning.code


def test_it_writes_only_what_changed(node: Node, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    services.record([seen(node, facts())])
    written = Container.objects.values_list("container_id", "updated")
    later = START + timedelta(seconds=30)
    with django_assert_num_queries(5):  # savepoint, summary, containers, placement, release
        services.record([seen(node, facts(), later)])
    assert {at for _, at in written.all()} == {START}
    what = facts()
    moved = msgspec.structs.replace(what.containers[0], cpus=CpuSet([1]), exclusive=CpuSet())
    services.record(
        [seen(node, msgspec.structs.replace(what, containers=(moved, *what.containers[1:])), later)]
    )
    assert dict(written.all())[moved.id] == later
    assert sorted({at for _, at in written.all()}) == [START, later]


def test_it_removes_containers_that_ended(node: Node) -> None:
    what = facts()
    services.record([seen(node, what)])
    services.record([seen(node, msgspec.structs.replace(what, containers=what.containers[:1], usage=None))])
    assert [row.container_id for row in Container.objects.all()] == [what.containers[0].id]


def test_it_keeps_every_placement_with_its_span(node: Node) -> None:
    what = facts()
    fewer = msgspec.structs.replace(what, containers=what.containers[1:], usage=None)
    services.record([seen(node, what)])
    services.record([seen(node, what, START + timedelta(minutes=1))])
    services.record([seen(node, fewer, START + timedelta(minutes=2))])
    spans = [(row.since, row.until) for row in Placement.objects.order_by("since")]
    assert spans == [(START, START + timedelta(minutes=2)), (START + timedelta(minutes=2), None)]
    assert list(NodeEvent.objects.values_list("code", flat=True)) == ["placement-changed"]


def test_it_shows_the_last_placement_of_a_node_without_live_data(node: Node) -> None:
    what = facts()
    services.record([seen(node, what)])
    state = selectors.node_state(node.cluster, "n1", START + timedelta(hours=1))
    assert not state.live
    assert state.stale
    assert (state.age, state.cause) == (3600, "endpoint-missing")
    assert {each.id for each in state.facts.containers} == {each.id for each in what.containers}
    assert state.facts.topology == what.topology
    assert state.report.busy is None
    assert state.sections["containers"].source == "store"


def test_it_takes_names_that_no_database_likes(node: Node) -> None:
    what = facts()
    odd = msgspec.structs.replace(what.containers[0], name="a\0b", namespace="x" * 500)
    services.record([seen(node, msgspec.structs.replace(what, containers=(odd,), usage=None))])
    row = Container.objects.get()
    assert (row.name, len(row.namespace)) == ("a\ufffdb", 253)


def test_it_writes_what_moves_of_many_nodes_in_one_go(
    node: Node, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    endpoint = Endpoint.objects.create(cluster=node.cluster, url="http://n1", state="ok", node=node)
    later = START + timedelta(seconds=10)
    with django_assert_num_queries(4):
        recording.pulses([recording.Pulse(node.pk, endpoint.pk, 0.5, 123, later, -0.25)])
    node.refresh_from_db()
    endpoint.refresh_from_db()
    assert (node.busy, node.memory_used, node.last_seen) == (0.5, 123, later)
    assert (endpoint.last_ok, endpoint.skew) == (later, -0.25)


def test_it_ignores_a_node_that_left_meanwhile(node: Node) -> None:
    Node.objects.update(gone_at=START)
    services.record([seen(node, facts())])
    assert not Container.objects.exists()
