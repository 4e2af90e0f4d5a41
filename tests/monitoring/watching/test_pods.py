"""The table of pods, refusals counted once and explained, exporters found by their pods."""

from datetime import UTC, datetime

import pytest

from monitoring.models import Cluster, Connection, Endpoint, Failure, Pod
from monitoring.services.watching import rows
from monitoring.services.watching.exporters import Exporters
from monitoring.services.watching.failures import Failures
from monitoring.services.watching.pods import PodKeeper
from tests.monitoring import planned
from tests.monitoring.pages import seeds
from tests.monitoring.watching import objects
from tests.monitoring.watching.objects import container, exporter, pod, refused

pytestmark = pytest.mark.django_db
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def cluster() -> Cluster:
    return planned.cluster()


def keeper_of(cluster: Cluster, **connection: object) -> PodKeeper:
    row, _ = Connection.objects.update_or_create(cluster=cluster, defaults=connection)
    made = PodKeeper(cluster.pk, Failures(cluster), Exporters(row))
    made.now = START
    made.begin()
    return made


def test_it_keeps_the_moment_and_what_changes(cluster: Cluster) -> None:
    keeper = keeper_of(cluster)
    keeper.put([pod(meta={"creationTimestamp": "2026-02-03T04:05:06Z"})])
    before = Pod.objects.get()
    assert before.created == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    keeper.put([pod(meta={"creationTimestamp": "2026-02-03T04:05:06Z"}, status={"phase": "Failed"})])
    after = Pod.objects.get()
    assert (after.pk, after.created, after.phase) == (before.pk, before.created, "Failed")


def test_it_keeps_what_a_pod_asks_for(cluster: Cluster) -> None:
    sidecar = container("500m", "1Gi", name="proxy", restartPolicy="Always")
    setup = container("4", "512Mi", name="setup")
    keeper_of(cluster).put([pod(spec={"initContainers": [setup, sidecar], "overhead": {"cpu": "250m"}})])
    row = Pod.objects.get()
    assert (row.namespace, row.name, row.node_name, row.phase, row.qos) == (
        "shop",
        "p1",
        "n1",
        "Running",
        "Guaranteed",
    )
    assert (row.cpu_request, row.cpu_limit) == (4.25, 4.0)
    assert row.memory_request == 2 << 30
    assert [each["name"] for each in row.resources["initContainers"]] == ["setup", "proxy"]


def test_a_limit_that_one_container_lacks_is_unknown(cluster: Cluster) -> None:
    bare = {"name": "bare", "resources": {"requests": {"cpu": "1"}}}
    keeper_of(cluster).put([pod(spec={"containers": [container(), bare]})])
    row = Pod.objects.get()
    assert (row.cpu_request, row.cpu_limit, row.memory_limit) == (3.0, None, None)


def test_a_quantity_that_is_none_is_unknown_and_not_zero(cluster: Cluster) -> None:
    keeper_of(cluster).put([pod(spec={"containers": [container(cpu="many")]})])
    assert (Pod.objects.get().cpu_request, Pod.objects.get().memory_request) == (None, 1 << 30)


@pytest.mark.parametrize(
    ("kind", "name", "labels", "owner"),
    [
        ("ReplicaSet", "web-5f7", {"pod-template-hash": "5f7"}, ("Deployment", "web")),
        ("ReplicaSet", "web-5f7", {}, ("ReplicaSet", "web-5f7")),
        ("Job", "nightly-29412345", {}, ("CronJob", "nightly")),
        ("Job", "once-7", {}, ("Job", "once-7")),
        ("StatefulSet", "db", {}, ("StatefulSet", "db")),
    ],
)
def test_a_person_knows_the_owner_above(
    kind: str, name: str, labels: dict[str, str], owner: tuple[str, str]
) -> None:
    made_by = [{"kind": kind, "name": name, "uid": "o", "controller": True}]
    assert rows.owner_of(pod(meta={"ownerReferences": made_by, "labels": labels}).metadata) == owner


def test_what_the_list_does_not_have_is_gone_even_after_a_restart(cluster: Cluster) -> None:
    keeper_of(cluster).put([pod(), pod("p2", "p-u2")])
    later = keeper_of(cluster)
    later.put([pod("p2", "p-u2")])
    later.end()
    assert [row.name for row in Pod.objects.all()] == ["p2"]
    later.drop([pod("p2", "p-u2")])
    assert not Pod.objects.exists()


def test_a_burning_deployment_is_one_line_with_a_count(cluster: Cluster) -> None:
    keeper = keeper_of(cluster)
    keeper.put([refused(f"web-5f7-{i}", f"r{i}") for i in range(40)])
    keeper.put([refused("web-5f7-40", "r40"), refused("web-5f7-3", "r3")])
    line = Failure.objects.get()
    assert (line.owner_kind, line.owner_name, line.node_name, line.count) == ("Deployment", "web", "n1", 41)
    assert line.last_pod == "web-5f7-40"


def test_a_refusal_that_an_earlier_watcher_saw_is_not_counted_again(cluster: Cluster) -> None:
    keeper_of(cluster).put([refused("web-5f7-1", "r1")])
    later = keeper_of(cluster)
    later.put([refused("web-5f7-1", "r1"), refused("web-5f7-2", "r2")])
    assert Failure.objects.get().count == 2


@pytest.mark.parametrize(
    ("reason", "counted"),
    [
        ("SMTAlignmentError", True),
        ("OutOfcpu", True),
        ("UnexpectedAdmissionError", True),
        ("Evicted", False),
        ("", False),
    ],
)
def test_only_refusals_of_a_kubelet_are_failures(cluster: Cluster, reason: str, counted: bool) -> None:
    keeper_of(cluster).put([refused("web-5f7-1", "r1", reason)])
    assert Failure.objects.exists() is counted


def test_a_refusal_is_explained_from_the_state_of_its_node(cluster: Cluster) -> None:
    wide = {"containers": [container(cpu="5")], "nodeName": "strict"}
    keeper_of(cluster).put([refused("web-5f7-1", "r1", spec=wide)])
    line = Failure.objects.get()
    assert line.verdict is not None
    assert (line.verdict["state"], line.obstacle) == ("refused", "")
    assert line.verdict["why"]
    assert any(fit["kind"] == "request" and fit["value"] == "4" for fit in line.verdict["advice"])


@pytest.mark.parametrize(
    ("node", "obstacle"), [("silent", "no-state"), ("nowhere", "no-node"), ("blind", "unjudged")]
)
def test_it_says_why_nobody_can_explain(cluster: Cluster, node: str, obstacle: str) -> None:
    keeper_of(cluster).put([refused("web-5f7-1", "r1", spec={"nodeName": node})])
    line = Failure.objects.get()
    assert (line.verdict, line.obstacle) == (None, obstacle)


def test_a_node_that_only_kubernetes_knows_has_no_exporter_and_no_silent_one(cluster: Cluster) -> None:
    seeds.unheard(cluster, "bare")
    keeper_of(cluster).put([refused("web-5f7-1", "r1", spec={"nodeName": "bare"})])
    assert Failure.objects.get().obstacle == "no-node"


def test_exporters_are_found_by_their_pods_and_go_with_them(cluster: Cluster) -> None:
    keeper = keeper_of(cluster)
    keeper.put([exporter("a", "n1", "10.0.0.1"), exporter("b", "n2", "fd00::2"), pod()])
    found = {(row.url, row.name) for row in Endpoint.objects.filter(origin="pod")}
    assert found == {("http://10.0.0.1:9117", "n1"), ("http://[fd00::2]:9117", "n2")}
    keeper.end()
    keeper.drop([exporter("b", "n2", "fd00::2")])
    keeper.put([exporter("a", "n1", "10.0.0.9")])
    assert [row.url for row in Endpoint.objects.filter(origin="pod")] == ["http://10.0.0.9:9117"]


def test_endpoints_that_people_entered_stay(cluster: Cluster) -> None:
    Endpoint.objects.create(cluster=cluster, url="http://given:9117")
    keeper = keeper_of(cluster)
    keeper.put([exporter("a", "n1", "10.0.0.1")])
    keeper.end()
    assert Endpoint.objects.filter(url="http://given:9117", origin="given").exists()


def test_what_a_person_entered_for_a_pods_address_is_left_alone(cluster: Cluster) -> None:
    entered = {"url": "http://10.0.0.1:9117", "token": "theirs", "name": "by hand"}
    Endpoint.objects.create(cluster=cluster, **entered)
    keeper = keeper_of(cluster)
    keeper.put([exporter("a", "n1", "10.0.0.1")])
    keeper.end()
    keeper.drop([exporter("a", "n1", "10.0.0.1")])
    row = Endpoint.objects.get(url=entered["url"])
    assert (row.token, row.name, row.origin) == ("theirs", "by hand", "given")


def test_a_new_token_reaches_the_endpoints_that_are_there(cluster: Cluster) -> None:
    keeper_of(cluster, exporter_namespace="numaweb").put([exporter("a", "n1", "10.0.0.1")])
    keeper_of(cluster, exporter_token="new").put([exporter("a", "n1", "10.0.0.1")])
    assert Endpoint.objects.get(origin="pod").token == "new"


@pytest.mark.parametrize("status", [{"phase": "Pending"}, {"podIP": ""}])
def test_a_pod_that_does_not_run_is_no_exporter(cluster: Cluster, status: dict[str, str]) -> None:
    keeper_of(cluster).put([objects.pod(meta={"labels": {"app": "numa-exporter"}}, status=status)])
    assert not Endpoint.objects.filter(origin="pod").exists()


def test_the_token_goes_to_pods_of_the_chosen_namespace_only(cluster: Cluster) -> None:
    keeper = keeper_of(cluster, exporter_token="secret", exporter_namespace="numaweb")
    keeper.put([exporter("a", "n1", "10.0.0.1"), exporter("x", "n2", "10.0.0.66", namespace="tenant")])
    assert [(row.url, row.token) for row in Endpoint.objects.filter(origin="pod")] == [
        ("http://10.0.0.1:9117", "secret")
    ]
    anywhere = keeper_of(cluster, exporter_token="secret", exporter_namespace="")
    anywhere.put([exporter("x", "n2", "10.0.0.66", namespace="tenant")])
    assert Endpoint.objects.get(url="http://10.0.0.66:9117").token == ""


# ---------------------------------------------------------------- what joins a pod with its containers

HASH = "0123456789abcdef0123456789abcdef"
OF_NODE = [{"kind": "Node", "name": "n1", "uid": "u1", "controller": True}]


@pytest.mark.parametrize(
    ("meta", "uid"),
    [
        ({}, "p-u1"),
        ({"annotations": {rows.MIRRORED: HASH}, "ownerReferences": OF_NODE}, HASH),
        ({"annotations": {rows.MIRRORED: HASH}}, "p-u1"),
        ({"annotations": {rows.MIRRORED: "uid-of-another-pod"}, "ownerReferences": OF_NODE}, "p-u1"),
    ],
)
def test_a_static_pod_is_known_by_the_uid_of_its_kubelet_and_nobody_passes_for_another(
    cluster: Cluster, meta: dict[str, object], uid: str
) -> None:
    keeper_of(cluster).put([pod(meta=meta)])
    assert Pod.objects.get().kubelet_uid == uid


def running(name: str, identifier: str, state: str = "running") -> dict[str, object]:
    return {"name": name, "containerID": f"containerd://{identifier}", "state": {state: {}}}


def test_it_keeps_which_containers_run(cluster: Cluster) -> None:
    told = [running("main", "a" * 64), running("over", "b" * 64, "terminated"), running("bad", "c\0c")]
    late = {"name": "late", "state": {"waiting": {"reason": "ContainerCreating"}}}
    sidecar = running("proxy", "d" * 64)
    keeper_of(cluster).put(
        [pod(status={"containerStatuses": [*told, late], "initContainerStatuses": [sidecar]})]
    )
    assert Pod.objects.get().running == {"a" * 64: "main", "d" * 64: "proxy"}


def test_a_wish_that_is_no_text_for_a_database_stops_nothing(cluster: Cluster) -> None:
    wish = {"volcano.sh/numa-topology-policy": "a\0b" + "c" * 1000}
    status = {"phase": "Failed", "reason": "TopologyAffinityError", "message": "no\0pe"}
    keeper_of(cluster).put([pod(meta={"annotations": wish}, status=status)])
    line = Failure.objects.get()
    assert line.asked is not None
    (kept,) = line.asked["metadata"]["annotations"].values()
    assert (kept[:3], len(kept)) == ("a\ufffdb", 253)
    assert "\0" not in line.message
