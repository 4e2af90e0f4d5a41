"""One node's figures from its facts, computed by hand for a machine of two sockets with four CPUs each."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore import report
from numacore.cpuset import CpuSet
from numacore.diagnosis import Reason
from numacore.facts import Facts
from numacore.kubeletstate import CpuManagerState, Kubelet, MemoryManagerState, Setting
from numacore.report import node_report
from numacore.topology import Attributes, Device, Topology
from numacore.usage import ContainerUse, MemoryUse, Rates, Usage
from numacore.workload import Container, DeviceClaim
from tests.numacore import machines

GIB = machines.GIB

WEB = Container(
    id="web",
    qos="Guaranteed",
    cpus=CpuSet.parse("2-3"),
    exclusive=CpuSet.parse("2-3"),
    cpu_limit=2.0,
    memory_limit=4 * GIB,
    devices=(DeviceClaim("example.com/nic", ("eth1",), (1,)),),
)
WIDE = Container(
    id="wide", qos="Guaranteed", cpus=CpuSet.parse("1,5"), exclusive=CpuSet.parse("1,5"), cpu_limit=2.0
)
SHARED = Container(id="shared", qos="Burstable", cpus=CpuSet.parse("0,4,6-7"), exclusive=CpuSet())

KUBELET = Kubelet(
    present=True,
    settings={
        "cpuManagerPolicy": Setting("static", "file"),
        "topologyManagerPolicy": Setting("best-effort", "drop-in"),
        "topologyManagerPolicyOptions": Setting({"prefer-closest-numa-nodes": "true"}, "file"),
    },
    allocatable_cpus=CpuSet.parse("1-7"),
    cpu_state=CpuManagerState(
        "static",
        CpuSet.parse("0,4,6-7"),
        {"u1": {"web": CpuSet.parse("2-3")}, "u2": {"wide": CpuSet.parse("1,5")}},
    ),
    memory_state=MemoryManagerState("None", {}, {}, {}),
)
USAGE = Usage(
    containers_of="h",
    memory={
        0: MemoryUse(total=16 * GIB, used=6 * GIB, free=10 * GIB),
        1: MemoryUse(total=16 * GIB, used=2 * GIB, free=14 * GIB),
    },
    containers=ContainerUse(
        cpu_time=(1, 2, 3),
        memory=(4 * GIB, GIB, None),
        pages={0: (3 * GIB, GIB // 2, None), 1: (GIB, GIB // 2, 5)},
    ),
)
RATES = Rates(
    seconds=10.0,
    busy={0: 0.05, 1: 1.0, 2: 0.5, 3: 0.45, 4: 0.2, 5: 0.0, 6: 0.1},
    cpu_use={"web": 0.95},
    numastat={},
)
NIC = Device("0000:81:00.0", "network", 1, ("eth1",))
FACTS = Facts(
    topology=machines.TWO,
    attributes=Attributes(memory={0: 16 * GIB, 1: 16 * GIB}, devices=(NIC, Device("0000:00:1f.0", "other"))),
    kubelet=KUBELET,
    containers=(WEB, WIDE, SHARED),
    usage=USAGE,
    rates=RATES,
)
REPORT = node_report(FACTS)


def changed(**fields: object) -> Facts:
    return msgspec.structs.replace(FACTS, **fields)


@pytest.mark.parametrize(
    ("cpu", "owner", "busy", "occupied", "containers"),
    [
        (0, "reserved", 0.05, False, ()),
        (1, "exclusive", 1.0, True, (1,)),
        (2, "exclusive", 0.5, True, (0,)),
        (4, "shared", 0.2, True, ()),
        (5, "exclusive", 0.0, True, (1,)),
        (6, "shared", 0.1, False, ()),
        (7, "shared", None, None, ()),
    ],
)
def test_each_cpu_has_an_owner_and_a_use(
    cpu: int, owner: str, busy: float | None, occupied: bool | None, containers: tuple[int, ...]
) -> None:
    found = REPORT.cpus[cpu]
    assert (found.id, found.owner, found.busy, found.occupied) == (cpu, owner, busy, occupied)
    assert found.containers == containers


def test_the_threshold_moves_what_is_occupied() -> None:
    assert node_report(FACTS, busy_threshold=0.25).cpus[4].occupied is False


def test_the_nodes_totals() -> None:
    assert REPORT.exclusive == CpuSet.parse("1-3,5")
    assert REPORT.reserved == CpuSet.parse("0")
    assert REPORT.pool == CpuSet.parse("4,6-7")
    assert (REPORT.pinned, REPORT.pinnable) == (4, 7)
    assert REPORT.busy == pytest.approx(2.3 / 7)
    assert (REPORT.memory_total, REPORT.memory_used) == (32 * GIB, 8 * GIB)
    assert (REPORT.crossing, REPORT.crossing_unknown) == (2, 0)
    assert REPORT.cpu is not None
    assert (REPORT.cpu.requested, REPORT.cpu.allocatable, REPORT.cpu.unknown) == (4.0, 7.0, 1)


def test_each_numa_node() -> None:
    first, second = REPORT.numa
    assert (first.id, first.socket, str(first.cpus)) == (0, 0, "0-3")
    assert first.owners == {"reserved": 1, "exclusive": 3}
    assert second.owners == {"shared": 3, "exclusive": 1}
    assert (first.pinned, first.pinnable) == (3, 3)
    assert (second.pinned, second.pinnable) == (1, 4)
    assert first.busy == pytest.approx(0.5)  # (0.05 + 1 + 0.5 + 0.45) / 4
    assert second.busy == pytest.approx(0.1)  # CPU 7 is unknown: (0.2 + 0 + 0.1) / 3
    assert second.memory is not None
    assert second.memory.used == 2 * GIB
    assert first.devices == ()
    assert second.devices == (NIC,)


def test_a_pinned_container_with_remote_memory_and_device() -> None:
    web = REPORT.containers[0]
    assert web.kind == "exclusive"
    assert web.cpus == CpuSet.parse("2-3")
    assert web.cpu_nodes == (0,)
    assert web.cpu_shares == {0: 1.0}
    assert web.pages == {0: 3 * GIB, 1: GIB}
    assert web.page_shares == {0: 0.75, 1: 0.25}
    assert web.device_nodes == (1,)
    assert web.locality == 0.75
    assert web.cost == pytest.approx(1.275)  # 0.75 x 1.0 + 0.25 x 2.1
    assert web.remote_pages == 0.25
    assert web.cross == ("memory", "device")
    assert (web.cpu_use, web.memory) == (0.95, 4 * GIB)
    assert web.pinning == Reason("pinned", {"cpus": 2})
    assert web.memory_reason == Reason("memory-manager-none", {"policy": "None"})


def test_a_container_over_two_numa_nodes() -> None:
    wide = REPORT.containers[1]
    assert wide.cpu_nodes == (0, 1)
    assert wide.locality == 0.5
    assert wide.cost == pytest.approx(1.55)  # half of the pairs at 10, half at 21
    assert wide.cross == ("cpu",)
    assert wide.remote_pages == 0.0
    assert wide.cpu_use is None
    assert wide.memory_reason is None


def test_unknown_pages_of_one_numa_node_make_all_shares_unknown() -> None:
    shared = REPORT.containers[2]
    assert shared.kind == "floating"
    assert shared.cross == ()
    assert shared.cpu_shares == {0: 0.25, 1: 0.75}
    assert (shared.pages, shared.page_shares) == (None, None)
    assert (shared.locality, shared.cost, shared.remote_pages) == (None, None, None)
    assert shared.memory is None
    assert shared.pinning == Reason("qos", {"qos": "Burstable"})


def test_the_policy_and_what_contradicts_it() -> None:
    policy = REPORT.policy
    assert policy is not None
    assert (policy.topology, policy.scope) == ("best-effort", "container")
    assert policy.topology_options == {"prefer-closest-numa-nodes": "true"}
    assert (policy.cpu, policy.cpu_in_force) == ("static", "static")
    assert policy.contradictions == ()
    asked = msgspec.structs.replace(
        KUBELET,
        settings={
            "cpuManagerPolicy": Setting("none", "file"),
            "memoryManagerPolicy": Setting("Static", "flag"),
        },
    )
    differing = node_report(changed(kubelet=asked)).policy
    assert differing is not None
    assert differing.contradictions == (
        Reason("cpu-policy-differs", {"asked": "none", "in_force": "static"}),
        Reason("memory-policy-differs", {"asked": "Static", "in_force": "None"}),
    )


def test_a_policy_that_nobody_can_read_is_unknown_and_contradicts_nothing() -> None:
    unread = msgspec.structs.replace(KUBELET, settings={}, unread=("/var/lib/kubelet/config.yaml",))
    policy = node_report(changed(kubelet=unread)).policy
    assert policy is not None
    assert (policy.topology, policy.scope, policy.cpu, policy.memory) == (None,) * 4
    assert (policy.cpu_in_force, policy.memory_in_force) == ("static", "None")
    assert policy.contradictions == ()


def test_cpu_time_by_numa_node_beats_an_even_split() -> None:
    times: dict[int, tuple[int | None, ...]] = {0: (0, 90, 0), 1: (0, 10, None)}
    columns = ContainerUse(cpu_time=(1, 2, 3), memory=(), pages={}, cpu_time_by_numa=times)
    measured = Usage(containers_of="h", containers=columns)
    found = node_report(changed(usage=measured)).containers
    assert found[1].cpu_shares == {0: 0.9, 1: 0.1}
    assert found[2].cpu_shares == {0: 0.25, 1: 0.75}  # a part is unknown: even over its CPUs


def test_with_nothing_known_nothing_is_claimed() -> None:
    bare = node_report(Facts(topology=machines.TWO, containers=(Container(id="c"),)))
    assert {cpu.owner for cpu in bare.cpus} == {None}
    assert {cpu.occupied for cpu in bare.cpus} == {None}
    assert [each.owners for each in bare.numa] == [{"unknown": 4}, {"unknown": 4}]
    assert [(each.pinned, each.pinnable, each.busy, each.memory) for each in bare.numa] == [(None,) * 4] * 2
    assert (bare.exclusive, bare.pool, bare.policy, bare.cpu, bare.memory) == (None,) * 5
    assert (bare.pinned, bare.pinnable, bare.busy, bare.memory_total, bare.memory_used) == (None,) * 5
    assert (bare.crossing, bare.crossing_unknown) == (0, 1)
    only = bare.containers[0]
    assert (only.kind, only.cpus, only.cross, only.locality, only.cost) == (None,) * 5
    assert only.pinning == Reason("unknown-kubelet")


@pytest.mark.parametrize(
    ("container", "kind", "cross"),
    [
        (Container(id="c", cpus=CpuSet.parse("0-7")), "floating", ()),
        # perhaps the pool that the kubelet left, perhaps a choice: nobody can say
        (Container(id="c", cpus=CpuSet.parse("0-5")), None, None),
        (Container(id="c", cpus=CpuSet.parse("0-5"), exclusive=CpuSet.parse("0-5")), "exclusive", ("cpu",)),
        # the kubelet has no hand in a service outside Kubernetes
        (Container(id="c", cpus=CpuSet.parse("0-5"), kubernetes=False), "narrowed", ("cpu",)),
    ],
)
def test_with_unknown_ownership_a_smaller_cpuset_means_nothing(
    container: Container, kind: str | None, cross: tuple[str, ...] | None
) -> None:
    found = node_report(
        Facts(
            topology=machines.TWO,
            kubelet=Kubelet(present=True),
            containers=(container, Container(id="silent")),
        )
    )
    assert found.containers[0].kind == kind
    assert found.containers[0].cross == cross


def test_a_plain_machine_shares_all_its_cpus() -> None:
    plain = node_report(Facts(topology=machines.TWO, kubelet=Kubelet(present=False), rates=RATES))
    assert plain.cpus[0].owner == "shared"
    assert plain.pool == CpuSet.parse("0-7")
    assert plain.policy is None
    assert (plain.pinned, plain.pinnable) == (None, None)


def test_reserved_cpus_that_nobody_names_leave_owners_unknown() -> None:
    kubelet = Kubelet(present=True, settings={"cpuManagerPolicy": Setting("static", "file")})
    owned = Container(id="c", exclusive=CpuSet.parse("2"))
    found = node_report(Facts(topology=machines.TWO, kubelet=kubelet, containers=(owned,)))
    assert found.cpus[2].owner == "exclusive"
    assert found.cpus[3].owner is None
    assert found.numa[0].pinned is None
    assert found.pinnable is None


def test_offline_cpus_and_memory_only_nodes() -> None:
    machine = machines.topology({0: "0-3", 4: "4-7", 9: ""}, offline="3,7")
    memory = {node: MemoryUse(total=GIB, used=0) for node in (0, 4, 9)}
    found = node_report(
        Facts(
            topology=machine,
            kubelet=Kubelet(present=False),
            usage=Usage(containers_of="", memory=memory),
            rates=RATES,
        )
    )
    assert found.cpus[3].owner == "offline"
    assert found.cpus[3].occupied is None
    assert found.numa[0].owners == {"shared": 3, "offline": 1}
    assert found.numa[2].owners == {}
    assert found.numa[2].busy is None
    assert found.memory_total == 3 * GIB
    assert found.memory_used == 0


def test_an_exclusive_cpu_that_went_offline_is_not_counted_as_pinned() -> None:
    machine = machines.topology({0: "0-3", 1: "4-7"}, offline="3")
    found = node_report(changed(topology=machine))
    assert found.pinned == 3
    assert [each.pinned for each in found.numa] == [2, 1]


def test_memory_of_a_part_of_the_nodes_is_unknown() -> None:
    half = Usage(containers_of="h", memory={0: MemoryUse(total=GIB, used=1)})
    found = node_report(changed(usage=half))
    assert (found.memory_total, found.memory_used) == (None, None)
    assert found.numa[1].memory is None


@pytest.mark.parametrize(
    "machine", [machines.HBM, machines.CUT_OFF, machines.LOPSIDED, machines.topology({7: "1030-1031"})]
)
def test_facts_that_do_not_fit_the_machine_do_no_harm(machine: Topology) -> None:
    found = node_report(changed(topology=machine))
    assert len(found.containers) == 3
    assert len(found.cpus) == len(machine.cpus)


def test_an_unreachable_numa_node_leaves_the_cost_unknown() -> None:
    reach = Container(id="r", cpus=CpuSet.parse("0-1"), exclusive=CpuSet.parse("0-1"))
    use = ContainerUse(cpu_time=(1,), memory=(1,), pages={0: (GIB,), 1: (GIB,)})
    found = node_report(
        Facts(topology=machines.CUT_OFF, containers=(reach,), usage=Usage(containers_of="", containers=use))
    ).containers[0]
    assert found.cost is None
    assert found.locality == 0.5


cpus = st.none() | st.builds(CpuSet, st.sets(st.integers(0, 9), max_size=6))
containers = st.builds(
    Container,
    id=st.sampled_from("abc"),
    kubernetes=st.booleans(),
    qos=st.sampled_from([None, "Guaranteed", "Burstable", "BestEffort"]),
    cpus=cpus,
    exclusive=cpus,
    cpu_limit=st.sampled_from([None, "max", 1.0, 1.5]),
)
kubelets = st.none() | st.builds(
    Kubelet, present=st.sampled_from([None, True, False]), allocatable_cpus=cpus, cpu_state=st.none()
)
columns = st.lists(st.none() | st.integers(0, GIB), max_size=4).map(tuple)
usages = st.none() | st.builds(
    Usage,
    containers_of=st.just("h"),
    containers=st.none()
    | st.builds(
        ContainerUse, cpu_time=columns, memory=columns, pages=st.dictionaries(st.integers(0, 3), columns)
    ),
)


@given(st.lists(containers, max_size=4).map(tuple), kubelets, usages)
def test_its_figures_agree_with_each_other(
    containers: tuple[Container, ...], kubelet: Kubelet | None, usage: Usage | None
) -> None:
    found = node_report(
        Facts(topology=machines.HBM, kubelet=kubelet, containers=containers, usage=usage, rates=RATES)
    )
    online = [cpu for cpu in found.cpus if cpu.owner != "offline"]
    assert sum(sum(each.owners.values()) for each in found.numa) == len(found.cpus)
    assert found.crossing + found.crossing_unknown <= len(found.containers)
    if found.exclusive is not None and found.reserved is not None:
        assert all(cpu.owner is not None for cpu in online)
        assert {cpu.id for cpu in online if cpu.owner == "exclusive"} == set(found.exclusive) & set(range(8))
    if found.pinned is not None:
        assert found.pinned <= 8
    for each in found.containers:
        assert each.locality is None or 0 <= each.locality <= 1
        assert each.cost is None or each.cost >= 1 - 1e-9
        assert (each.kind is None) <= (each.cross is None)


def test_it_is_written_as_json() -> None:
    data = msgspec.json.encode(REPORT, enc_hook=report_hook)
    assert b'"cpus":"2-3"' in data
    assert msgspec.json.decode(data)["containers"][0]["container"]["id"] == "web"


def report_hook(value: object) -> object:
    assert isinstance(value, CpuSet)
    return str(value)


def test_a_report_is_a_value() -> None:
    with pytest.raises(AttributeError):
        REPORT.pinned = 1  # type: ignore[misc]
    assert report.node_report(FACTS) == REPORT
