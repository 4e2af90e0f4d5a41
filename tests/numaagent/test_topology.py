"""CPUs and NUMA nodes of machines that lack files, or have odd ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from numacore.cpuset import CpuSet
from numacore.topology import Topology
from tests.numaagent.conftest import Seen

Look = Callable[..., Seen]

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
FOUR = f"""
{CPU}/online = 0-3
{CPU}/present = 0-3
{CPU}/cpu[0-3]/topology/physical_package_id = 0
{CPU}/cpu[0-3]/topology/core_id = self
"""
TWO_NODES = f"""
{NODE}/node0/cpumap = mask 32 0-1
{NODE}/node1/cpumap = mask 32 2-3
{NODE}/node0/distance = 10 21
{NODE}/node1/distance = 21 10
{NODE}/node[0-1]/meminfo <<
	Node 0 MemTotal: 1024 kB
"""


def cpus(topology: Topology) -> str:
    return str(CpuSet(cpu.id for cpu in topology.cpus))


def nodes(topology: Topology) -> dict[int, str]:
    return {node.id: str(node.cpus) for node in topology.nodes}


def test_it_counts_folders_where_no_file_lists_the_cpus(look: Look) -> None:
    topology = look(f"{CPU}/cpu[0-2,7]/topology/core_id = self").machine.topology
    assert cpus(topology) == "0-2,7"
    assert topology.offline == CpuSet()


def test_it_counts_no_cpu_that_is_only_possible(look: Look) -> None:
    """POWER has folders for every CPU that could be added."""
    topology = look(FOUR + f"{CPU}/cpu[4-7]/online = 0").machine.topology
    assert cpus(topology) == "0-3"


@pytest.mark.parametrize("how", [f"{CPU}/online = 0-2", f"{CPU}/cpu3/online = 0"])
def test_it_knows_offline_cpus_and_their_numa_node(look: Look, how: str) -> None:
    seen = look(FOUR.replace(f"{CPU}/online = 0-3", "") + TWO_NODES + how)
    topology = seen.machine.topology
    assert topology.offline == CpuSet([3])
    assert nodes(topology) == {0: "0-1", 1: "2"}
    assert topology.cpus[3].numa == 1
    assert topology.cpus[3].socket is None


def test_it_finds_the_node_of_an_offline_cpu_by_its_link(look: Look) -> None:
    description = (
        FOUR + TWO_NODES.replace("2-3", "2") + f"{CPU}/cpu3/online = 0\n{CPU}/cpu3/node1 -> ../../node/node1"
    )
    assert look(description).machine.topology.cpus[3].numa == 1


def test_it_reads_lists_where_there_are_no_masks(look: Look) -> None:
    description = FOUR + TWO_NODES.replace("cpumap = mask 32", "cpulist =")
    assert nodes(look(description).machine.topology) == {0: "0-1", 1: "2-3"}


def test_it_counts_links_where_nothing_lists_a_nodes_cpus(look: Look) -> None:
    description = FOUR + f"{NODE}/node0/cpu[0-1] -> ../../cpu/cpu0\n{NODE}/node1/cpu[2-3] -> ../../cpu/cpu0"
    assert nodes(look(description).machine.topology) == {0: "0-1", 1: "2-3"}


def test_it_treats_a_kernel_without_numa_as_one_numa_node(look: Look) -> None:
    seen = look(FOUR + "proc/meminfo <<\n\tMemTotal: 2048 kB\n\tMemFree: 1024 kB")
    topology = seen.machine.topology
    assert (topology.numa, nodes(topology)) == (False, {0: "0-3"})
    assert topology.distance(0, 0) == 10
    assert seen.machine.attributes.memory == {0: 2048 * 1024}
    assert seen.usage.memory[0].used == 1024 * 1024


def test_it_knows_sparse_and_large_ids(look: Look) -> None:
    seen = look(f"""
{CPU}/online = 0,2047
{CPU}/cpu[0,2047]/topology/core_id = 0
{NODE}/node3/cpulist = 0
{NODE}/node255/cpulist = 2047
{NODE}/node3/distance = 10 40
{NODE}/node255/distance = 40 10
""")
    assert nodes(seen.machine.topology) == {3: "0", 255: "2047"}
    assert seen.machine.topology.distance(3, 255) == 40


def test_it_knows_more_than_64_numa_nodes(look: Look) -> None:
    seen = look(
        FOUR + f"{NODE}/node[0-99]/cpulist =\n{NODE}/node0/cpulist = 0-3\n{NODE}/node[0-99]/distance = 10"
    )
    assert len(seen.machine.topology.nodes) == 100


def test_it_knows_nodes_without_cpus_and_without_memory(look: Look) -> None:
    seen = look(FOUR + TWO_NODES.replace("2-3", "").replace("node[0-1]/meminfo", "node1/meminfo"))
    assert nodes(seen.machine.topology) == {0: "0-1", 1: ""}
    assert seen.machine.attributes.memory == {0: None, 1: 1024 * 1024}
    assert [problem.what for problem in seen.problems if "meminfo" in problem.what] == [
        f"/{NODE}/node0/meminfo"
    ]


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        ("10", "it has 1 distances, the machine has 2 NUMA nodes: not used"),
        ("10 21 21", "it has 3 distances, the machine has 2 NUMA nodes: not used"),
        ("10 many", "'10 many' is not a row of distances"),
        ("10 1000", "a distance is larger than 255: not used"),
        ("", "it has 0 distances, the machine has 2 NUMA nodes: not used"),
    ],
)
def test_it_does_not_use_a_wrong_row_of_distances(look: Look, row: str, cause: str) -> None:
    seen = look(FOUR + TWO_NODES.replace("distance = 10 21", f"distance = {row}"))
    topology = seen.machine.topology
    assert [node.distances for node in topology.nodes] == [None, (21, 10)]
    assert topology.distance(0, 1) is None
    assert [(problem.what, problem.cause) for problem in seen.problems if "distance" in problem.what] == [
        (f"/{NODE}/node0/distance", cause)
    ]


def test_it_reads_what_there_is_of_a_cpu_and_no_more(look: Look) -> None:
    seen = look(f"""
{CPU}/online = 0-3
{CPU}/cpu0/topology/physical_package_id = 0
{CPU}/cpu0/topology/die_id = -1
{CPU}/cpu0/topology/cluster_id = 65535
{CPU}/cpu1/topology/physical_package_id = 0
{CPU}/cpu1/topology/die_id = 1
{CPU}/cpu1/topology/cluster_id = 4
{CPU}/cpu2/topology/core_id = 2
{CPU}/cpu3/
""")
    found = [(cpu.socket, cpu.die, cpu.cluster, cpu.core) for cpu in seen.machine.topology.cpus]
    assert found == [(0, None, None, None), (0, 1, 4, None), (None, None, None, 2), (None, None, None, None)]


def test_it_asks_cpuinfo_where_sysfs_has_no_topology(look: Look) -> None:
    seen = look(f"""
{CPU}/online = 0-1
{CPU}/cpu[0-1]/
proc/cpuinfo <<
	processor	: 0
	physical id	: 3
	core id		: 5
	{""}
	processor	: 1
	physical id	: 4
	core id		: 5
""")
    assert [(cpu.socket, cpu.core) for cpu in seen.machine.topology.cpus] == [(3, 5), (4, 5)]


def test_it_asks_cpuinfo_where_there_is_no_sysfs(look: Look) -> None:
    seen = look("proc/cpuinfo <<\n\tprocessor : 0\n\t\n\tprocessor : 1")
    assert cpus(seen.machine.topology) == "0-1"
    assert seen.causes("topology") == ["it does not exist"]


def test_it_takes_the_cpus_that_numa_nodes_name_where_nothing_else_does(look: Look) -> None:
    seen = look(TWO_NODES)
    assert cpus(seen.machine.topology) == "0-3"
    assert nodes(seen.machine.topology) == {0: "0-1", 1: "2-3"}


def test_it_fills_in_sockets_that_sysfs_leaves_out(look: Look) -> None:
    seen = look(
        FOUR.replace(f"{CPU}/cpu[0-3]/topology/physical_package_id = 0\n", "")
        + "proc/cpuinfo <<\n\tprocessor : 2\n\tphysical id : 6\n\tcore id : 9\n"
    )
    assert [(cpu.socket, cpu.core) for cpu in seen.machine.topology.cpus] == [
        (None, 0),
        (None, 1),
        (6, 2),
        (None, 3),
    ]


def test_it_numbers_sockets_that_have_no_number(look: Look) -> None:
    seen = look(f"""
{CPU}/online = 0-3
{CPU}/cpu[0-3]/topology/physical_package_id = -1
{CPU}/cpu[0,2]/topology/core_siblings = mask 32 0,2
{CPU}/cpu[1,3]/topology/core_siblings = mask 32 1,3
""")
    assert [cpu.socket for cpu in seen.machine.topology.cpus] == [0, 1, 0, 1]


def test_it_invents_no_sockets(look: Look) -> None:
    """A kernel that knows nothing prints every CPU alone."""
    lines = "\n".join(f"{CPU}/cpu{cpu}/topology/core_siblings = mask 32 {cpu}" for cpu in range(4))
    seen = look(f"{CPU}/online = 0-3\n{CPU}/cpu[0-3]/topology/physical_package_id = -1\n{lines}")
    assert {cpu.socket for cpu in seen.machine.topology.cpus} == {None}


def test_it_tells_cores_apart_whose_ids_repeat(look: Look) -> None:
    siblings = "\n".join(f"{CPU}/cpu{cpu}/topology/thread_siblings = mask 32 {cpu}" for cpu in range(4))
    seen = look(FOUR.replace("self", "0") + siblings)
    assert [str(cpus) for _, cpus in seen.machine.topology.cores()] == ["0", "1", "2", "3"]
    assert {cpu.core for cpu in seen.machine.topology.cpus} == {0}


def test_it_keeps_core_ids_that_are_unique_in_their_socket_only(look: Look) -> None:
    seen = look(f"""
{CPU}/online = 0-3
{CPU}/cpu[0-1]/topology/physical_package_id = 0
{CPU}/cpu[2-3]/topology/physical_package_id = 1
{CPU}/cpu[0-3]/topology/core_id = 0
{CPU}/cpu[0-1]/topology/thread_siblings_list = 0-1
{CPU}/cpu[2-3]/topology/thread_siblings_list = 2-3
""")
    assert [str(cpus) for _, cpus in seen.machine.topology.cores()] == ["0-1", "2-3"]
    assert {cpu.sibling for cpu in seen.machine.topology.cpus} == {None}


def test_it_reads_caches_without_sharing_or_size(look: Look) -> None:
    cache = "cache/index0"
    seen = look(
        FOUR
        + f"""
{CPU}/cpu[0-3]/{cache}/level = 2
{CPU}/cpu[0-3]/{cache}/type = Unified
{CPU}/cpu[0-1]/{cache}/shared_cpu_list = 0-1
{CPU}/cpu[0-1]/{cache}/size = 1M
{CPU}/cpu2/{cache}/size = unknown
{CPU}/cpu3/{cache}/size = 0K
"""
    )
    found = [(str(each.cpus), each.size) for each in seen.machine.topology.caches]
    assert found == [("0-1", 1 << 20), ("2", None), ("3", None)]


def test_it_believes_no_cache_that_leaves_out_its_own_cpu(look: Look) -> None:
    seen = look(
        FOUR
        + f"""
{CPU}/cpu0/cache/index0/level = 1
{CPU}/cpu0/cache/index0/type = Data
{CPU}/cpu0/cache/index0/shared_cpu_map = mask 32 2-3
"""
    )
    assert [str(each.cpus) for each in seen.machine.topology.caches] == ["0"]
    assert seen.causes("topology")[0] == "it leaves out CPU 0, whose cache it describes"


def test_it_ignores_caches_of_no_known_kind(look: Look) -> None:
    seen = look(FOUR + f"{CPU}/cpu0/cache/index0/level = 9\n{CPU}/cpu0/cache/index0/type = Quantum")
    assert seen.machine.topology.caches == ()


def test_it_answers_for_a_tree_with_empty_folders(look: Look) -> None:
    seen = look(f"{CPU}/\n{NODE}/\nproc/")
    assert (seen.machine.topology.cpus, len(seen.machine.topology.nodes)) == ((), 1)
    assert seen.usage.cpu is None
