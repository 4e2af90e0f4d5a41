"""Every server model, read back by the real exporter, is the machine that was meant."""

import pytest

from numacore.cpuset import CpuSet
from numasim import models, scenario
from tests.numasim.conftest import Grow, Read


@pytest.mark.parametrize("name", models.MODELS)
def test_it_is_read_back_as_it_was_meant(name: str, grow: Grow, read: Read) -> None:
    tree = grow(scenario.plain(name, name, containers=8))
    found, meant = read(tree.root).machine, tree.node.spec.machine
    assert found.topology == meant.topology
    assert found.topology.hash == meant.topology.hash
    told, wanted = found.attributes, meant.attributes
    assert told.memory == wanted.memory
    assert told.devices == wanted.devices
    assert told.performance == wanted.performance
    assert told.memory_tiers == wanted.memory_tiers
    assert (told.arch, told.kernel, told.os, told.model) == (
        wanted.arch,
        wanted.kernel,
        wanted.os,
        wanted.model,
    )
    sizes = {node: {pages.page_size: pages.total for pages in row} for node, row in told.hugepages.items()}
    assert sizes == {n: {p.page_size: p.total for p in row} for n, row in wanted.hugepages.items()}


@pytest.mark.parametrize(
    ("name", "cpus", "numa", "sockets", "threads"),
    [
        ("xeon-snc", 112, (0, 1, 2, 3), (0, 1), 2),
        ("epyc-nps4", 384, (0, 1, 2, 3, 4, 5, 6, 7), (0, 1), 2),
        ("kunpeng-920", 128, (0, 1, 2, 3), (0, 1), 1),
        ("grace", 144, (0, 1, 2, 10, 18, 26), (0, 1), 1),
        ("laptop", 20, (0,), (0,), 2),
        ("power-smt8", 192, (0, 8), (0, 8), 8),
        ("half-dark", 96, (0, 1, 2), (0, 1, 2), 2),
        ("cxl", 96, (0, 1, 2), (0, 1), 2),
        ("superdome", 1024, tuple(range(16)), tuple(range(8)), 2),
        ("high-ids", 64, (0, 65), (0, 32), 2),
        ("edge", 8, (0,), (0,), 1),
    ],
)
def test_it_has_the_size_of_its_kind(
    name: str, cpus: int, numa: tuple[int, ...], sockets: tuple[int, ...], threads: int
) -> None:
    topology = models.model(name).topology
    assert len(topology.cpus) == cpus
    assert (topology.numa_ids, topology.sockets) == (numa, sockets)
    assert topology.threads_per_core() == threads


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("kunpeng-920", "node/node1/distance", "12 10 22 24\n"),
        ("kunpeng-920", "node/node3/cpulist", "96-127\n"),
        ("kunpeng-920", "cpu/cpu37/topology/cluster_cpus_list", "36-39\n"),
        ("kunpeng-920", "node/node0/cpumap", "00000000,00000000,00000000,ffffffff\n"),
        ("epyc-nps4", "node/node5/distance", "32 32 32 32 12 10 12 12\n"),
        ("epyc-nps4", "cpu/cpu9/cache/index3/shared_cpu_list", "8-15,200-207\n"),
        ("epyc-nps4", "cpu/cpu9/topology/thread_siblings_list", "9,201\n"),
        ("grace", "node/node10/cpulist", "\n"),
        ("grace", "node/has_cpu", "0-1\n"),
        ("grace", "node/has_memory", "0-2,10,18,26\n"),
        ("power-smt8", "cpu/cpu13/topology/thread_siblings_list", "8-15\n"),
        ("power-smt8", "cpu/cpu13/topology/core_id", "8\n"),
        ("half-dark", "cpu/offline", "14-15,40,62-63,80-83\n"),
        ("half-dark", "cpu/cpu14/online", "0\n"),
        ("half-dark", "node/has_memory", "0-1\n"),
        ("cxl", "node/node2/access1/initiators/read_latency", "255\n"),
        ("high-ids", "node/node65/cpulist", "2048-2079\n"),
        ("xeon-snc", "cpu/cpu0/cache/index3/shared_cpu_list", "0-27,56-83\n"),
        ("laptop", "cpu/cpu13/cache/index2/shared_cpu_list", "12-15\n"),
    ],
)
def test_it_prints_what_such_a_kernel_prints(name: str, file: str, text: str, grow: Grow) -> None:
    tree = grow(scenario.plain(name, name, containers=6))
    assert (tree.root / "sys/devices/system" / file).read_text() == text


def test_it_leaves_an_offline_cpu_without_topology(grow: Grow) -> None:
    root = grow(scenario.plain("half-dark", "half-dark")).root
    folder = root / "sys/devices/system/cpu/cpu14"
    assert [path.name for path in folder.iterdir()] == ["online"]
    assert not (root / "sys/devices/system/node/node0/cpu14").exists()


def test_it_has_no_numa_nodes_where_the_kernel_knows_none(grow: Grow, read: Read) -> None:
    tree = grow(scenario.plain("edge", "edge"))
    assert not (tree.root / "sys/devices/system/node").exists()
    topology = read(tree.root).machine.topology
    assert not topology.numa
    assert topology.nodes[0].cpus == CpuSet(range(8))


def test_it_names_the_models_when_one_is_unknown() -> None:
    with pytest.raises(
        models.UnknownModelError, match="no server model is named 'vax'; there are: xeon-snc, epyc"
    ):
        models.model("vax")
