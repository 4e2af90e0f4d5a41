"""What the browser is given to draw a machine with."""

import json

import pytest

from monitoring.figures import drawing
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.report import node_report
from numacore.topology import Attributes, Cpu, HugePages, NumaNode, Topology
from numacore.usage import MemoryUse, Usage
from tests.monitoring.pages import machines
from tests.monitoring.pages.machines import GIB


def of(facts: Facts) -> dict[str, object]:
    made = drawing.drawing(facts, node_report(facts), 0.1)
    return dict(json.loads(json.dumps(made)))


@pytest.mark.parametrize(
    ("sockets", "numa", "cores", "threads", "most"),
    [(1, 1, 4, 1, 6_000), (2, 2, 12, 2, 12_000), (2, 4, 24, 2, 28_000), (4, 4, 32, 2, 60_000)],
)
def test_it_stays_small(sockets: int, numa: int, cores: int, threads: int, most: int) -> None:
    facts = machines.server(machines.topology(sockets=sockets, numa=numa, cores=cores, threads=threads))
    made = of(facts)
    assert len(json.dumps(made)) < most


def test_it_tells_ownership_and_use_of_every_cpu() -> None:
    made = drawing.cpu_columns(
        *(lambda facts: (facts.topology, node_report(facts).cpus))(
            machines.server(machines.topology(sockets=1, numa=2, cores=4, threads=1))
        )
    )
    assert made["id"] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert made["numa"] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert "".join(made["owner"]) == "rrxsxxss"
    assert all(0 <= share <= 1 for share in made["busy"])


def test_it_groups_by_what_parts_a_numa_node() -> None:
    shared = machines.topology(sockets=1, numa=1, cores=8, threads=2, l3=2)
    assert drawing.groups_of(shared, shared.nodes[0].cpus) == ("L3", ["0-3,8-11", "4-7,12-15"])
    whole = machines.topology(sockets=1, numa=1, cores=8, threads=2)
    assert drawing.groups_of(whole, whole.nodes[0].cpus) == ("", [])


def test_it_groups_by_socket_where_one_numa_node_has_several() -> None:
    cpus = tuple(Cpu(id=each, socket=each // 2, core=each % 2, numa=0) for each in range(4))
    one = Topology(cpus=cpus, nodes=(NumaNode(0, CpuSet(range(4)), (10,)),), numa=False)
    assert drawing.groups_of(one, CpuSet(range(4))) == ("Socket", ["0-1", "2-3"])


def test_it_makes_no_group_of_a_single_core() -> None:
    cpus = tuple(Cpu(id=each, socket=0, die=each, core=each, numa=0) for each in range(4))
    flat = Topology(cpus=cpus, nodes=(NumaNode(0, CpuSet(range(4)), (10,)),))
    assert drawing.groups_of(flat, CpuSet(range(4))) == ("", [])


def test_it_keeps_threads_of_a_core_together_where_core_ids_repeat() -> None:
    cpus = tuple(Cpu(id=each, socket=0, core=0, numa=0, sibling=each % 2) for each in range(4))
    odd = Topology(cpus=cpus, nodes=(NumaNode(0, CpuSet(range(4)), (10,)),))
    made = of(Facts(topology=odd))
    assert made["cpus"]["first"] == [0, 1, 0, 1]


def test_it_leaves_unknown_distances_unknown() -> None:
    blind = machines.topology(sockets=2, numa=1, cores=2, threads=1)
    blind = machines.replaced(
        blind, nodes=tuple(machines.replaced(node, distances=None) for node in blind.nodes)
    )
    assert drawing.distances(blind) == [[None, None], [None, None]]


def test_it_adds_up_huge_pages_of_all_sizes() -> None:
    pools = (HugePages(2 * 1024**2, 512, 128), HugePages(GIB, 2, 1))
    found = drawing.memory(MemoryUse(8 * GIB, 2 * GIB, 6 * GIB, GIB, GIB, pools), None)
    assert found["huge"] == 3 * GIB
    assert found["hugeFree"] == GIB + 256 * 1024**2


def test_it_knows_no_huge_pages_where_one_size_cannot_be_read() -> None:
    pools = (HugePages(2 * 1024**2, 512, 128), HugePages(GIB, None, None))
    assert drawing.memory(MemoryUse(hugepages=pools), None)["huge"] is None


def test_it_shows_the_configured_size_of_memory_whose_use_is_unknown() -> None:
    found = drawing.memory(None, 8 * GIB)
    assert found["total"] == 8 * GIB
    assert found["used"] is None


def test_it_keeps_memory_only_nodes_and_offline_cpus() -> None:
    cpus = (Cpu(0, 0, 0, None, 0, 0), Cpu(1, online=False))
    odd = Topology(cpus=cpus, nodes=(NumaNode(0, CpuSet([0]), (10, 80)), NumaNode(9, CpuSet(), (80, 10))))
    facts = Facts(
        topology=odd, attributes=Attributes(memory={0: GIB, 9: None}), usage=Usage(containers_of="")
    )
    made = drawing.drawing(facts, node_report(facts), 0.1)
    assert [node["count"] for node in made["nodes"]] == [1, 0]
    assert made["nodes"][1]["memory"]["total"] is None
    assert made["cpus"]["numa"] == [0, None]
    assert made["cpus"]["owner"] == ["s", "o"]


def test_it_names_a_container_that_nobody_named_by_its_id() -> None:
    facts = machines.server(machines.topology(sockets=1, numa=1, cores=4, threads=1))
    nameless = machines.replaced(facts.containers[4], pod=None, name=None, id="0123456789abcdef" * 4)
    report = node_report(machines.replaced(facts, containers=(*facts.containers[:4], nameless)))
    assert drawing.title(report.containers[4]) == "unnamed 0123456789ab"
