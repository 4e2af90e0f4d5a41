"""The overview adds up what the nodes say, names what needs attention, and asks few questions for many nodes."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from monitoring import hot, selectors
from monitoring.hot import Cells, Note
from monitoring.models import Cluster, Container, Endpoint, Node, Topology
from tests.monitoring import hot_contract

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)


@pytest.fixture
def cluster() -> Cluster:
    Topology.objects.create(hash="t", document=b"{}", cpus=8, numa_nodes=2, sockets=1)
    return Cluster.objects.create(slug="lab", name="Lab", cells=6)


def node(cluster: Cluster, number: int, **known: Any) -> Node:
    return Node.objects.create(
        cluster=cluster,
        name=f"n{number}",
        uid=str(number),
        topology_id="t",
        slot=2 * number,
        first_seen=NOW,
        last_seen=NOW,
        **known,
    )


def heard(cluster: Cluster, *nodes: Node, age: float = 0.5) -> None:
    count = len(nodes)
    hot.store().put_cells(
        cluster.pk,
        0,
        Cells(
            time.time(),
            np.array([each.pk for each in nodes], "<i4").tobytes(),
            np.array([each.slot for each in nodes], "<u4").tobytes(),
            np.array([2] * count, "<u2").tobytes(),
            np.array([time.time() - age] * count, "<f8").tobytes(),
            bytes([100] * 2 * count),
            bytes([20] * 2 * count),
        ),
    )


def container(of: Node, number: int, **known: Any) -> Container:
    return Container.objects.create(
        node=of, container_id=f"c{number}", name=f"app-{number}", kubernetes=True, updated=NOW, **known
    )


def overview(cluster: Cluster) -> selectors.Overview:
    return selectors.overview(cluster, datetime.now(UTC))


def test_it_adds_up_what_is_known(cluster: Cluster) -> None:
    first = node(
        cluster, 0, cpus=8, busy=0.5, pinned=2, pinnable=6, memory_total=100, memory_used=50, containers=3
    )
    second = node(
        cluster, 1, cpus=24, busy=0.1, cpus_exclusive=4, cpus_shared=20, crossing=2, crossing_unknown=1
    )
    gone = node(cluster, 2, cpus=500, gone_at=NOW)
    heard(cluster, first, second, gone)
    totals = overview(cluster).totals
    assert (totals.nodes, totals.nodes_without_data, totals.numa_nodes) == (2, 0, 4)
    assert totals.busy == pytest.approx((0.5 * 8 + 0.1 * 24) / 32)
    assert (totals.cpus_total, totals.pinned, totals.pinnable, totals.containers) == (32, 2, 6, 3)
    assert (totals.memory_total, totals.memory_used, totals.crossing) == (100, 50, 2)
    assert totals.cpus["exclusive"] == 4


def test_it_leaves_unknown_sums_unknown(cluster: Cluster) -> None:
    node(cluster, 0)
    totals = overview(cluster).totals
    assert (totals.busy, totals.pinned, totals.memory_total, totals.cpus_idle) == (None, None, None, None)
    assert (totals.containers, totals.crossing, totals.exclusive_crossing, totals.cpus_total) == (None,) * 4
    assert set(totals.cpus.values()) == {None}


def test_of_no_node_there_is_nothing_and_of_nodes_without_an_exporter_nobody_knows(cluster: Cluster) -> None:
    totals = overview(cluster).totals
    assert (totals.nodes, totals.numa_nodes, totals.containers, totals.crossing, totals.cpus_total) == (
        0,
    ) * 5
    Node.objects.create(cluster=cluster, name="bare", first_seen=NOW)
    totals = overview(cluster).totals
    assert (totals.nodes, totals.nodes_without_data) == (1, 1)
    assert (totals.numa_nodes, totals.containers, totals.crossing, totals.cpus_total) == (None,) * 4


def test_it_says_which_nodes_have_no_data_or_old_data(cluster: Cluster) -> None:
    fresh, old, _ = (node(cluster, number) for number in range(3))
    heard(cluster, fresh)
    hot.store().put_cells(cluster.pk, 1, hot.store().cells(cluster.pk)[0])
    heard(cluster, old, age=60)
    hot.store().put_cells(cluster.pk, 0, hot.store().cells(cluster.pk)[0])
    found = overview(cluster)
    assert {tile.name: tile.state for tile in found.tiles} == {"n0": "ok", "n1": "stale", "n2": "no-data"}
    assert [(each.code, each.node) for each in found.attention] == [
        ("node-stale", "n1"),
        ("node-no-data", "n2"),
    ]
    assert found.totals.nodes_without_data == 2
    assert found.oldest_age is not None
    assert found.oldest_age < 3


def test_a_service_of_the_system_ranks_only_where_no_pod_pays(cluster: Cluster) -> None:
    one = node(cluster, 0)
    heard(cluster, one)
    container(one, 1, cost=9.0)
    Container.objects.update(kubernetes=False)
    assert [each.container_id for each in overview(cluster).worst] == ["c1"]
    container(one, 2, cost=1.2)
    assert [each.container_id for each in overview(cluster).worst] == ["c2"]


def test_it_lists_the_worst_and_what_crosses(cluster: Cluster) -> None:
    one = node(cluster, 0, crossing=2)
    heard(cluster, one)
    container(one, 1, cost=1.5, crossing=True, kind="exclusive", cross_memory=True)
    container(one, 2, cost=2.5, crossing=True, kind="narrowed", cross_cpu=True)
    container(one, 3, cost=1.0, crossing=False)
    container(one, 4, cost=None, crossing=None)
    found = overview(cluster)
    assert [each.container_id for each in found.worst] == ["c2", "c1"]
    assert [(each.level, each.container_id) for each in found.attention] == [
        ("warning", "c2"),
        ("danger", "c1"),
    ]
    assert found.totals.exclusive_crossing == 1


def test_it_tells_which_exporters_fail_and_why(cluster: Cluster) -> None:
    one = node(cluster, 0)
    heard(cluster, one)
    Endpoint.objects.create(cluster=cluster, url="http://a", state="ok", node=one)
    Endpoint.objects.create(
        cluster=cluster, url="http://b", state="failing", error="no route", remedy="check-network"
    )
    Endpoint.objects.create(
        cluster=cluster, url="http://c", state="ok", conflict="http://a speaks for n0 already"
    )
    Endpoint.objects.create(cluster=cluster, url="http://d", state="failing", error="off", enabled=False)
    found = overview(cluster)
    told = {each.values["url"]: (each.code, each.values["cause"]) for each in found.attention}
    assert told == {
        "http://b": ("endpoint-failing", "no route"),
        "http://c": ("endpoint-conflict", "http://a speaks for n0 already"),
    }
    exporter = next(each for each in found.components if each.name == "exporter")
    assert (exporter.state, exporter.values) == ("failing", {"ok": 1, "total": 3})


def test_it_counts_policies_and_shows_contradictions_and_problems(cluster: Cluster) -> None:
    nodes = [
        node(cluster, 0, topology_policy="none", contradictions=1),
        node(cluster, 1, topology_policy="none", problems=3),
        node(cluster, 2, topology_policy=""),
    ]
    heard(cluster, *nodes)
    found = overview(cluster)
    assert list(found.policies.items()) == [("none", 2), ("", 1)]
    assert [(each.code, each.node) for each in found.attention] == [
        ("policy-contradiction", "n0"),
        ("reader-problems", "n1"),
    ]


def test_it_shows_that_samples_were_dropped(cluster: Cluster) -> None:
    hot.store().count("samples_dropped", 7)
    assert [(each.code, each.values["count"]) for each in overview(cluster).attention] == [
        ("samples-dropped", 7)
    ]


def test_it_shows_how_prometheus_does(cluster: Cluster, settings: Settings) -> None:
    def state() -> str:
        return next(each.state for each in overview(cluster).components if each.name == "prometheus")

    assert state() == "absent"
    settings.NUMAWEB_PROMETHEUS_URL = "http://prometheus:9090"
    assert state() == "ok"
    hot.store().note("prometheus", Note(time.time(), False, "check-network", "no answer"))
    assert state() == "failing"


def test_it_asks_as_few_questions_for_many_nodes(
    cluster: Cluster, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    nodes = [node(cluster, number, crossing=1) for number in range(60)]
    for each in nodes:
        container(each, each.slot or 0, crossing=True, cost=2.0)
    heard(cluster, *nodes[:30])
    with django_assert_max_num_queries(14):
        found = overview(cluster)
    assert len(found.attention) == 50 + 30
    assert found.attention_total == 60 + 30


def test_it_finds_by_name_in_all_clusters(cluster: Cluster) -> None:
    one = node(cluster, 7)
    container(one, 1, namespace="orders", pod="postgres-0")
    assert [(hit.kind, hit.label) for hit in selectors.search("n7")] == [("node", "n7")]
    assert [hit.container_id for hit in selectors.search("postgres")] == ["c1"]
    assert [hit.kind for hit in selectors.search("lab")] == ["cluster"]
    assert selectors.search("a") == []
    assert selectors.search("a\0b") == []
    Node.objects.update(gone_at=NOW - timedelta(days=1))
    assert selectors.search("postgres") == []


def test_it_calls_no_node_stale_that_answers_though_its_copy_is_old(cluster: Cluster) -> None:
    one = node(cluster, 0)
    machine = b'{"topology":{"cpus":[{"id":0,"numa":0}],"nodes":[{"id":0,"cpus":"0"}]}}'
    old = hot_contract.state(one.pk, received=time.time() - 30)
    sections = {"machine": machine}
    hot.store().put([msgspec.structs.replace(old, sections=sections, before=None)])
    assert selectors.node_state(cluster, "n0", datetime.now(UTC)).stale
    heard(cluster, one)
    state = selectors.node_state(cluster, "n0", datetime.now(UTC))
    assert not state.stale
    assert state.age == pytest.approx(30, abs=5)
