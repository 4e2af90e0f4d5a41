"""Which node speaks at an endpoint: new, known, replaced, renamed, returned, claimed twice."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitoring.models import Cluster, Container, Endpoint, Node, NodeEvent, Topology
from monitoring.services import planes
from monitoring.services.identity import Claim, Identity, identify
from numacore.cpuset import CpuSet
from numacore.topology import Attributes, Cpu, NumaNode
from numacore.topology import Topology as CoreTopology
from numacore.wire import Exporter, Machine

pytestmark = pytest.mark.django_db
START = datetime(2026, 1, 1, tzinfo=UTC)


def machine(numa: int = 2, memory: int = 1 << 30) -> Machine:
    cpus = tuple(Cpu(id=i, socket=i, core=0, numa=i) for i in range(numa))
    nodes = tuple(
        NumaNode(i, CpuSet([i]), tuple(10 if i == j else 20 for j in range(numa))) for i in range(numa)
    )
    return Machine(
        CoreTopology(cpus=cpus, nodes=nodes), Attributes(memory=dict.fromkeys(range(numa), memory))
    )


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(slug="lab", name="Lab")


@pytest.fixture
def endpoints(cluster: Cluster) -> list[Endpoint]:
    return [Endpoint.objects.create(cluster=cluster, url=f"http://node-{i}:9117") for i in range(3)]


def claim(
    endpoint: Endpoint, name: str, uid: str | None = "m1", boot: str = "b1", what: Machine | None = None
) -> Claim:
    return Claim(endpoint.pk, endpoint.cluster_id, Exporter(name, uid, boot, "0.1"), what or machine())


def one(given: Claim, now: datetime = START) -> Identity:
    return identify([given], now)[0]


def codes(node: int | None) -> list[str]:
    return list(NodeEvent.objects.filter(node=node).order_by("pk").values_list("code", flat=True))


def test_it_makes_a_node_that_is_new(endpoints: list[Endpoint]) -> None:
    found = one(claim(endpoints[0], "n1"))
    node = Node.objects.get()
    assert (found.node, found.fresh, node.name, node.uid, node.slot) == (node.pk, True, "n1", "m1", 0)
    assert node.attributes["memory"] == {"0": 1 << 30, "1": 1 << 30}
    assert codes(node.pk) == ["first-seen"]
    endpoints[0].refresh_from_db()
    assert (endpoints[0].node, endpoints[0].state) == (node, "ok")


def test_it_finds_a_node_again_without_noise(endpoints: list[Endpoint]) -> None:
    first = one(claim(endpoints[0], "n1"))
    again = one(claim(endpoints[0], "n1"))
    assert (again.node, again.fresh) == (first.node, False)
    assert codes(first.node) == ["first-seen"]


def test_it_gives_every_node_cells_of_its_own_and_topologies_once(
    endpoints: list[Endpoint], cluster: Cluster
) -> None:
    claims = [claim(each, f"n{i}", f"m{i}") for i, each in enumerate(endpoints)]
    assert [each.slot for each in identify(claims, START)] == [0, 2, 4]
    cluster.refresh_from_db()
    assert cluster.cells == 6
    assert Topology.objects.count() == 1


def test_it_sees_another_machine_under_the_same_name_as_another_node(endpoints: list[Endpoint]) -> None:
    old = one(claim(endpoints[0], "n1", "m1"))
    assert old.node is not None
    Container.objects.create(node_id=old.node, container_id="c", kubernetes=True, updated=START)
    new = one(claim(endpoints[0], "n1", "m2"), START + timedelta(minutes=1))
    assert new.node != old.node
    assert Node.objects.get(pk=old.node).gone_at == START + timedelta(minutes=1)
    assert codes(old.node) == ["first-seen", "replaced"]
    assert not Container.objects.exists()


def test_it_learns_the_machine_id_of_a_node_later(endpoints: list[Endpoint]) -> None:
    first = one(claim(endpoints[0], "n1", None))
    assert one(claim(endpoints[0], "n1", "m1")).node == first.node
    assert Node.objects.get().uid == "m1"


def test_it_follows_a_renamed_machine(endpoints: list[Endpoint]) -> None:
    old = one(claim(endpoints[0], "n1"))
    new = one(claim(endpoints[0], "n2"))
    assert new.node != old.node
    assert Node.objects.get(gone_at=None).name == "n2"


def test_it_welcomes_a_node_that_was_gone(endpoints: list[Endpoint]) -> None:
    old = one(claim(endpoints[0], "n1"))
    Node.objects.update(gone_at=START)
    assert one(claim(endpoints[0], "n1")).node == old.node
    assert Node.objects.get().gone_at is None
    assert codes(old.node) == ["first-seen", "returned"]


def test_it_refuses_the_second_exporter_of_a_name(endpoints: list[Endpoint]) -> None:
    one(claim(endpoints[0], "n1"))
    for uid in ("m1", "m2"):
        second = one(claim(endpoints[1], "n1", uid))
        assert second.node is None
        assert endpoints[0].url in second.conflict
    endpoints[1].refresh_from_db()
    assert (endpoints[1].node, endpoints[1].remedy) == (None, "remove-duplicate")


def test_it_refuses_a_machine_id_that_a_node_of_another_name_has(endpoints: list[Endpoint]) -> None:
    one(claim(endpoints[0], "n1"))
    second = one(claim(endpoints[1], "n2", "m1"))
    assert "machine-id" in second.conflict
    endpoints[1].refresh_from_db()
    assert endpoints[1].remedy == "renew-machine-id"


def test_it_refuses_it_within_one_batch_too(endpoints: list[Endpoint]) -> None:
    first, second = identify([claim(endpoints[0], "n1"), claim(endpoints[1], "n1")], START)
    assert first.node is not None
    assert second.node is None


@pytest.mark.parametrize("change", [{"state": "failing"}, {"enabled": False}])
def test_it_lets_another_exporter_take_over_from_one_that_is_dead(
    endpoints: list[Endpoint], change: dict[str, object]
) -> None:
    first = one(claim(endpoints[0], "n1"))
    Endpoint.objects.filter(pk=endpoints[0].pk).update(**change)
    assert one(claim(endpoints[1], "n1")).node == first.node


def test_it_ends_a_conflict_when_its_cause_is_gone(endpoints: list[Endpoint]) -> None:
    one(claim(endpoints[0], "n1"))
    one(claim(endpoints[1], "n1"))
    Endpoint.objects.filter(pk=endpoints[0].pk).delete()
    assert one(claim(endpoints[1], "n1")).node is not None
    endpoints[1].refresh_from_db()
    assert endpoints[1].conflict == ""


def test_it_lets_two_clusters_have_nodes_of_the_same_name(endpoints: list[Endpoint]) -> None:
    other = Cluster.objects.create(slug="other", name="Other")
    there = Endpoint.objects.create(cluster=other, url="http://node:9117")
    assert one(claim(endpoints[0], "n1")).node != one(claim(there, "n1")).node


def test_it_notes_a_reboot_and_a_changed_machine(endpoints: list[Endpoint]) -> None:
    first = one(claim(endpoints[0], "n1"))
    one(claim(endpoints[0], "n1", boot="b2"))
    one(claim(endpoints[0], "n1", boot="b2", what=machine(memory=2 << 30)))
    changed = one(claim(endpoints[0], "n1", boot="b2", what=machine(numa=4)))
    assert codes(first.node) == ["first-seen", "rebooted", "topology-changed"]
    node = Node.objects.select_related("topology").get()
    assert (node.topology.numa_nodes, node.slot, changed.slot, changed.fresh) == (4, 2, 2, True)
    assert node.attributes["memory"]["0"] == 1 << 30


def test_it_gives_the_cells_of_nodes_long_gone_to_new_ones(
    endpoints: list[Endpoint], cluster: Cluster
) -> None:
    one(claim(endpoints[0], "n1", "m1"))
    one(claim(endpoints[1], "n2", "m2"))
    Node.objects.filter(name="n1").update(gone_at=START)
    later = START + planes.REUSE_AFTER + timedelta(seconds=1)
    assert one(claim(endpoints[2], "n3", "m3"), later).slot == 0
    cluster.refresh_from_db()
    assert cluster.cells == 4


def test_it_survives_an_endpoint_that_was_removed_meanwhile(endpoints: list[Endpoint]) -> None:
    gone = claim(endpoints[0], "n1")
    Endpoint.objects.all().delete()
    assert one(gone).node is None


def many(cluster: Cluster, count: int, start: int = 0) -> list[Claim]:
    numbers = range(start, start + count)
    endpoints = [Endpoint.objects.create(cluster=cluster, url=f"http://n{i}") for i in numbers]
    return [claim(each, f"n{i}", f"m{i}") for i, each in zip(numbers, endpoints, strict=True)]


def questions(claims: list[Claim], now: datetime = START) -> int:
    """Queries that it takes to settle them; every claim gets its node."""
    with CaptureQueriesContext(connection) as asked:
        found = identify(claims, now)
    assert all(each.node is not None for each in found)
    return len(asked)


def test_it_asks_few_questions_however_many_nodes_arrive_at_once(cluster: Cluster) -> None:
    identify(many(cluster, 1), START)  # the first of its kind also makes the topology
    assert questions(many(cluster, 1, 1)) == questions(many(cluster, 20, 2))
    assert Node.objects.count() == 22
    slots = Node.objects.order_by("pk").values_list("slot", flat=True)
    assert list(slots) == [2 * i for i in range(22)]
    assert set(Endpoint.objects.values_list("node", "state")) == {
        (node, "ok") for node in Node.objects.values_list("pk", flat=True)
    }


def test_it_asks_few_questions_however_many_nodes_return_or_were_replaced(cluster: Cluster) -> None:
    claims = many(cluster, 44)
    identify(claims, START)
    Node.objects.filter(name__in=[f"n{i}" for i in range(22)]).update(gone_at=START)
    assert questions(claims[:2]) == questions(claims[2:22])
    others = [
        msgspec.structs.replace(each, exporter=Exporter(each.exporter.node, f"new-{i}", "b1", "0.1"))
        for i, each in enumerate(claims[22:])
    ]
    assert questions(others[:2]) == questions(others[2:])
    assert Node.objects.filter(gone_at=None).count() == 44
    assert set(NodeEvent.objects.values_list("code", flat=True)) == {"first-seen", "returned", "replaced"}


def test_it_asks_few_questions_about_nodes_that_it_knows(cluster: Cluster) -> None:
    claims = many(cluster, 30)
    identify(claims, START)
    assert questions([msgspec.structs.replace(each) for each in claims]) <= 6


def test_it_settles_a_swap_of_two_machines_in_one_round(endpoints: list[Endpoint]) -> None:
    identify([claim(endpoints[0], "n1", "m1"), claim(endpoints[1], "n2", "m2")], START)
    Endpoint.objects.update(state="failing")
    first, second = identify([claim(endpoints[0], "n2", "m1"), claim(endpoints[1], "n1", "m2")], START)
    now = Node.objects.filter(gone_at=None).order_by("name")
    assert [(node.name, node.uid, node.pk) for node in now] == [
        ("n1", "m2", second.node),
        ("n2", "m1", first.node),
    ]
    assert Node.objects.filter(gone_at=START).count() == 2
