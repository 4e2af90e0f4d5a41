"""Names and uids from the watcher's pods: in a few queries for many nodes, in none where nothing is missing."""

from datetime import UTC, datetime

import msgspec
import pytest
from pytest_django import DjangoAssertNumQueries

from monitoring import selectors
from monitoring.models import Cluster, Container, Node, Placement, Pod
from monitoring.services import recording, topologies
from numacore.facts import Facts
from numacore.report import node_report
from numacore.workload import Container as Seen
from tests.monitoring.pages import machines

pytestmark = pytest.mark.django_db
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(slug="lab", name="Lab")


def bare(of: Facts, uids: dict[str, str]) -> Facts:
    """A node that read no name: of its containers it knows ids, groups and the uids of their pods."""
    seen = tuple(
        msgspec.structs.replace(
            each,
            cgroup=f"/kubepods/{each.id}",
            pod_uid=uids.get(each.id),
            namespace=None,
            pod=None,
            name=None,
        )
        for each in of.containers
        if each.kubernetes
    )
    return msgspec.structs.replace(of, containers=seen, usage=None, rates=None)


def machine() -> Facts:
    return machines.server(machines.topology(sockets=2, numa=2, cores=4, threads=2))


def node(cluster: Cluster, name: str, facts: Facts) -> Node:
    (topology,) = topologies.store([facts.topology]).values()
    slot = Node.objects.count() * 4
    return Node.objects.create(
        cluster=cluster, name=name, topology=topology, slot=slot, first_seen=START, last_seen=START
    )


def pods(cluster: Cluster, on: str, seen: tuple[Seen, ...], uids: dict[str, str]) -> None:
    Pod.objects.bulk_create(
        Pod(
            cluster=cluster,
            uid=uids[each.id],
            kubelet_uid=uids[each.id],
            namespace="shop",
            name=f"{on}-pod-{place}",
            node_name=on,
            phase="Running",
            running={each.id: "main"},
        )
        for place, each in enumerate(seen)
        if each.id in uids
    )


def scene(cluster: Cluster, count: int) -> dict[int, Facts]:
    told = {}
    for number in range(count):
        facts = machine()
        uids = {
            each.id: f"{number}-{place}" for place, each in enumerate(facts.containers) if each.kubernetes
        }
        here = bare(facts, uids)
        row = node(cluster, f"n{number}", facts)
        pods(cluster, row.name, here.containers, uids)
        told[row.pk] = here
    return told


@pytest.mark.parametrize("count", [1, 16])
def test_any_number_of_nodes_costs_two_queries(
    cluster: Cluster, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    told = scene(cluster, count)
    with django_assert_num_queries(2):
        found = selectors.joined(told)
    assert found.keys() == told.keys()
    for facts in found.values():
        assert facts.containers
        assert {(each.namespace, each.name) for each in facts.containers} == {("shop", "main")}
        assert all(each.told_by_api == ("namespace", "pod", "name") for each in facts.containers)


def test_a_node_that_tells_everything_costs_no_query(
    cluster: Cluster, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    facts = machine()
    row = node(cluster, "n1", facts)
    with django_assert_num_queries(0):
        assert selectors.joined({row.pk: facts}) == {row.pk: facts}


def test_a_pod_of_another_node_or_cluster_names_nothing_here(cluster: Cluster) -> None:
    told = scene(cluster, 1)
    Pod.objects.update(node_name="elsewhere")
    assert selectors.joined(told) == told
    Pod.objects.update(node_name="n0", cluster=Cluster.objects.create(slug="other", name="Other"))
    assert selectors.joined(told) == told


def test_rows_of_containers_say_who_named_them_and_placements_stay_as_the_node_told(cluster: Cluster) -> None:
    ((number, told),) = scene(cluster, 1).items()
    (known,) = selectors.joined({number: told}).values()
    seen = recording.Observation(number, told, node_report(known), 0, START)
    recording.record([seen])
    assert set(Container.objects.values_list("namespace", "name", "told_by_api")) == {
        ("shop", "main", "namespace,pod,name")
    }
    recording.record([msgspec.structs.replace(seen, report=node_report(told))])
    assert set(Container.objects.values_list("namespace", "told_by_api")) == {("", "")}
    assert Placement.objects.count() == 1


def test_an_exporter_that_claims_to_be_joined_writes_no_nonsense(cluster: Cluster) -> None:
    facts = machine()
    claims = ("pod", "x" * 500, "name")
    told = msgspec.structs.replace(
        facts,
        containers=tuple(msgspec.structs.replace(each, told_by_api=claims) for each in facts.containers),
    )
    row = node(cluster, "n1", facts)
    recording.record([recording.Observation(row.pk, told, node_report(told), 0, START)])
    assert set(Container.objects.values_list("told_by_api", flat=True)) == {"pod,name"}
