"""Requests against what a node may give away."""

import pytest

from numacore import allocation
from numacore.allocation import Allocation
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.kubeletstate import Kubelet, Setting
from numacore.topology import Attributes
from numacore.workload import Container
from tests.numacore import machines

GIB = machines.GIB
PINNED = Container(id="p", qos="Guaranteed", exclusive=CpuSet.parse("1-2"), memory_limit=2 * GIB)
FRACTION = Container(id="f", qos="Guaranteed", cpu_request=0.5, memory_limit=GIB)
BURST = Container(id="b", qos="Burstable", cpu_request=1.25, memory_limit=GIB)
SILENT = Container(id="s", qos="Burstable")
LEAST = Container(id="l", qos="BestEffort")
OUTSIDE = Container(id="o", kubernetes=False, cpu_request=7.0)


def node(
    *containers: Container,
    settings: dict[str, object] | None = None,
    memory: dict[int, int | None] | None = None,
) -> Facts:
    return Facts(
        topology=machines.TWO,
        attributes=Attributes(memory={0: 16 * GIB, 1: 16 * GIB} if memory is None else memory),
        containers=containers,
        kubelet=Kubelet(
            present=True, settings={name: Setting(value, "file") for name, value in (settings or {}).items()}
        ),
    )


def test_cpu_requests_add_up() -> None:
    found = allocation.cpu(node(PINNED, FRACTION, BURST, LEAST, OUTSIDE))
    assert found == Allocation(requested=3.75, allocatable=8.0, unknown=0)
    assert found.share == 0.46875


def test_an_unknown_request_is_counted_and_not_zero() -> None:
    assert allocation.cpu(node(PINNED, SILENT)) == Allocation(2.0, 8.0, 1)


def test_memory_requests_of_burstable_containers_are_unknown() -> None:
    found = allocation.memory(node(PINNED, FRACTION, BURST, LEAST))
    assert found == Allocation(3 * GIB, 32 * GIB - 100 * 2**20, 1)


@pytest.mark.parametrize("kubelet", [None, Kubelet(), Kubelet(present=False)])
def test_without_a_kubelet_nothing_is_allocated(kubelet: Kubelet | None) -> None:
    known = Facts(topology=machines.TWO, kubelet=kubelet, containers=(PINNED,))
    assert allocation.cpu(known) is None
    assert allocation.memory(known) is None


@pytest.mark.parametrize(
    ("settings", "allocatable"),
    [
        ({}, 8.0),
        ({"kubeReserved": {"cpu": "500m"}, "systemReserved": {"cpu": "1"}}, 6.5),
        ({"kubeReserved": {"cpu": 1, "memory": "1Gi"}}, 7.0),
        ({"kubeReserved": {"memory": "1Gi"}}, 8.0),
        ({"kubeReserved": {"cpu": "2"}, "reservedSystemCPUs": "0"}, 7.0),  # the list beats the amounts
        ({"reservedSystemCPUs": "rubbish"}, None),
        ({"kubeReserved": {"cpu": "half"}}, None),
        ({"kubeReserved": {"cpu": None}}, None),
        ({"kubeReserved": "cpu=1"}, None),
        ({"kubeReserved": None}, 8.0),
        ({"kubeReserved": {"cpu": "64"}}, 0.0),  # the kubelet gives away nothing then, never less
    ],
)
def test_allocatable_cpus(settings: dict[str, object], allocatable: float | None) -> None:
    found = allocation.cpu(node(settings=settings))
    assert found is not None
    assert found.allocatable == allocatable
    assert found.share == (None if not allocatable else 0.0)


def test_the_socket_knows_allocatable_cpus_best() -> None:
    kubelet = Kubelet(
        present=True,
        allocatable_cpus=CpuSet.parse("2-7"),
        settings={"kubeReserved": Setting({"cpu": "1"}, "file")},
    )
    assert allocation.cpu(Facts(topology=machines.TWO, kubelet=kubelet)) == Allocation(0.0, 6.0, 0)


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ({}, 100 * 2**20),
        ({"kubeReserved": {"memory": "1Gi"}}, GIB + 100 * 2**20),
        ({"evictionHard": {"memory.available": "1Gi"}}, GIB),
        ({"evictionHard": {"nodefs.available": "10%"}}, 0),  # the table replaces the default as a whole
        ({"evictionHard": {"memory.available": "5%"}}, None),
        ({"evictionHard": "memory.available<1Gi"}, None),
    ],
)
def test_allocatable_memory(settings: dict[str, object], taken: int | None) -> None:
    found = allocation.memory(node(settings=settings))
    assert found is not None
    assert found.allocatable == (None if taken is None else 32 * GIB - taken)


@pytest.mark.parametrize("memory", [{}, {0: 16 * GIB}, {0: 16 * GIB, 1: None}])
def test_memory_of_a_part_of_the_nodes_is_unknown(memory: dict[int, int | None]) -> None:
    found = allocation.memory(node(memory=memory))
    assert found is not None
    assert found.allocatable is None
    assert found.share is None


def test_what_an_unreadable_file_may_reserve_is_unknown() -> None:
    known = Facts(topology=machines.TWO, kubelet=Kubelet(present=True, unread=("f",)))
    found = allocation.cpu(known)
    assert found is not None
    assert found.allocatable is None
