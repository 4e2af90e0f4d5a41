"""Clean-up against a real API server, as the account that may delete pods: exactly the failed ones, and never another of the same name."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring.kube import access
from monitoring.models import Cluster, Connection, Failure, Pod
from monitoring.selectors import failures
from policies.gateway import Done, Gateway
from policies.models import Cleanup
from policies.services import cleanup
from policies.services.cleanup import CleanupError
from policies.services.who import Who
from tests.cluster import rights, things
from tests.cluster.api import Object
from tests.cluster.controlplane import ControlPlane, until

OTTO = Who("otto", "10.0.0.5")
NODE = "cleanup-node"


@pytest.fixture
def east(plane: ControlPlane, namespace: str, settings: Settings, transactional_db: None) -> Cluster:
    """A cluster whose connection is the cleaner's, three refused pods and two that run, in numaweb's tables too."""
    settings.NUMAWEB_CLEANUP = True
    cluster = Cluster.objects.create(slug="east", name="East", kind="kubernetes")
    connect(cluster, rights.kubeconfig(plane, "cleaner"))
    plane.api.apply(things.node(NODE))
    for name in ("refused-1", "refused-2", "refused-3"):
        plane.api.create(things.pod(name, namespace, node=NODE, refused="TopologyAffinityError"))
    for name in ("fine-1", "fine-2"):
        plane.api.create(things.pod(name, namespace, node=NODE))
    until(
        lambda: phases(plane, namespace) == ["Failed"] * 3 + ["Running"] * 2,
        "three failed pods, two that run",
    )
    told(cluster, plane, namespace)
    return cluster


def connect(cluster: Cluster, kubeconfig: str) -> None:
    values = {"source": "kubeconfig", "kubeconfig": kubeconfig, "state": "ok"}
    Connection.objects.update_or_create(cluster=cluster, defaults=values)


def pods(plane: ControlPlane, namespace: str) -> list[Object]:
    return plane.api.items(f"/api/v1/namespaces/{namespace}/pods")


def phases(plane: ControlPlane, namespace: str) -> list[str]:
    return sorted(str(each.get("status", {}).get("phase")) for each in pods(plane, namespace))


def names(plane: ControlPlane, namespace: str) -> list[str]:
    return sorted(each["metadata"]["name"] for each in pods(plane, namespace))


def told(cluster: Cluster, plane: ControlPlane, namespace: str) -> None:
    """The table of pods as a watcher writes it, and the line of the failed ones."""
    now = timezone.now()
    for each in pods(plane, namespace):
        meta, status = each["metadata"], each["status"]
        Pod.objects.create(
            cluster=cluster,
            uid=meta["uid"],
            namespace=namespace,
            name=meta["name"],
            node_name=NODE,
            owner_kind="ReplicaSet",
            owner_name="web",
            phase=status["phase"],
            reason=status.get("reason", ""),
        )
    Failure.objects.create(
        cluster=cluster,
        namespace=namespace,
        owner_kind="ReplicaSet",
        owner_name="web",
        node_name=NODE,
        reason="TopologyAffinityError",
        count=3,
        first=now,
        last=now,
    )


def looked_at(cluster: Cluster) -> Cleanup:
    return cleanup.preview(cluster, failures.lines(cluster), OTTO, timezone.now())


def outcomes(of: Cleanup) -> dict[str, str]:
    return dict(of.pods.values_list("name", "outcome"))


def uid_of(plane: ControlPlane, namespace: str, name: str) -> str:
    return str(plane.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")["metadata"]["uid"])


def test_exactly_the_failed_pods_go(east: Cluster, plane: ControlPlane, namespace: str) -> None:
    made = looked_at(east)
    assert (made.missing, made.pods.count()) == ([], 3)
    cleanup.start(made, OTTO, timezone.now())
    assert names(plane, namespace) == ["fine-1", "fine-2", "refused-1", "refused-2", "refused-3"]
    assert cleanup.work(made.pk) is False
    made.refresh_from_db()
    assert (made.state, made.error) == ("done", "")
    assert outcomes(made) == dict.fromkeys(("refused-1", "refused-2", "refused-3"), "deleted")
    assert names(plane, namespace) == ["fine-1", "fine-2"]


def test_a_pod_made_anew_under_the_same_name_survives(
    east: Cluster, plane: ControlPlane, namespace: str
) -> None:
    made = looked_at(east)
    plane.api.delete(f"/api/v1/namespaces/{namespace}/pods/refused-2")
    plane.api.create(things.pod("refused-2", namespace, node=NODE, refused="TopologyAffinityError"))
    plane.api.delete(f"/api/v1/namespaces/{namespace}/pods/refused-3")
    until(lambda: phases(plane, namespace) == ["Failed"] * 2 + ["Running"] * 2, "the new pod fails, too")
    anew = uid_of(plane, namespace, "refused-2")
    cleanup.start(made, OTTO, timezone.now())
    cleanup.work(made.pk)
    assert outcomes(made) == {"refused-1": "deleted", "refused-2": "changed", "refused-3": "gone"}
    assert made.pods.get(name="refused-2").cause == "another pod has this name now"
    assert uid_of(plane, namespace, "refused-2") == anew


def test_a_pod_that_is_not_failed_stays_whoever_asks(
    east: Cluster, plane: ControlPlane, namespace: str
) -> None:
    gateway = Gateway(access.from_kubeconfig(rights.kubeconfig(plane, "cleaner")))
    done = gateway.delete_failed_pod(namespace, "fine-1", uid_of(plane, namespace, "fine-1"))
    assert done == Done("changed", "its phase is Running")
    assert gateway.delete_failed_pod(namespace, "nobody", "some-uid") == Done("gone")
    assert "fine-1" in names(plane, namespace)


def test_the_server_itself_refuses_another_uid(
    east: Cluster, plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the deletion a pod may be made anew: the preconditions stand in the request."""
    gateway = Gateway(access.from_kubeconfig(rights.kubeconfig(plane, "cleaner")))
    uid = uid_of(plane, namespace, "refused-1")
    real = gateway._pods.read_namespaced_pod
    old = real("refused-1", namespace)

    def late(name: str, of: str, **rest: object) -> object:
        if uid_of(plane, namespace, "refused-1") == uid:
            plane.api.delete(f"/api/v1/namespaces/{of}/pods/{name}")
            plane.api.create(things.pod(name, of, node=NODE, refused="TopologyAffinityError"))
        return old

    monkeypatch.setattr(gateway._pods, "read_namespaced_pod", late)  # the race, made certain
    done = gateway.delete_failed_pod(namespace, "refused-1", uid)
    assert done.outcome == "changed"
    assert "the UID in the precondition" in done.cause
    assert "refused-1" in names(plane, namespace)


@pytest.mark.parametrize("lacking", ["delete pods", "both"])
def test_without_the_right_nothing_is_deleted_and_the_page_names_it(
    lacking: str, east: Cluster, plane: ControlPlane, namespace: str, as_operator: Client
) -> None:
    role = "watcher" if lacking == "delete pods" else "web"
    connect(east, rights.kubeconfig(plane, role))
    missing = ["delete pods"] if role == "watcher" else ["get pods", "delete pods"]
    answer = as_operator.post("/c/east/cleanups/")
    made = Cleanup.objects.get()
    assert made.missing == [f"{right} in {namespace}" for right in missing]
    page = as_operator.get(answer["Location"]).content.decode()
    assert f"delete pods in {namespace}" in page
    assert "Delete them" not in page
    with pytest.raises(CleanupError, match="missing-right"):
        cleanup.start(made, OTTO, timezone.now())
    assert cleanup.work(made.pk) is False
    assert len(names(plane, namespace)) == 5


def test_a_right_in_one_namespace_is_enough_for_its_pods(
    east: Cluster, plane: ControlPlane, namespace: str
) -> None:
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "local", "namespace": namespace},
    }
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "local", "namespace": namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "local", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "local"},
        "subjects": [{"kind": "ServiceAccount", "name": "local", "namespace": namespace}],
    }
    for thing in (account, role, binding):
        plane.api.apply(thing)
    connect(east, plane.service_account(namespace, "local"))
    gateway = Gateway(access.from_kubeconfig(plane.service_account(namespace, "local")))
    until(lambda: not gateway.missing({namespace}), "the role counts")
    assert [str(each) for each in gateway.missing({namespace, "default"})] == [
        "get pods in default",
        "delete pods in default",
    ]
    made = looked_at(east)
    cleanup.start(made, OTTO, timezone.now())
    cleanup.work(made.pk)
    assert names(plane, namespace) == ["fine-1", "fine-2"]


def test_a_server_that_went_away_leaves_the_work_where_it_was(
    east: Cluster, plane: ControlPlane, namespace: str
) -> None:
    made = looked_at(east)
    cleanup.start(made, OTTO, timezone.now())
    right = Connection.objects.get().kubeconfig
    connect(east, right.replace(plane.url, "https://127.0.0.1:1"))
    assert cleanup.work(made.pk) is False
    made.refresh_from_db()
    assert made.state == "running"
    assert "refused" in made.error
    connect(east, right)
    cleanup.work(made.pk)
    assert outcomes(made) == dict.fromkeys(("refused-1", "refused-2", "refused-3"), "deleted")
