"""The control plane of this folder is a real one, can be broken and mended, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import servers
from tests.cluster import bulk, scene, things
from tests.cluster.api import Api, ApiError, Object
from tests.cluster.controlplane import ControlPlane, condition, until
from tests.cluster.programs import Programs


def phase(plane: ControlPlane, pod: Object) -> str:
    return str(plane.api.get(plane.api.path(pod))["status"]["phase"])


def ready(plane: ControlPlane, node: Object) -> bool:
    return condition(plane.api.get(plane.api.path(node)), "Ready") == "True"


# ---------------------------------------------------------------- real


def test_it_is_the_kubernetes_that_it_says(plane: ControlPlane) -> None:
    version = plane.api.get("/version")
    assert (version["gitVersion"], version["major"], version["minor"]) == ("v1.37.2", "1", "37")


def test_it_refuses_a_person_without_a_role_and_says_what_is_missing(plane: ControlPlane) -> None:
    stranger = Api(plane.kubeconfig("stranger"))
    with pytest.raises(ApiError, match=r'403 Forbidden.*"stranger" cannot list resource "pods"'):
        stranger.items("/api/v1/pods")


def test_it_refuses_a_token_that_it_did_not_give(plane: ControlPlane) -> None:
    genuine = plane.service_account("default", "default")
    forged = re.sub(r"token: (\S{9})\S", r"token: \1x", genuine)
    with pytest.raises(ApiError, match="401"):
        Api(forged).get("/api/v1/nodes")


def test_it_knows_whose_token_it_is(plane: ControlPlane, namespace: str) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    api = Api(plane.service_account(namespace, "default"))
    told = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert told["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"


def test_a_node_becomes_ready_and_stays_what_it_was_made(plane: ControlPlane) -> None:
    node = things.node("a", cpus=48, labels={"pool": "fast"}, machine_id="f" * 32)
    plane.api.create(node)
    until(lambda: ready(plane, node), "a node that is Ready")
    found = plane.api.get("/api/v1/nodes/a")
    assert found["status"]["capacity"]["cpu"] == "48"
    assert found["status"]["nodeInfo"]["machineID"] == "f" * 32
    assert found["metadata"]["labels"]["pool"] == "fast"


def test_a_pod_that_is_bound_to_a_node_runs(plane: ControlPlane, namespace: str) -> None:
    plane.api.create(things.node("a"))
    pod = things.pod("one", namespace, node="a", cpu="2", memory="1Gi", guaranteed=True)
    plane.api.create(pod)
    until(lambda: phase(plane, pod) == "Running", "a pod that runs")
    status = plane.api.get(plane.api.path(pod))["status"]
    assert status["qosClass"] == "Guaranteed"
    assert status["containerStatuses"][0]["containerID"].startswith("containerd://")


def test_the_scheduler_places_what_fits_and_says_why_something_does_not(
    plane: ControlPlane, namespace: str
) -> None:
    node = things.node("a", cpus=4)
    plane.api.create(node)
    until(lambda: ready(plane, node), "a node that is Ready")
    small, large = things.pod("small", namespace, cpu="2"), things.pod("large", namespace, cpu="8")
    plane.api.create(small)
    plane.api.create(large)
    until(lambda: phase(plane, small) == "Running", "a pod that was placed")
    until(lambda: condition(plane.api.get(plane.api.path(large)), "PodScheduled") == "False", "a verdict")
    [why] = plane.api.get(plane.api.path(large))["status"]["conditions"]
    assert "Insufficient cpu" in why["message"]


def test_a_pod_is_refused_as_a_kubelet_refuses_it(plane: ControlPlane, namespace: str) -> None:
    plane.api.create(things.node("a"))
    pod = things.pod("refused", namespace, node="a", cpu="2", refused="TopologyAffinityError")
    plane.api.create(pod)
    until(lambda: phase(plane, pod) == "Failed", "a pod that was refused")
    status = plane.api.get(plane.api.path(pod))["status"]
    assert status["reason"] == "TopologyAffinityError"
    assert "Topology locality" in status["message"]
    assert "containerStatuses" not in status


def test_a_pod_is_stuck_when_it_shall_be(plane: ControlPlane, namespace: str) -> None:
    plane.api.create(things.node("a"))
    pod = things.pod("stuck", namespace, node="a", stuck="CreateContainerError")
    plane.api.create(pod)
    until(lambda: plane.api.get(plane.api.path(pod))["status"].get("containerStatuses"), "a container")
    status = plane.api.get(plane.api.path(pod))["status"]
    assert status["phase"] == "Pending"
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerError"


def test_a_deployment_burns_through_pods_that_are_refused(plane: ControlPlane, namespace: str) -> None:
    """The real controllers replace what was refused, again and again."""
    node = things.node("a")
    plane.api.create(node)
    until(lambda: ready(plane, node), "a node that is Ready")
    plane.api.apply(things.deployment("burning", namespace, refused="TopologyAffinityError"))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    until(lambda: len(plane.api.items(pods, fieldSelector="status.phase=Failed")) >= 3, "refused pods")
    owners = {each["metadata"]["ownerReferences"][0]["kind"] for each in plane.api.items(pods)}
    assert owners == {"ReplicaSet"}


async def test_hundreds_are_made_and_changed_at_once(plane: ControlPlane, namespace: str) -> None:
    await bulk.create(plane.api, (things.node(f"node-{nth}") for nth in range(20)))
    pods = [things.pod(f"pod-{nth}", namespace, node=f"node-{nth % 20}") for nth in range(200)]
    await bulk.create(plane.api, pods)
    await bulk.patch_statuses(plane.api, [(pod, things.failed()) for pod in pods])
    found = plane.api.items(f"/api/v1/namespaces/{namespace}/pods")
    assert len(found) == 200
    assert {each["status"]["reason"] for each in found} == {"TopologyAffinityError"}


async def test_the_first_refusal_among_many_is_told(plane: ControlPlane) -> None:
    with pytest.raises(ExceptionGroup) as refusals:
        await bulk.create(plane.api, [things.node("a"), things.node("a")])
    [refusal] = refusals.value.exceptions
    assert isinstance(refusal, ApiError)
    assert refusal.reason == "AlreadyExists"


def test_topologies_are_kept_in_both_versions_and_zero_may_be_absent(plane: ControlPlane) -> None:
    plane.api.apply(scene.numatopology("a", "restricted"))
    plane.api.apply(scene.noderesourcetopology("a", "restricted"))
    detail = plane.api.get("/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies/a")["spec"]["cpuDetail"]
    assert (detail["0"], detail["3"]) == ({}, {"numa": 1, "socket": 1, "core": 1})
    older, newer = (
        plane.api.get(f"/apis/topology.node.k8s.io/{version}/noderesourcetopologies/a")
        for version in ("v1alpha1", "v1alpha2")
    )
    assert older["zones"] == newer["zones"]
    assert "attributes" not in older
    assert newer["attributes"][0] == {"name": "topologyManagerPolicy", "value": "restricted"}


def test_a_topology_of_the_wrong_form_is_refused(plane: ControlPlane) -> None:
    thing = scene.numatopology("a", "restricted")
    thing["spec"]["cpuDetail"]["0"] = {"numa": "zero"}
    with pytest.raises(ApiError, match="422"):
        plane.api.create(thing)


# ---------------------------------------------------------------- clean


@pytest.mark.parametrize("turn", ["first", "second"])
def test_nothing_of_an_earlier_test_is_left(turn: str, plane: ControlPlane, namespace: str) -> None:
    assert plane.api.items("/api/v1/nodes") == []
    assert plane.api.items("/api/v1/pods") == []
    plane.api.create(things.node("a"))
    plane.api.create(things.pod("one", node="a"))
    plane.api.apply(things.deployment("several", namespace))


def test_a_definition_that_a_test_took_away_is_there_again(plane: ControlPlane) -> None:
    plane.api.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.scheduling.volcano.sh")
    until(lambda: not plane.api.exists("/apis/scheduling.volcano.sh/v1beta1/queues"), "its end")


def test_a_definition_that_was_taken_away_was_made_again(plane: ControlPlane) -> None:
    assert plane.api.items("/apis/scheduling.volcano.sh/v1beta1/queues") == []


# ---------------------------------------------------------------- broken


def test_a_killed_api_server_comes_back_at_the_same_address_with_everything(own_plane: ControlPlane) -> None:
    node = things.node("a")
    own_plane.api.create(node)
    before = own_plane.api.get("/api/v1/nodes/a")["metadata"]["uid"]
    own_plane.apiserver.kill()
    with pytest.raises(OSError, match="refused"):
        own_plane.api.get("/version")
    own_plane.apiserver.start()
    assert own_plane.api.get("/api/v1/nodes/a")["metadata"]["uid"] == before
    # The other parts found it again by themselves.
    pod = things.pod("later", node="a")
    own_plane.api.create(pod)
    until(lambda: phase(own_plane, pod) == "Running", "a pod that runs")


def test_it_restarts_empty_with_smaller_versions_and_goes_on(own_plane: ControlPlane) -> None:
    api = own_plane.api
    api.create(things.node("a"))
    account = own_plane.service_account("default", "default")
    before = int(api.get("/api/v1/nodes")["metadata"]["resourceVersion"])
    own_plane.restart_empty()
    assert api.items("/api/v1/nodes") == []
    assert int(api.get("/api/v1/nodes")["metadata"]["resourceVersion"]) < before
    assert not api.exists("/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies")
    with pytest.raises(ApiError, match="401"):
        Api(account).get("/api/v1/nodes")
    own_plane.define()
    node = things.node("b")
    api.create(node)
    until(lambda: ready(own_plane, node), "a node that is Ready")


# ---------------------------------------------------------------- nothing left


def processes(folder: Path) -> list[int]:
    """Ids of processes that were started with this folder in their options or surroundings."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in told:
            found.append(int(process.name))
    return found


def listeners(pid: int) -> set[str]:
    """Local addresses at which a process listens, as the kernel writes them."""
    sockets = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                addresses.add(fields[1].partition(":")[0])
    return addresses


def test_it_listens_on_loopback_only_and_ends_whole(programs: Programs, tmp_path: Path) -> None:
    with ControlPlane(programs, tmp_path) as plane:
        started = {part.process.pid for part in plane.parts}
        assert set(processes(tmp_path)) == started
        assert len(started) == 5
        for pid in started:
            assert listeners(pid) == {"0100007F"}
    assert processes(tmp_path) == []


def test_a_start_that_fails_shows_the_log_and_leaves_nothing(programs: Programs, tmp_path: Path) -> None:
    plane = ControlPlane(programs, tmp_path)
    plane.scheduler.command.append("--no-such-option")
    with pytest.raises(pytest.fail.Exception, match="unknown flag: --no-such-option"):
        plane.start()
    assert processes(tmp_path) == []


def printed_kubeconfig(keeper: subprocess.Popen[str]) -> str:
    """What `make cluster` says when everything is there."""
    told = ""
    while "Ctrl-C" not in told:
        line = keeper.stdout.readline()
        assert line, told
        told += line
    [found] = re.findall(r"NUMAWEB_KUBECONFIG=(\S+)", told)
    return str(found)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "killed"])
def test_a_kept_cluster_ends_with_the_one_who_kept_it(
    how: signal.Signals, programs: Programs, tmp_path: Path
) -> None:
    command = [sys.executable, "-u", "-m", "tests.cluster", "--nodes=4", "--pods=8"]
    surroundings = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=servers.ROOT, env=surroundings, stdout=subprocess.PIPE, text=True
    ) as keeper:
        try:
            api = Api(Path(printed_kubeconfig(keeper)).read_text())
            until(
                lambda: len(api.items("/api/v1/pods", fieldSelector="status.phase=Running")) == 8, "its pods"
            )
            keeper.send_signal(how)
            keeper.wait(30)
        finally:
            keeper.kill()
    until(lambda: processes(tmp_path) == [], "an end of all its processes")
    if how == signal.SIGINT:
        assert keeper.returncode == 0
        assert list(tmp_path.iterdir()) == []
