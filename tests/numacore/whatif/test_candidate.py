"""Nodes as candidates: what of their facts is taken over, what is assumed, and when nobody can judge."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from numacore.cpuset import CpuSet
from numacore.kubelet import node
from numacore.kubelet.pod import Container as Asked
from numacore.kubelet.pod import Pod
from numacore.kubeletstate import CpuManagerState, Kubelet, MemoryManagerState, MemoryTable, Setting
from numacore.whatif import candidate
from numacore.workload import DeviceClaim, MemoryBlock
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
    assert [made.cpus[cpu].numa for cpu in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]


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


def test_settings_of_a_wrong_type_are_named() -> None:
    code, values = problem(kubelet(topologyManagerPolicy=Setting(7, "file")))
    assert code == "settings-wrong"
    assert "topologyManagerPolicy" in str(values["message"])


def test_settings_that_no_kubelet_starts_with_are_told_in_its_words() -> None:
    code, values = problem(kubelet(topologyManagerPolicy=Setting("strict", "file")))
    assert code == "would-not-start"
    assert "strict" in str(values["message"])


def test_unknown_memory_of_a_numa_node_is_not_taken_for_none() -> None:
    seen = facts()
    attributes = msgspec.structs.replace(seen.attributes, memory={0: 16 * GIB})
    found = candidate.of_facts("n1", msgspec.structs.replace(seen, attributes=attributes))
    assert found.problem is not None
    assert (found.problem.code, found.problem.values) == ("memory-unknown", {"numa": "1"})


def test_a_device_that_another_pod_holds_is_no_reason_to_refuse_the_next() -> None:
    """An exporter knows no free devices; judging them would refuse every pod that asks for one."""
    known = facts()
    holder = msgspec.structs.replace(
        known.containers[0], devices=(DeviceClaim("vendor.example/gpu", ("0",), (1,)),)
    )
    found = nodes.candidate_of(msgspec.structs.replace(known, containers=(holder,)))
    asked = {"cpu": "2", "memory": "1Gi", "vendor.example/gpu": "1"}
    assert node.admit(found, Pod("new", (Asked("app", asked, asked),)))[1].admitted
