"""The exporter as a pod of a DaemonSet beside a real kubelet and containerd: what it says is what they decided.

One node for the whole file: nothing here changes it.
"""

from typing import NamedTuple

import pytest

from numacore.cpuset import CpuSet
from numacore.workload import Container, MemoryBlock
from tests.cluster.api import Object
from tests.node import exporter, pods
from tests.node.exporter import Told
from tests.node.lab import NAME, Lab

pytestmark = pytest.mark.short
MIB = 1 << 20
EVERYBODYS = CpuSet.parse("0-1,4-7")
"""CPUs that nobody owns when two are pinned on NUMA node 0, whose first two are reserved."""


class Scene(NamedTuple):
    lab: Lab
    exporter: Object
    pinned: Object
    shared: Object
    told: Told


@pytest.fixture(scope="module")
def scene(shared_lab: Lab) -> Scene:
    """A node with the exporter, a pod that owns two CPUs and one that owns none."""
    lab = shared_lab
    lab.fresh()
    own = exporter.deploy(lab)
    lab.plane.api.create(pods.pinned("pinned", cpus=2, memory="100Mi"))
    lab.plane.api.create(pods.waiting("shared"))
    pinned, shared = lab.until_phase("pinned", "Running"), lab.until_phase("shared", "Running")
    return Scene(lab, own, pinned, shared, exporter.knowing(own, "pinned", "shared"))


def test_it_reads_everything_with_the_rights_of_its_manifest(scene: Scene) -> None:
    assert scene.told.problems == ()


def test_it_says_which_node_it_is_on(scene: Scene) -> None:
    told = scene.told.exporter
    assert told.node == NAME
    assert told.machine_id == scene.lab.run("cat /etc/machine-id").strip()
    assert told.boot_id == scene.lab.run("cat /proc/sys/kernel/random/boot_id").strip()


def test_it_reads_the_machine(scene: Scene) -> None:
    topology = scene.told.machine.topology
    assert [(node.id, str(node.cpus), node.distances) for node in topology.nodes] == [
        (0, "0-3", (10, 21)),
        (1, "4-7", (21, 10)),
    ]
    assert [str(cpus) for _, cpus in topology.cores()] == ["0-1", "2-3", "4-5", "6-7"]


def test_it_reads_what_the_kubelet_was_asked_and_decided(scene: Scene) -> None:
    kubelet = scene.told.kubelet
    assert kubelet.settings["topologyManagerPolicy"].value == "single-numa-node"
    assert kubelet.allocatable_cpus == CpuSet.parse("2-7")
    assert kubelet.cpu_state is not None
    on_disk = scene.lab.state("cpu_manager_state")
    assert (kubelet.cpu_state.policy, str(kubelet.cpu_state.default)) == (
        on_disk["policyName"],
        on_disk["defaultCpuSet"],
    )
    uid = scene.pinned["metadata"]["uid"]
    assert {
        pod: {name: str(cpus) for name, cpus in each.items()}
        for pod, each in kubelet.cpu_state.entries.items()
    } == on_disk["entries"]
    assert set(on_disk["entries"]) == {uid}


def test_a_pinned_container_owns_its_cpus_and_its_memory(scene: Scene) -> None:
    container = scene.told.of("pinned")
    [state] = scene.lab.state("cpu_manager_state")["entries"].values()
    assert state["main"] == "2-3"
    # From the kubelet's PodResources, from the cgroup, and beside them what the state file has: one answer.
    assert (container.exclusive, container.cpus) == (CpuSet.parse("2-3"), CpuSet.parse("2-3"))
    assert (str(container.mems), container.memory_blocks) == ("0", (MemoryBlock("memory", 100 * MIB, (0,)),))
    assert (container.qos, container.cpu_request) == ("Guaranteed", 2.0)


def test_a_container_without_cpus_of_its_own_has_what_is_left(scene: Scene) -> None:
    container = scene.told.of("shared")
    assert (container.exclusive, container.cpus, container.qos) == (
        CpuSet.parse(""),
        EVERYBODYS,
        "BestEffort",
    )


@pytest.mark.parametrize("name", ["pinned", "shared", "exporter"])
def test_each_container_has_the_uid_and_the_names_that_the_api_server_knows(scene: Scene, name: str) -> None:
    pod: Object = getattr(scene, name)
    container: Container = scene.told.of(pod["metadata"]["name"])
    assert container.pod_uid == pod["metadata"]["uid"]
    assert (container.namespace, container.name) == (
        pod["metadata"]["namespace"],
        pod["spec"]["containers"][0]["name"],
    )
    assert pod["status"]["containerStatuses"][0]["containerID"] == f"containerd://{container.id}"
