"""Every recorded machine reads as what it is."""

from __future__ import annotations

import pytest

from numaagent import config
from numaagent.exporter.node import Node
from numacore.cpuset import EMPTY, CpuSet, union
from tests.numaagent import trees
from tests.numaagent.conftest import Seen, seen
from tests.numaagent.machines.expected import MACHINES, Expected

NAMES = sorted(MACHINES)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """Every machine, read once for all tests of this file."""
    found = {}
    for name in NAMES:
        root = trees.machine(name, tmp_path_factory.mktemp(name))
        node = Node(config.load({}, root=str(root)), started=1.0)
        found[name] = seen(node)
        node.close()
    return found


@pytest.fixture
def machine(machines: dict[str, Seen], request: pytest.FixtureRequest) -> Seen:
    return machines[request.param]


@pytest.fixture
def expected(request: pytest.FixtureRequest) -> Expected:
    return MACHINES[request.param]


def sets(groups: list[str]) -> list[CpuSet]:
    return sorted(map(CpuSet.parse, groups), key=lambda group: min(group, default=-1))


def of_cpu(groups: dict[int, str]) -> dict[int, int]:
    return {cpu: number for number, cpus in groups.items() for cpu in CpuSet.parse(cpus)}


every_machine = pytest.mark.parametrize(
    ("machine", "expected"), [(name, name) for name in NAMES], indirect=True
)


def test_it_knows_all_recorded_machines() -> None:
    assert sorted(file.stem for file in trees.MACHINES.glob("*.tree")) == NAMES


@every_machine
def test_it_finds_every_cpu_and_which_are_offline(machine: Seen, expected: Expected) -> None:
    topology = machine.machine.topology
    assert CpuSet(cpu.id for cpu in topology.cpus) == CpuSet.parse(expected.cpus)
    assert topology.offline == CpuSet.parse(expected.offline)


@every_machine
def test_it_puts_cpus_into_sockets_and_dies(machine: Seen, expected: Expected) -> None:
    online = [cpu for cpu in machine.machine.topology.cpus if cpu.online]
    assert {cpu.id: cpu.socket for cpu in online if cpu.socket is not None} == of_cpu(expected.sockets)
    assert {cpu.id: cpu.die for cpu in online if cpu.die is not None} == of_cpu(expected.dies)


@every_machine
def test_it_puts_cpus_into_cores(machine: Seen, expected: Expected) -> None:
    topology = machine.machine.topology
    assert {cpu.id: cpu.core for cpu in topology.cpus if cpu.core is not None} == of_cpu(expected.core_ids)
    assert sorted((cpus for _, cpus in topology.cores()), key=min) == sets(expected.cores)


@every_machine
def test_it_puts_cpus_into_numa_nodes(machine: Seen, expected: Expected) -> None:
    topology = machine.machine.topology
    assert {node.id: node.cpus for node in topology.nodes} == {
        node: CpuSet.parse(cpus) for node, cpus in expected.nodes.items()
    }
    assert topology.numa is expected.numa
    placed = {cpu.id: cpu.numa for cpu in topology.cpus if cpu.numa is not None}
    assert placed == of_cpu(expected.nodes) | of_cpu(expected.offline_numa)
    assert union(node.cpus for node in topology.nodes) & topology.offline == EMPTY


@every_machine
def test_it_reads_distances_or_says_that_they_are_unknown(machine: Seen, expected: Expected) -> None:
    found = [node.distances for node in machine.machine.topology.nodes]
    if expected.distances is None:
        assert found == [None] * len(expected.nodes)
        assert any("distance" in problem.what for problem in machine.problems)
    else:
        assert found == [tuple(row) for row in expected.distances]


@every_machine
def test_it_reads_the_memory_of_each_numa_node(machine: Seen, expected: Expected) -> None:
    bytes_of = {node: kb * 1024 for node, kb in expected.memory.items()}
    assert machine.machine.attributes.memory == bytes_of
    assert {node: use.total for node, use in machine.usage.memory.items()} == bytes_of


@every_machine
def test_it_reads_caches_and_who_shares_them(machine: Seen, expected: Expected) -> None:
    found = [(c.level, c.kind, c.size, c.cpus) for c in machine.machine.topology.caches]
    wanted = [
        (level, kind, kb * 1024, CpuSet.parse(cpus))
        for level, kind, kb, groups in expected.caches
        for cpus in groups
    ]
    assert sorted(found, key=str) == sorted(wanted, key=str)


@every_machine
def test_it_counts_huge_pages_of_every_size(machine: Seen, expected: Expected) -> None:
    found = machine.machine.attributes.hugepages
    assert {node: [(pool.page_size, pool.total) for pool in pools] for node, pools in found.items()} == {
        node: [(kb * 1024, pages) for kb, pages in pools] for node, pools in expected.hugepages.items()
    }


@every_machine
def test_it_names_architecture_and_model(machine: Seen, expected: Expected) -> None:
    assert machine.machine.attributes.arch == expected.arch
    assert machine.machine.attributes.model == expected.model


@every_machine
def test_it_finds_what_runs_outside_kubernetes(machine: Seen, expected: Expected) -> None:
    assert {
        each.cgroup: (str(each.cpus), str(each.mems)) for each in machine.containers
    } == expected.containers
    assert not any(each.kubernetes for each in machine.containers)
    assert machine.kubelet.present is False


@every_machine
def test_it_finds_devices_and_their_numa_nodes(machine: Seen, expected: Expected) -> None:
    found = machine.machine.attributes.devices
    assert {each.address: (each.kind, each.numa, each.names) for each in found} == expected.devices


def test_it_reads_what_the_firmware_promises_about_memory(machines: dict[str, Seen]) -> None:
    found = machines["fakeheteromemtiers"].machine.attributes.performance
    assert [(each.node, each.access, each.initiators, each.read_bandwidth) for each in found] == [
        (0, 1, (0,), 1000),
        (1, 1, (1,), 1000),
        (2, 1, (2,), 10000),
        (4, 1, (1,), 10000),
        (6, 1, (1,), 100),
        (8, 1, (0,), 100),
        (9, 1, (2,), 100),
    ]
    assert {each.read_latency for each in found} == {None}  # the table has no latencies: unknown, not 0


def test_it_counts_cpu_time_of_cpus_that_are_online(machines: dict[str, Seen]) -> None:
    times = machines["16amd64-4n4c-cgroup-distance-merge"].usage.cpu
    assert times is not None
    assert times.cpus == CpuSet.parse("0-15")
    # cpu0 252800 615 49306 13092927 16487 0 1937 0
    assert (times.busy[0], times.idle[0]) == (252800 + 615 + 49306 + 1937, 13092927 + 16487)


def test_it_reads_allocation_counters(machines: dict[str, Seen]) -> None:
    memory = machines["16em64t-4s2c2t-offlines"].usage.memory[0]
    assert memory.counters["numa_hit"] == 172394323
    assert (memory.free, memory.used, memory.anon) == (13079628 * 1024, 3692828 * 1024, 93564 * 1024)
