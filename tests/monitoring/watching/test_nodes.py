"""Nodes as the API server has them: new, changed, replaced under their name, gone, and met by an exporter before or after."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoCaptureOnCommitCallbacks

from monitoring import hot
from monitoring.hot.redisstore import RedisStore
from monitoring.kube.objects import Node as KubeNode
from monitoring.models import Cluster, Connection, Endpoint, KubernetesNode, Node, NodeEvent, WatchHealth
from monitoring.services import retiring
from monitoring.services.identity import Claim, Identity, identify
from monitoring.services.watching.nodes import NodeKeeper
from numacore.wire import Exporter
from tests.monitoring import hot_contract
from tests.monitoring.test_identity import machine
from tests.monitoring.watching import objects

pytestmark = pytest.mark.django_db
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(slug="lab", name="Lab", kind=Cluster.Kind.KUBERNETES)


@pytest.fixture
def keeper(cluster: Cluster) -> NodeKeeper:
    made = NodeKeeper(cluster.pk)
    made.now = START
    return made


def listed(keeper: NodeKeeper, *found: KubeNode) -> None:
    keeper.begin()
    keeper.put(found)
    keeper.end()


def all_told(cluster: Cluster) -> None:
    """As the watch of nodes notes it after its first whole list."""
    connection = Connection.objects.create(cluster=cluster)
    WatchHealth.objects.create(
        connection=connection, resource="nodes", state="watching", since=START, listed=START
    )


def heard(cluster: Cluster, node: str, uid: str = "m1", **endpoint: str) -> Identity:
    where, _ = Endpoint.objects.get_or_create(cluster=cluster, url=f"http://{node}:9117", defaults=endpoint)
    return identify([Claim(where.pk, cluster.pk, Exporter(node, uid, "b1", "0.1"), machine())], START)[0]


def codes(node: Node) -> list[str]:
    return list(NodeEvent.objects.filter(node=node).order_by("pk").values_list("code", flat=True))


def test_it_knows_a_node_that_no_exporter_told_of(keeper: NodeKeeper) -> None:
    listed(keeper, objects.node(labels={"zone": "a"}, spec={"unschedulable": True}))
    node = Node.objects.get()
    assert (node.uid, node.topology, node.slot, node.last_seen, node.numa_nodes) == (
        "u1",
        None,
        None,
        None,
        None,
    )
    told = node.kubernetes
    assert (told.kubelet_version, told.ready, told.unschedulable) == ("v1.37.2", True, True)
    assert (told.labels, told.allocatable["cpu"], told.address) == ({"zone": "a"}, "7500m", "10.0.0.1")


def test_a_node_whose_kubelet_is_silent_is_neither_ready_nor_not(keeper: NodeKeeper) -> None:
    listed(keeper, objects.node(ready="Unknown"))
    assert KubernetesNode.objects.get().ready is None


def test_a_change_is_written_and_a_heartbeat_is_not(keeper: NodeKeeper) -> None:
    listed(keeper, objects.node())
    with CaptureQueriesContext(
        database,
    ) as queries:
        keeper.put([objects.node()])
    assert len(queries) == 0
    keeper.put([objects.node(labels={"pool": "gpu"})])
    assert KubernetesNode.objects.get().labels == {"pool": "gpu"}


def test_a_new_uid_under_the_same_name_is_another_node(cluster: Cluster, keeper: NodeKeeper) -> None:
    listed(keeper, objects.node())
    first = Node.objects.get()
    endpoint = Endpoint.objects.create(cluster=cluster, url="http://n1:9117", node=first)
    keeper.put([objects.node(uid="u2")])
    second = Node.objects.get(gone_at=None)
    first.refresh_from_db()
    endpoint.refresh_from_db()
    assert (first.gone_at, second.uid, endpoint.node) == (START, "u2", None)
    assert codes(first) == ["first-seen", "replaced"]
    assert not KubernetesNode.objects.filter(node=first).exists()


def test_what_the_list_does_not_have_is_gone(keeper: NodeKeeper) -> None:
    listed(keeper, objects.node(), objects.node("n2", "u2"))
    listed(keeper, objects.node("n2", "u2"))
    assert [node.name for node in Node.objects.filter(gone_at=None)] == ["n2"]
    assert codes(Node.objects.get(name="n1")) == ["first-seen", "gone"]


def test_a_deleted_node_is_gone_and_its_return_is_noticed(keeper: NodeKeeper) -> None:
    listed(keeper, objects.node())
    keeper.drop([objects.node()])
    assert Node.objects.get().gone_at == START
    keeper.put([objects.node()])
    node = Node.objects.get()
    assert node.gone_at is None
    assert codes(node) == ["first-seen", "gone", "returned"]


def test_an_exporter_gives_a_known_node_its_numa_nodes(cluster: Cluster, keeper: NodeKeeper) -> None:
    listed(keeper, objects.node())
    found = heard(cluster, "n1")
    node = Node.objects.get()
    assert (found.node, found.slot, found.fresh, node.numa_nodes, node.uid) == (node.pk, 0, True, 2, "u1")
    assert codes(node) == ["first-seen", "heard"]
    assert heard(cluster, "n1").fresh is False


def test_a_node_that_its_exporter_told_first_keeps_its_history(cluster: Cluster, keeper: NodeKeeper) -> None:
    found = heard(cluster, "n1")
    listed(keeper, objects.node())
    node = Node.objects.get()
    assert (node.pk, node.uid, node.numa_nodes) == (found.node, "u1", 2)
    assert codes(node) == ["first-seen"]


def test_an_exporter_whose_node_the_api_server_lacks_speaks_for_nobody(
    cluster: Cluster, keeper: NodeKeeper
) -> None:
    listed(keeper, objects.node())
    all_told(cluster)
    found = heard(cluster, "elsewhere")
    assert (found.node, found.conflict) == (None, "the API server of this cluster has no node elsewhere")
    assert Endpoint.objects.get().remedy == "not-in-cluster"


def test_a_pod_speaks_only_for_the_node_that_it_runs_on(cluster: Cluster, keeper: NodeKeeper) -> None:
    listed(keeper, objects.node(), objects.node("n2", "u2"))
    found = heard(cluster, "n1", origin="pod", name="n2")
    assert found.conflict == "its pod runs on n2 and speaks for n1"


def test_nodes_of_an_api_server_are_not_retired_for_their_silence(
    cluster: Cluster, keeper: NodeKeeper
) -> None:
    listed(keeper, objects.node())
    heard(cluster, "n1")
    Node.objects.update(last_seen=START)
    assert retiring.silent(START + timedelta(days=3), 24) == 0


def test_the_newest_state_of_a_node_that_leaves_is_forgotten_once_that_is_sure(
    cluster: Cluster,
    keeper: NodeKeeper,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    listed(keeper, objects.node(), objects.node("n2", "u2"), objects.node("n3", "u3"))
    n1, n2, n3 = (Node.objects.get(name=name).pk for name in ("n1", "n2", "n3"))
    hot.store().put([hot_contract.state(each) for each in (n1, n2, n3)])
    with django_capture_on_commit_callbacks() as callbacks:
        keeper.drop([objects.node()])
        keeper.put([objects.node("n2", "another")])  # replaced under its name
    assert hot.store().get(n1) is not None  # a transaction that the lease refuses forgets nothing
    for each in callbacks:
        each()
    assert [hot.store().get(each) is None for each in (n1, n2, n3)] == [True, True, False]
    with django_capture_on_commit_callbacks(execute=True):
        listed(keeper)
    assert hot.store().get(n3) is None


def test_a_hot_store_that_is_away_keeps_no_node_from_leaving(
    cluster: Cluster,
    keeper: NodeKeeper,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    listed(keeper, objects.node())
    monkeypatch.setattr(hot, "store", lambda: RedisStore("redis://127.0.0.1:1/0"))
    with django_capture_on_commit_callbacks(execute=True):
        keeper.drop([objects.node()])
    assert Node.objects.get().gone_at == START


@pytest.mark.parametrize("count", [3, 300])
def test_many_nodes_cost_rows_and_not_queries(keeper: NodeKeeper, count: int) -> None:
    with CaptureQueriesContext(database) as queries:
        keeper.put([objects.node(f"n{i}", f"u{i}") for i in range(count)])
    assert len(queries) <= 25  # a batch is as large as SQLite takes
    assert KubernetesNode.objects.count() == count
