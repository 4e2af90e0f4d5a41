"""Machines: their CPUs, cores, sockets, NUMA nodes and distances, and what makes two of them alike."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore.cpuset import CpuSet
from numacore.topology import (
    Attributes,
    Cache,
    Cpu,
    Device,
    NumaNode,
    Topology,
    TopologyError,
    content_hash,
    dec_hook,
    enc_hook,
    single_node,
)
from tests.numacore import machines


def read(data: bytes) -> Topology:
    return msgspec.json.decode(data, type=Topology, dec_hook=dec_hook)


def written(topology: Topology) -> bytes:
    return msgspec.json.encode(topology, enc_hook=enc_hook)


def test_it_knows_cpus_nodes_and_sockets() -> None:
    two = machines.TWO
    assert two.online == CpuSet.parse("0-7")
    assert two.offline == CpuSet()
    assert two.numa_ids == (0, 1)
    assert two.sockets == (0, 1)
    assert two.cpu(5) == Cpu(5, socket=1, core=5, numa=1)
    assert two.cpu(8) is None
    assert two.numa_of(CpuSet.parse("3-4")) == (0, 1)
    assert two.numa_of(CpuSet.parse("6")) == (1,)
    assert two.numa_of(CpuSet.parse("99")) == ()
    assert two.socket_of_node(1) == 1


def test_it_keeps_sparse_ids() -> None:
    power = machines.topology({0: "0-7", 8: "8-15", 252: "", 255: ""}, threads=8)
    assert power.numa_ids == (0, 8, 252, 255)
    assert power.distance(8, 255) == 20
    assert power.distance(8, 1) is None
    assert power.threads_per_core() == 8
    assert [str(cpus) for _, cpus in power.cores()] == ["0-7", "8-15"]


def test_it_takes_more_than_64_numa_nodes_and_ids_above_1024() -> None:
    large = machines.topology({node: f"{node * 16}-{node * 16 + 15}" for node in range(128)})
    assert len(large.online) == 2048
    assert large.numa_of(CpuSet([2047])) == (127,)
    assert large.distance(0, 127) == 20
    assert large.socket_of_node(127) == 127


def test_a_node_may_have_memory_or_cpus_alone() -> None:
    assert machines.HBM.nodes[2].cpus == CpuSet()
    assert machines.HBM.socket_of_node(2) is None
    assert machines.HBM.numa_of(CpuSet.parse("0-7")) == (0, 1)


def test_offline_cpus_are_known_and_belong_to_no_core() -> None:
    half = machines.topology({0: "0-3", 1: "4-7"}, offline="1,5-7")
    assert half.online == CpuSet.parse("0,2-4")
    assert half.offline == CpuSet.parse("1,5-7")
    assert half.nodes[1].cpus == CpuSet.parse("4")
    assert sorted(str(cpus) for _, cpus in half.cores()) == ["0", "2", "3", "4"]


def test_distances_need_not_be_symmetric() -> None:
    assert machines.LOPSIDED.distance(0, 1) == 30
    assert machines.LOPSIDED.distance(1, 0) == 20


def test_unknown_distances_stay_unknown() -> None:
    bare = Topology(cpus=(Cpu(0, numa=0),), nodes=(NumaNode(0, CpuSet([0])),))
    assert bare.distance(0, 0) is None


def test_a_node_over_two_sockets_has_none() -> None:
    spread = Topology(
        cpus=(Cpu(0, socket=0, numa=0), Cpu(1, socket=1, numa=0)), nodes=(NumaNode(0, CpuSet([0, 1])),)
    )
    assert spread.socket_of_node(0) is None
    assert spread.sockets == (0, 1)


def test_cores_of_two_sockets_may_share_a_number() -> None:
    alike = Topology(
        cpus=tuple(Cpu(i, socket=i // 2, core=0, numa=0) for i in range(4)),
        nodes=(NumaNode(0, CpuSet.parse("0-3")),),
    )
    assert [(key, str(cpus)) for key, cpus in alike.cores()] == [((0, None, 0), "0-1"), ((1, None, 0), "2-3")]
    assert alike.threads_per_core() == 2


def test_unknown_cores_are_each_their_own_and_tell_no_threads() -> None:
    silent = Topology(cpus=(Cpu(0), Cpu(1)), nodes=(NumaNode(0, CpuSet.parse("0-1")),))
    assert [str(cpus) for _, cpus in silent.cores()] == ["0", "1"]
    assert silent.threads_per_core() is None


def test_a_sibling_is_enough_to_know_a_core_by() -> None:
    known = Topology(
        cpus=(Cpu(0, sibling=0), Cpu(1, sibling=0), Cpu(2)), nodes=(NumaNode(0, CpuSet.parse("0-2")),)
    )
    assert [str(cpus) for _, cpus in known.cores()] == ["0-1", "2"]


def test_sockets_are_told_in_order_and_those_that_nobody_names_are_left_out() -> None:
    numbers = (64, None, 8, 1, 64)
    cpus = tuple(Cpu(at, socket=socket) for at, socket in enumerate(numbers))
    assert Topology(cpus=cpus, nodes=()).sockets == (1, 8, 64)


def test_what_has_no_json_form_is_refused() -> None:
    assert enc_hook(CpuSet.parse("0-3,8")) == "0-3,8"
    with pytest.raises(NotImplementedError, match="no JSON form for complex"):
        enc_hook(1j)
    with pytest.raises(NotImplementedError, match="no JSON form for complex"):
        dec_hook(complex, "1j")


def test_a_machine_without_numa_keeps_its_caches() -> None:
    caches = (Cache(3, "Unified", CpuSet.parse("0-1")),)
    assert single_node((Cpu(0), Cpu(1)), caches).caches == caches


def test_a_machine_without_numa_counts_as_one_node() -> None:
    made = single_node((Cpu(0, socket=0, core=0), Cpu(1, online=False), Cpu(2, socket=0, core=1)))
    assert made.numa is False
    assert made.numa_ids == (0,)
    assert made.nodes[0].cpus == CpuSet.parse("0,2")
    assert made.distance(0, 0) == 10
    assert made.cpu(2) == Cpu(2, socket=0, core=1, numa=0)
    assert made.cpu(1) == Cpu(1, online=False)


@pytest.mark.parametrize(
    ("cpus", "nodes", "message"),
    [
        ((0, 0), (0,), "CPU ids are not ascending and unique: 0 before 0"),
        ((1, 0), (0,), "CPU ids are not ascending and unique: 1 before 0"),
        ((0,), (4, 2), "NUMA node ids are not ascending and unique: 4 before 2"),
        ((0,), (2, 2), "NUMA node ids are not ascending and unique: 2 before 2"),
    ],
)
def test_it_refuses_ids_out_of_order(cpus: tuple[int, ...], nodes: tuple[int, ...], message: str) -> None:
    with pytest.raises(TopologyError, match=f"^{message}$"):
        Topology(cpus=tuple(map(Cpu, cpus)), nodes=tuple(NumaNode(each, CpuSet()) for each in nodes))


def test_it_refuses_a_distance_matrix_of_the_wrong_size() -> None:
    with pytest.raises(TopologyError, match=r"^NUMA node 1 has 3 distances, the machine 2 NUMA nodes$"):
        Topology(cpus=(), nodes=(NumaNode(0, CpuSet(), (10, 20)), NumaNode(1, CpuSet(), (20, 10, 20))))


def changed(**fields: object) -> Topology:
    return msgspec.structs.replace(machines.TWO, **fields)


@pytest.mark.parametrize(
    "other",
    [
        machines.topology({0: "0-3", 2: "4-7"}, [[10, 21], [21, 10]]),
        machines.topology({0: "0-3", 1: "4-7"}, [[10, 21], [22, 10]]),
        machines.topology({0: "0-3", 1: "4-7"}, [[10, 21], [21, 10]], threads=2),
        machines.topology({0: "0-3", 1: "4-7"}, [[10, 21], [21, 10]], offline="7"),
        machines.topology({0: "0-3", 1: "4-7"}, [[10, 21], [21, 10]], node_sockets={0: 0, 1: 0}),
        changed(cpus=(msgspec.structs.replace(machines.TWO.cpus[0], die=1), *machines.TWO.cpus[1:])),
        changed(cpus=(msgspec.structs.replace(machines.TWO.cpus[0], cluster=1), *machines.TWO.cpus[1:])),
        changed(caches=(Cache(3, "Unified", CpuSet.parse("0-3"), 2**20),)),
    ],
    ids=["numa id", "distance", "core", "offline", "socket", "die", "cluster", "cache"],
)
def test_its_hash_tells_machines_apart(other: Topology) -> None:
    assert other.hash != machines.TWO.hash


def test_its_hash_is_of_its_content() -> None:
    again = machines.topology({0: "0-3", 1: "4-7"}, [[10, 21], [21, 10]])
    assert again.hash == machines.TWO.hash
    assert read(written(again)).hash == again.hash
    assert len(again.hash) == 32
    assert content_hash(b"abc") == "ba7816bf8f01cfea414140de5dae2223"  # FIPS 180-2, B.1, first half


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b'{"cpus":[{"id":-1}],"nodes":[]}', "$.cpus[0].id"),
        (b'{"cpus":[{"id":70000}],"nodes":[]}', "$.cpus[0].id"),
        (b'{"cpus":[{"id":"0"}],"nodes":[]}', "$.cpus[0].id"),
        (b'{"cpus":[{"id":0.5}],"nodes":[]}', "$.cpus[0].id"),
        (b'{"cpus":[{"id":0,"core":99999999999999999999}],"nodes":[]}', "$.cpus[0].core"),
        (b'{"cpus":[],"nodes":[{"id":0,"cpus":"0-"}]}', "$.nodes[0].cpus"),
        (b'{"cpus":[],"nodes":[{"id":0,"cpus":7}]}', "$.nodes[0].cpus"),
        (b'{"cpus":[],"nodes":[{"id":0,"cpus":"","distances":[256]}]}', "$.nodes[0].distances[0]"),
        (b'{"cpus":[],"nodes":[{"id":0,"cpus":"","distances":[-1]}]}', "$.nodes[0].distances[0]"),
        (b'{"cpus":[],"nodes":[{"id":0}]}', "cpus"),
        (b'{"cpus":[],"nodes":[],"caches":[{"level":3,"kind":"Odd","cpus":""}]}', "$.caches[0].kind"),
        (b'{"cpus":[],"nodes":[],"caches":[{"level":3,"kind":"Data","cpus":"","size":-1}]}', "size"),
        (b'{"cpus":[{"id":1},{"id":0}],"nodes":[]}', "1 before 0"),
        (b'{"cpus":[],"nodes":[{"id":0,"cpus":"","distances":[10,20]}]}', "has 2 distances"),
    ],
)
def test_a_wrong_field_is_named(data: bytes, field: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        read(data)
    assert field in str(raised.value)


def test_attributes_name_a_wrong_field() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"`key` in `\$.memory`"):
        msgspec.json.decode(b'{"memory":{"-1":5}}', type=Attributes, dec_hook=dec_hook)
    with pytest.raises(msgspec.ValidationError, match=r"\$.devices\[0\].kind"):
        msgspec.json.decode(b'{"devices":[{"address":"a","kind":"odd"}]}', type=Attributes)


def test_a_device_without_a_node_stays_without() -> None:
    data = msgspec.json.encode(Attributes(devices=(Device("0000:00:1f.0", "network"),)))
    assert b"numa" not in data
    assert msgspec.json.decode(data, type=Attributes).devices[0].numa is None


optional = st.none() | st.integers(0, 9)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    cpu_ids = sorted(draw(st.sets(st.integers(0, 4000), max_size=12)))
    node_ids = sorted(draw(st.sets(st.integers(0, 300), max_size=5)))
    homes = {cpu: draw(st.sampled_from([None, *node_ids])) for cpu in cpu_ids}
    row = st.none() | st.tuples(*[st.integers(1, 255) for _ in node_ids])
    return Topology(
        cpus=tuple(
            Cpu(
                cpu,
                draw(optional),
                draw(optional),
                draw(optional),
                draw(optional),
                homes[cpu],
                draw(st.booleans()),
            )
            for cpu in cpu_ids
        ),
        nodes=tuple(
            NumaNode(node, CpuSet(cpu for cpu, home in homes.items() if home == node), draw(row))
            for node in node_ids
        ),
        numa=draw(st.booleans()),
    )


@given(topologies())
def test_it_comes_back_from_json_as_it_was(topology: Topology) -> None:
    again = read(written(topology))
    assert again == topology
    assert again.hash == topology.hash


@given(topologies())
def test_each_online_cpu_is_in_one_core(topology: Topology) -> None:
    listed = [cpu for _, cpus in topology.cores() for cpu in cpus]
    assert sorted(listed) == list(topology.online)


def test_a_sibling_tells_cores_apart_that_share_a_number() -> None:
    halved = Topology(
        cpus=(
            *(Cpu(i, socket=0, core=0, numa=0, sibling=i - i % 2) for i in range(4)),
            Cpu(4, socket=0, core=1),
        ),
        nodes=(NumaNode(0, CpuSet.parse("0-3")),),
    )
    assert [str(cpus) for _, cpus in halved.cores()] == ["0-1", "2-3", "4"]
    assert halved.threads_per_core() == 2
