"""A node with a real kubelet, recorded: every source is there and they agree."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from numaagent import config
from numaagent.exporter.node import Node
from numaagent.readers import podresources_pb2 as api
from numacore import facts, report
from numacore.cpuset import EMPTY, CpuSet
from numacore.workload import MemoryBlock
from tests.numaagent import trees
from tests.numaagent.conftest import Seen, seen
from tests.numaagent.kubelet import Socket, nodes, pod

DESCRIPTION = Path(__file__).parent / "emulated.tree"
MIB = 1 << 20
PIN1 = "8dd25092-11ca-4b13-92df-38073696f50a"
PIN2 = "944febb6-d6d9-49f5-9b3e-11d91d6ce59b"


def memory(size: int, node: int) -> api.ContainerMemory:
    return api.ContainerMemory(memory_type="memory", size=size, topology=nodes(node))


def main(cpus: tuple[int, ...] = (), *blocks: api.ContainerMemory) -> api.ContainerResources:
    return api.ContainerResources(name="main", cpu_ids=cpus, memory=blocks)


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="na"))
    yield trees.build(DESCRIPTION.read_text(), folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def node(root: Path) -> Iterator[Seen]:
    """The node with the kubelet's answers as it gave them."""
    socket = Socket(
        root / "var/lib/kubelet/pod-resources/kubelet.sock",
        api.ListPodResourcesResponse(
            pod_resources=[
                pod("default", "pin1", main((4,), memory(104857600, 1))),
                pod("default", "burst", main()),
                pod("default", "pin2", main((2, 3), memory(209715200, 0))),
            ]
        ),
        api.AllocatableResourcesResponse(
            cpu_ids=[5, 6, 7, 2, 3, 4], memory=[memory(1275953152, 0), memory(1247645696, 1)]
        ),
    )
    socket.start()
    opened = Node(config.load({}, root=str(root)), started=1.0)
    yield seen(opened)
    opened.close()
    socket.stop()


def test_it_says_who_it_is(node: Seen) -> None:
    assert (node.exporter.node, node.exporter.machine_id) == ("numa-vm", "0123456789abcdef0123456789abcdef")
    assert node.exporter.boot_id == "d7e16b4f-b38b-4bb4-a41f-e906d22071c5"
    attributes = node.machine.attributes
    assert (attributes.kernel, attributes.arch) == ("6.12.117+deb13-cloud-amd64", "x86_64")
    assert attributes.os == "Debian GNU/Linux 13 (trixie)"


def test_it_has_no_problem_but_the_file_that_was_not_recorded(node: Seen) -> None:
    assert [problem.what for problem in node.problems] == ["/proc/stat"]


def test_it_reads_the_machine(node: Seen) -> None:
    topology = node.machine.topology
    assert [(n.id, str(n.cpus), n.distances) for n in topology.nodes] == [
        (0, "0-3", (10, 21)),
        (1, "4-7", (21, 10)),
    ]
    assert [str(cpus) for _, cpus in topology.cores()] == ["0-1", "2-3", "4-5", "6-7"]
    assert [(cpu.socket, cpu.die, cpu.cluster, cpu.core) for cpu in topology.cpus][::2] == [
        (0, 0, 0, 0), (0, 0, 2, 1), (1, 1, 4, 0), (1, 1, 6, 1),
    ]  # fmt: skip


def test_it_reads_what_the_kubelet_was_asked(node: Seen) -> None:
    kubelet = node.kubelet
    assert kubelet.present is True
    assert kubelet.config_path == "/var/lib/kubelet/config.yaml"
    assert kubelet.settings["topologyManagerPolicy"].value == "single-numa-node"
    assert kubelet.settings["reservedSystemCPUs"].value == "0-1"
    assert kubelet.settings["reservedMemory"].value == [
        {"numaNode": 0, "limits": {"memory": "256Mi"}},
        {"numaNode": 1, "limits": {"memory": "256Mi"}},
    ]


def test_it_reads_what_the_kubelet_decided(node: Seen) -> None:
    kubelet = node.kubelet
    assert kubelet.allocatable_cpus == CpuSet.parse("2-7")
    assert kubelet.cpu_state is not None
    assert (kubelet.cpu_state.policy, str(kubelet.cpu_state.default)) == ("static", "0-1,5-7")
    assert kubelet.cpu_state.entries == {PIN1: {"main": CpuSet([4])}, PIN2: {"main": CpuSet([2, 3])}}
    assert kubelet.memory_state is not None
    assert kubelet.memory_state.nodes[0]["memory"].free == 1066237952
    assert kubelet.memory_state.groups == {0: (0,), 1: (1,)}
    assert kubelet.stale_since is None


def test_it_shows_three_containers_and_no_sandbox(node: Seen) -> None:
    found = {each.pod: each for each in node.containers}
    assert len(node.containers) == 3
    assert {(each.namespace, each.name, each.runtime) for each in node.containers} == {
        ("default", "main", "containerd")
    }
    pin1, pin2, burst = found["pin1"], found["pin2"], found["burst"]
    assert (str(pin1.cpus), str(pin1.mems), pin1.exclusive) == ("4", "1", CpuSet([4]))
    assert (str(pin2.cpus), str(pin2.mems), pin2.exclusive) == ("2-3", "0", CpuSet([2, 3]))
    assert (str(burst.cpus), str(burst.mems), burst.exclusive) == ("0-1,5-7", "0-1", EMPTY)
    assert (pin1.qos, pin2.qos, burst.qos) == ("Guaranteed", "Guaranteed", "Burstable")
    assert pin1.memory_blocks == (MemoryBlock("memory", 100 * MIB, (1,)),)


def test_it_knows_requests_though_pinned_containers_have_no_quota(node: Seen) -> None:
    found = {each.pod: each for each in node.containers}
    assert (found["pin2"].cpu_limit, found["pin2"].cpu_request) == ("max", 2.0)
    assert (found["pin2"].memory_limit, found["burst"].memory_limit) == (200 * MIB, "max")
    assert found["burst"].cpu_request is None  # a weight of version 2 does not lead back to it


def test_it_reads_where_pages_lie(node: Seen) -> None:
    use = node.usage.containers
    assert use is not None
    order = [each.pod for each in node.containers]
    assert {pod: (use.pages[0][i], use.pages[1][i]) for i, pod in enumerate(order)} == {
        "burst": (0, 114688 + 4096),
        "pin1": (4096, 118784),
        "pin2": (110592, 4096),
    }


def test_it_gives_the_core_what_its_report_needs(node: Seen) -> None:
    made = report.node_report(
        facts.Facts(
            topology=node.machine.topology,
            attributes=node.machine.attributes,
            kubelet=node.kubelet,
            containers=node.containers,
            usage=node.usage,
        )
    )
    assert [cpu.owner for cpu in made.cpus] == [
        "reserved", "reserved", "exclusive", "exclusive", "exclusive", "shared", "shared", "shared",
    ]  # fmt: skip
    assert {each.container.pod: each.kind for each in made.containers} == {
        "burst": "floating", "pin1": "exclusive", "pin2": "exclusive",
    }  # fmt: skip
