"""Nodes as candidates: what of their facts is taken over, what is assumed, and when nobody can judge."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.kubelet import node
from numacore.kubelet.pod import Container as Asked
from numacore.kubelet.pod import Pod
from numacore.kubeletstate import CpuManagerState, Kubelet, MemoryManagerState, MemoryTable, Setting
from numacore.volcano.topology import Cpu
from numacore.whatif import candidate
from numacore.workload import Container, DeviceClaim, MemoryBlock
from tests.numacore import machines
from tests.numacore.whatif import nodes
from tests.numacore.whatif.nodes import GIB, facts, kubelet


def problem(told: Kubelet | None) -> tuple[str, dict[str, str | int | float]]:
    found = candidate.of_facts("n1", msgspec.structs.replace(facts(), kubelet=told))
    assert found.kubelet is None
    assert found.problem is not None
    return found.problem.code, found.problem.values


def test_a_live_node_goes_on_from_what_its_pods_hold() -> None:
    found = nodes.candidate_of(facts())
    assert node.shared_pool(found) == CpuSet.parse("0,3-7")
    asked = Pod("new", (Asked("app", {"cpu": "4", "memory": "1Gi"}, {"cpu": "4", "memory": "1Gi"}),))
    _, verdict = node.admit(found, asked)
    assert verdict.placements["app"].cpus == CpuSet.parse("4-7")


def test_what_a_gone_pod_still_holds_in_the_state_file_is_free_for_the_next() -> None:
    state = CpuManagerState(
        "static", CpuSet.parse("0,3"), nodes.HELD | {"gone": {"app": CpuSet.parse("4-7")}}
    )
    found = nodes.candidate_of(facts(kubelet(cpu_state=state)))
    asked = Pod("new", (Asked("app", {"cpu": "4", "memory": "1Gi"}, {"cpu": "4", "memory": "1Gi"}),))
    after, verdict = node.admit(found, asked)
    assert verdict.placements["app"].cpus == CpuSet.parse("4-7")
    assert "gone" not in after.state.cpu.assignments


def test_memory_that_pods_hold_is_taken_over() -> None:
    table = {"memory": MemoryTable(16 * GIB, 0, 16 * GIB, 10 * GIB, 6 * GIB)}
    free = {"memory": MemoryTable(16 * GIB, 100 << 20, (16 * GIB) - (100 << 20), 0, (16 * GIB) - (100 << 20))}
    state = MemoryManagerState(
        "Static",
        {0: table, 1: free},
        {0: (0,), 1: (1,)},
        {"u1": {"web": (MemoryBlock("memory", 10 * GIB, (0,)),)}},
    )
    reserved = Setting([{"numaNode": 1, "limits": {"memory": "100Mi"}}], "file")
    told = kubelet(memory_state=state, memoryManagerPolicy=Setting("Static", "file"), reservedMemory=reserved)
    found = nodes.candidate_of(facts(told))
    assert [(each.assignments, each.memory["memory"].free) for each in found.state.memory.nodes.values()] == [
        (1, 6 * GIB),
        (0, 16 * GIB - (100 << 20)),
    ]


def test_it_makes_the_object_that_the_resource_exporter_would_write() -> None:
    told = kubelet(
        kubeReserved=Setting({"cpu": "500m"}, "file"), systemReserved=Setting({"cpu": "1"}, "drop-in")
    )
    made = candidate.of_facts("n1", facts(told)).volcano
    assert made is not None
    assert (made.cpu_manager, made.topology_manager) == ("static", "restricted")
    assert made.allocatable == CpuSet.parse("0,3-7")
    assert made.reserved == Fraction(3, 2)
    assert made.cpus == {cpu: Cpu(cpu // 4, cpu // 4, cpu) for cpu in range(8)}


def test_equal_machines_share_one_table_of_their_cpus() -> None:
    first, second = (candidate.of_facts(name, facts()).volcano for name in ("n1", "n2"))
    small = machines.topology({0: "0-3", 1: "4-5"})
    other = candidate.of_facts("n3", msgspec.structs.replace(facts(), topology=small)).volcano
    assert first is not None
    assert second is not None
    assert other is not None
    assert first.cpus is second.cpus
    assert set(other.cpus) == set(range(6))


def test_the_room_is_what_pods_have_not_asked_for() -> None:
    room = candidate.of_facts("n1", facts()).room
    assert room["cpu"] == candidate.Room(Fraction(2), Fraction(7))


@pytest.mark.parametrize(
    ("version", "minor", "assumed"),
    [
        ("v1.35.1", 35, None),
        (None, 37, "version-assumed"),
        ("v1.28.4", 28, "version-documents"),
        ("v1.44.0", 37, "version-nearest"),
        ("v1.18.9", 21, "version-nearest"),
    ],
)
def test_it_says_what_it_assumes_of_the_version(version: str | None, minor: int, assumed: str | None) -> None:
    told = msgspec.structs.replace(kubelet(), version=version)
    found = candidate.of_facts("n1", facts(told))
    assert found.kubelet is not None
    assert found.kubelet.settings.minor == minor
    assert [each.code for each in found.assumed] == ([assumed] if assumed else [])


def test_a_plain_machine_and_a_silent_one_cannot_be_judged() -> None:
    assert problem(None) == ("kubelet-unknown", {})
    assert problem(Kubelet()) == ("kubelet-unknown", {})
    assert problem(Kubelet(present=False)) == ("no-kubelet", {})


def test_settings_that_nobody_can_read_are_not_guessed() -> None:
    told = msgspec.structs.replace(kubelet(), unread=("/etc/kubelet.conf.d/20.conf",))
    assert problem(told) == ("settings-unread", {"file": "/etc/kubelet.conf.d/20.conf"})


def test_settings_that_wait_for_a_restart_are_named() -> None:
    state = CpuManagerState("none", CpuSet(), {})
    assert problem(kubelet(cpu_state=state)) == (
        "policy-pending",
        {"manager": "cpu", "asked": "static", "in_force": "none"},
    )


def test_an_unread_state_file_is_not_taken_for_an_empty_one() -> None:
    assert problem(kubelet(cpu_state=None)) == ("state-unknown", {"manager": "cpu"})


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("topologyManagerPolicy", 7, "topologyManagerPolicy"),
        ("systemReserved", {"memory": "much"}, "much"),
        ("reservedSystemCPUs", "0-", "0-"),
    ],
)
def test_settings_that_nobody_can_read_are_told_with_what_is_wrong(
    field: str, value: object, words: str
) -> None:
    code, values = problem(kubelet(**{field: Setting(value, "file")}))
    assert code == "settings-wrong"
    assert words in str(values["message"])


def seventeen() -> Facts:
    """A machine with as many NUMA nodes, one CPU each, and a kubelet that takes more."""
    on = machines.topology({at: str(at) for at in range(17)})
    told = kubelet(topologyManagerPolicyOptions=Setting({"max-allowable-numa-nodes": "64"}, "file"))
    return msgspec.structs.replace(facts(told), topology=on, attributes=machines.attributes(on))


NO_START: list[tuple[str, Facts, str]] = [
    ("refuses", facts(kubelet(topologyManagerPolicy=Setting("strict", "file"))), "strict"),
    ("enumerates without end", seventeen(), "17 NUMA nodes"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("known", "words"), [each[1:] for each in NO_START], ids=[each[0] for each in NO_START]
)
def test_a_kubelet_that_could_not_start_on_its_settings_is_told_in_its_words(
    known: Facts, words: str
) -> None:
    found = candidate.of_facts("n1", known).problem
    assert found is not None
    assert found.code == "would-not-start"
    assert words in str(found.values["message"])


@pytest.mark.parametrize(("memory", "named"), [({0: 16 * GIB}, "1"), ({}, "0, 1")])
def test_unknown_memory_of_a_numa_node_is_not_taken_for_none(
    memory: dict[int, int | None], named: str
) -> None:
    seen = facts()
    attributes = msgspec.structs.replace(seen.attributes, memory=memory)
    found = candidate.of_facts("n1", msgspec.structs.replace(seen, attributes=attributes))
    assert found.problem is not None
    assert (found.problem.code, found.problem.values) == ("memory-unknown", {"numa": named})


def test_without_the_static_policy_no_state_file_is_missed() -> None:
    told = kubelet(cpuManagerPolicy=Setting("none", "file"), cpu_state=None)
    found = candidate.of_facts("n1", facts(told))
    assert found.problem is None
    assert found.kubelet is not None
    assert found.kubelet.state.cpu.assignments == {}
    assert found.volcano is not None
    assert found.volcano.allocatable == CpuSet.parse("0-7")


def test_a_share_of_memory_as_the_eviction_threshold_leaves_its_room_unknown() -> None:
    told = kubelet(evictionHard=Setting({"memory.available": "5%"}, "file"))
    assert set(candidate.of_facts("n1", facts(told)).room) == {"cpu"}


def test_a_device_that_another_pod_holds_is_no_reason_to_refuse_the_next() -> None:
    """An exporter knows no free devices; judging them would refuse every pod that asks for one."""
    known = facts()
    holder = msgspec.structs.replace(
        known.containers[0], devices=(DeviceClaim("vendor.example/gpu", ("0",), (1,)),)
    )
    found = nodes.candidate_of(msgspec.structs.replace(known, containers=(holder,)))
    asked = {"cpu": "2", "memory": "1Gi", "vendor.example/gpu": "1"}
    assert node.admit(found, Pod("new", (Asked("app", asked, asked),)))[1].admitted


def test_what_a_container_holds_that_does_not_run_any_more_stays_the_pods() -> None:
    """An init container of u1 has ended; its CPUs stand in the state file and may be used again by its pod alone."""
    state = CpuManagerState(
        "static", CpuSet.parse("0,4-7"), {"u1": {"web": CpuSet.parse("1-2"), "setup": CpuSet.parse("3")}}
    )
    found = nodes.candidate_of(facts(kubelet(cpu_state=state)))
    asked = Pod("new", (Asked("app", {"cpu": "4", "memory": "1Gi"}, {"cpu": "4", "memory": "1Gi"}),))
    after, _ = node.admit(found, asked)
    assert set(after.state.cpu.assignments["u1"]) == {"web", "setup"}


GPU = "vendor.example/gpu"


def test_devices_are_held_by_pods_and_by_whoever_only_the_socket_knows() -> None:
    known = facts(
        kubelet(allocatable_devices=(DeviceClaim(GPU, ("a", "b"), (0,)), DeviceClaim(GPU, ("c",), (1,))))
    )
    (web,) = known.containers
    first = msgspec.structs.replace(web, devices=(DeviceClaim(GPU, ("a",), (0,)),))
    second = msgspec.structs.replace(web, id="c2", name="log", devices=(DeviceClaim(GPU, ("b",), (0,)),))
    nobody = msgspec.structs.replace(
        web,
        id="shop/web-0/app",
        pod_uid=None,
        name=None,
        devices=(DeviceClaim(GPU, ("c",), (1,)), DeviceClaim("other/x", ("z",), ())),
    )
    service = Container(id="system.slice/sshd.service", name="sshd.service", kubernetes=False)
    found = candidate.of_facts(
        "n1", msgspec.structs.replace(known, containers=(first, second, nobody, service))
    )
    assert found.kubelet is not None
    devices = found.kubelet.state.devices
    assert devices.pods == {
        "u1": {"web": {GPU: {"a": (0,)}}, "log": {GPU: {"b": (0,)}}},
        "shop/web-0/app": {"": {GPU: {"c": (1,)}}},
    }
    assert devices.allocated == {GPU: {"a", "b", "c"}}
    assert found.devices_known
    assert found.room[GPU] == candidate.Room(Fraction(3), Fraction(3))
    assert found.kubelet.state.pods == {
        "u1": Pod("u1", (Asked("log"), Asked("web"))),
        "shop/web-0/app": Pod("shop/web-0/app", ()),
    }
    assert list(found.kubelet.state.pods) == ["shop/web-0/app", "u1"]


def test_the_room_of_memory_and_what_nobody_knows_of_it() -> None:
    known = facts()
    (web,) = known.containers
    other = msgspec.structs.replace(
        web, id="c2", pod_uid="u2", qos="Burstable", exclusive=CpuSet(), memory_limit=None
    )
    found = candidate.of_facts("n1", msgspec.structs.replace(known, containers=(web, other)))
    eviction = 100 << 20
    assert found.room["memory"] == candidate.Room(Fraction(10 * GIB), Fraction(32 * GIB - eviction), 1)
    assert found.room["cpu"].unknown == 1


def test_an_object_of_volcanos_own_is_taken_as_it_is() -> None:
    mine = candidate.numatopology(facts(), nodes.candidate_of(facts()).settings)
    other = msgspec.structs.replace(mine, topology_manager="best-effort")
    assert candidate.of_facts("n1", facts(), other).volcano == other


def test_offline_cpus_and_those_of_no_numa_node_are_not_exported() -> None:
    known = facts()
    cpus = list(known.topology.cpus)
    cpus[7] = msgspec.structs.replace(cpus[7], online=False)
    cpus[6] = msgspec.structs.replace(cpus[6], numa=None)
    cpus[5] = msgspec.structs.replace(cpus[5], socket=None, core=None)
    bent = msgspec.structs.replace(known, topology=msgspec.structs.replace(known.topology, cpus=tuple(cpus)))
    made = candidate.numatopology(bent, nodes.candidate_of(known).settings)
    assert sorted(made.cpus) == [0, 1, 2, 3, 4, 5]
    assert (made.cpus[5].numa, made.cpus[5].socket, made.cpus[5].core) == (1, 0, 0)
    assert made.allocatable == bent.topology.online - CpuSet.parse("1-2")


def test_amounts_that_nobody_reserves_are_none_to_the_resource_exporter() -> None:
    told = kubelet(kubeReserved=Setting({"memory": "1Gi"}, "file"), systemReserved=Setting(None, "file"))
    made = candidate.numatopology(facts(told), nodes.candidate_of(facts()).settings)
    assert made.reserved == 0
    unread = candidate.numatopology(
        msgspec.structs.replace(facts(), kubelet=None), nodes.candidate_of(facts()).settings
    )
    assert unread.reserved == 0
    assert unread.allocatable == facts().topology.online


def test_a_memory_file_that_cannot_be_read_or_is_of_another_policy_is_named() -> None:
    static = {
        "memoryManagerPolicy": Setting("Static", "file"),
        "reservedMemory": Setting([{"numaNode": 0, "limits": {"memory": "100Mi"}}], "file"),
    }
    assert problem(kubelet(**static)) == ("state-unknown", {"manager": "memory"})
    none = MemoryManagerState("None", {}, {}, {})
    assert problem(kubelet(memory_state=none, **static)) == (
        "policy-pending",
        {"manager": "memory", "asked": "Static", "in_force": "None"},
    )


def test_what_is_assumed_is_said_with_the_versions() -> None:
    found = [candidate.minor_of(version)[1] for version in (None, "v1.44.0", "v1.28.4")]
    assert [[each.values for each in assumed] for assumed in found] == [
        [{"version": "1.37"}],
        [{"version": "1.44", "nearest": "1.37"}],
        [{"version": "1.28"}],
    ]
    assert candidate.minor_of("1.36.0")[0] == 36
