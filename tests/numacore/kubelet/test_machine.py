"""The machine as cAdvisor and the CPU manager see it."""

import pytest

from numacore.cpuset import CpuSet
from numacore.kubelet.errors import StartError
from numacore.kubelet.machine import Core, Machine, Node, of_topology
from numacore.topology import Attributes, Cache, Cpu, HugePages, NumaNode, Topology


def told(last_level: list[str], *, offline: int | None = None) -> Topology:
    """One socket, two NUMA nodes of two cores with two threads; siblings are four apart."""
    cpus = tuple(Cpu(at, socket=0, core=at % 4, numa=at % 4 // 2, online=at != offline) for at in range(8))
    nodes = tuple(
        NumaNode(
            at,
            CpuSet(cpu.id for cpu in cpus if cpu.numa == at and cpu.online),
            (10, 20) if at == 0 else (20, 10),
        )
        for at in range(2)
    )
    small = tuple(Cache(2, "Unified", CpuSet([at, at + 4])) for at in range(4))
    return Topology(cpus, nodes, (*small, *(Cache(3, "Unified", CpuSet.parse(each)) for each in last_level)))


ATTRIBUTES = Attributes(memory={0: 1 << 30, 1: None}, hugepages={0: (HugePages(2 << 20, 8),)})


@pytest.mark.parametrize(
    ("last_level", "uncore"),
    [
        (["0,4", "1,5", "2,6", "3,7"], [0, 1, 2, 3]),
        (["0-1,4-5", "2-3,6-7"], [None] * 4),
        (["0-7"], [0, 0, 0, 0]),
        ([], [None] * 4),
    ],
)
def test_a_last_level_cache_counts_unless_it_has_the_numa_nodes_number_of_cpus(
    last_level: list[str], uncore: list[int | None]
) -> None:
    """Per core complex; per NUMA node; of two NUMA nodes (sub-NUMA clustering); none."""
    seen = of_topology(told(last_level), ATTRIBUTES)
    assert [core.uncore for each in seen.nodes for core in each.cores] == uncore


def test_amounts_distances_and_online_threads_are_taken_over() -> None:
    first, second = of_topology(told([], offline=5), ATTRIBUTES).nodes
    assert (first.memory, first.hugepages, first.distances) == (1 << 30, {2048: 8}, (10, 20))
    assert (second.memory, second.hugepages) == (0, {})
    assert [core.threads for core in first.cores] == [(0, 4), (1,)]


def test_cores_are_named_by_their_lowest_cpu_and_counted_on_average() -> None:
    topology = of_topology(told([]), ATTRIBUTES).topology
    assert topology.in_core == {at: 1 << at | 1 << at + 4 for at in range(4)}
    assert (topology.per_core, topology.per_socket, topology.sockets) == (2, 8, 1)


@pytest.mark.parametrize(
    ("cores", "words"),
    [
        ((), "could not detect number of cpus"),
        ((Core(0, 0, (0,)), Core(1, 0, ())), "no cpus provided"),
        ((Core(0, 0, (0, 0)),), "cpus provided are not unique"),
    ],
)
def test_a_machine_without_sensible_cpus_stops_the_kubelet(cores: tuple[Core, ...], words: str) -> None:
    with pytest.raises(StartError, match=words):
        _ = Machine((Node(0, cores=cores),)).topology
