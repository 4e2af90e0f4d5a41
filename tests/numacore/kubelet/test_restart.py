"""Would the kubelet survive a restart now: its files against machine, settings and pods."""

import json
from typing import Any

import msgspec
import pytest

from numacore.hints import mask_of
from numacore.kubelet import checkpoint, memory_manager, node, options
from numacore.kubelet.choices import Choices
from numacore.kubelet.device_manager import Device
from numacore.kubelet.errors import NIL_POINTER, StartError
from numacore.kubelet.machine import Machine
from numacore.kubelet.node import StateFiles
from numacore.kubelet.restart import survival
from numacore.kubelet.settings import MemoryReservation
from numacore.workload import MemoryBlock
from tests.numacore.kubelet.builders import container, machine, pod, running, settings

PODS = (pod("a", container(cpu="3")), pod("b", container(cpu="2", memory="2Gi")))


def left(policy: str = "restricted") -> StateFiles:
    now = running(policy)
    for each in PODS:
        now, _ = node.admit(now, each)
    return node.state_files(now)


def test_nothing_changed_nothing_lost() -> None:
    found = survival(settings("restricted"), machine(), left(), PODS)
    assert found.survives
    assert (found.refusal, found.lost) == ("", ())


def drifted(by: int) -> Machine:
    first, *others = machine().nodes
    return Machine((msgspec.structs.replace(first, memory=first.memory + by), *others))


@pytest.mark.parametrize("by", [4096, -4096])
def test_memory_that_drifts_with_a_reboot_is_named_with_its_amounts(by: int) -> None:
    """kubernetes/kubernetes#131253: the kubelet's own words do not say where."""
    found = survival(settings("restricted"), drifted(by), left(), PODS)
    assert not found.survives
    assert found.refusal == "[memorymanager] the expected machine state is different from the real one"
    total = machine().nodes[0].memory
    told = {(each.node, each.field, each.kind): (each.state, each.expected) for each in found.differences}
    assert told[0, "TotalMemSize", "memory"] == (total, total + by)
    assert {at for at, _, _ in told} == {0}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"cpu_manager_policy": "none"},
            'could not restore state from checkpoint: configured policy "none" differs from state checkpoint policy "static"',
        ),
        (
            {"memory_manager_policy": "None"},
            'could not restore state from checkpoint: [memorymanager] configured policy "None" differs from state '
            'checkpoint policy "Static"',
        ),
        (
            {"cpu_manager_policy_options": {options.STRICT_RESERVATION: "true"}},
            'some of strictly reserved cpus: "0" are present in defaultCpuSet: "0,6-15"',
        ),
        ({"reserved_system_cpus": "2"}, 'not all reserved cpus: "2" are present in defaultCpuSet: "0,6-15"'),
        (
            {"reserved_memory": (MemoryReservation(1, {"memory": "1Gi"}),)},
            "[memorymanager] the expected machine state is different from the real one",
        ),
    ],
)  # fmt: skip
def test_changed_settings_meet_old_files(changes: dict[str, Any], words: str) -> None:
    found = survival(settings("restricted", **changes), machine(), left(), PODS)
    assert found.refusal.startswith(words)
    assert not found.panics


def test_cpus_that_went_offline_are_missed() -> None:
    fewer = Machine(tuple(msgspec.structs.replace(each, cores=each.cores[:-1]) for each in machine().nodes))
    found = survival(settings("restricted"), fewer, left(), PODS)
    assert (
        found.refusal == 'current set of available CPUs "0-5,8-13" doesn\'t match with CPUs in state "0-15"'
    )


def test_a_damaged_file_stops_it() -> None:
    files = left()
    table = json.loads(files.memory or "") | {"dataChecksum": 1}
    found = survival(settings("restricted"), machine(), StateFiles(files.cpu, json.dumps(table)), PODS)
    assert "could not load v3 checkpoint: checkpoint is corrupted" in found.refusal


def test_pods_that_a_stricter_policy_would_not_take_on_again_are_named() -> None:
    wide = pod("wide", container(cpu="10"))
    now, _ = node.admit(running("best-effort"), wide)
    found = survival(settings("single-numa-node"), machine(), node.state_files(now), (wide,))
    assert not found.refusal
    assert [(each.pod.uid, each.verdict.reason) for each in found.lost] == [("wide", "TopologyAffinityError")]


MEBI = 1 << 20


def torn(last: str) -> StateFiles:
    """A pod's memory on both NUMA nodes, another's on the first alone; `last` came last and says what the first node's group is."""
    before = running("best-effort").state
    memory = before.memory.copied()
    held = {
        "wide": MemoryBlock("memory", 512 * MEBI, (0, 1)),
        "alone": MemoryBlock("memory", 512 * MEBI, (0,)),
    }
    for uid in sorted(held, key=lambda uid: uid == last):
        memory.charge(mask_of(held[uid].numa), "memory", held[uid].size)
        memory.assign(uid, "c", (held[uid],))
    return node.state_files(
        msgspec.structs.replace(running("best-effort"), state=msgspec.structs.replace(before, memory=memory))
    )


@pytest.mark.parametrize("last", ["wide", "alone"])
def test_where_groups_overlap_it_is_chance_whether_the_kubelet_starts(last: str) -> None:
    """tests/oracle/found/restart-by-chance.json: the loudest answer is given, and that it may go well."""
    pods = [pod(uid, container(memory="512Mi")) for uid in ("alone", "wide")]
    found = survival(settings("best-effort"), machine(), torn(last), pods)
    assert found.refusal == "[memorymanager] the expected machine state is different from the real one"
    assert found.chance
    assert {each.field for each in found.differences} <= {"cells", "free", "reserved"}


def test_with_many_pods_in_overlapping_groups_not_every_order_is_gone_through() -> None:
    """30 pods have more orders than can be tried; the search ends and still knows both answers."""
    before = running("best-effort").state
    memory = before.memory.copied()
    for at in range(30):
        block = MemoryBlock("memory", 16 * MEBI, (0, 1) if at % 2 else (0,))
        memory.charge(mask_of(block.numa), "memory", block.size)
        memory.assign(f"p{at}", "c", (block,))
    state = msgspec.structs.replace(before, memory=memory)
    files = node.state_files(msgspec.structs.replace(running("best-effort"), state=state))
    assert survival(settings("best-effort"), machine(), files).chance


def test_a_wrong_number_of_assignments_is_named() -> None:
    before = running("best-effort")
    memory = before.state.memory.copied()
    memory.nodes[1] = msgspec.structs.replace(memory.nodes[1], assignments=3)
    state = msgspec.structs.replace(before.state, memory=memory)
    files = node.state_files(msgspec.structs.replace(before, state=state))
    found = survival(settings("best-effort"), machine(), files)
    assert [(each.node, each.field, each.state, each.expected) for each in found.differences] == [
        (1, "numberOfAssignments", 3, 0)
    ]


def test_a_kubelet_whose_file_never_fits_has_no_chance() -> None:
    assert not survival(settings("best-effort"), drifted(4096), torn("wide"), ()).chance


def test_a_group_with_a_numa_node_that_was_never_there_ends_the_kubelet() -> None:
    before = running("best-effort")
    memory = before.state.memory.copied()
    memory.nodes[0] = msgspec.structs.replace(memory.nodes[0], cells=(0, 7))
    state = msgspec.structs.replace(before.state, memory=memory)
    files = node.state_files(msgspec.structs.replace(before, state=state))
    found = survival(settings("best-effort"), machine(), files)
    assert (found.panics, found.refusal) == (True, NIL_POINTER)


def test_each_pod_on_a_numa_node_that_is_gone_may_be_the_one_that_is_named() -> None:
    now = running("best-effort")
    for uid, memory in (("a", "6Gi"), ("b", "4Gi"), ("c", "3Gi")):
        now, _ = node.admit(now, pod(uid, container(memory=memory)))
    one = Machine(machine().nodes[:1])
    state = checkpoint.restore_memory(node.state_files(now).memory, settings())
    policy = memory_manager.policy(settings(), one)
    assert policy is not None
    with pytest.raises(StartError) as stopped:
        policy.validate(state, False, Choices())
    gone = [uid for uid, held in state.assignments.items() if held["c"][0].numa == (1,)]
    assert gone == ["b", "c"]
    assert [str(stopped.value), *stopped.value.alternatives] == [
        f"[memorymanager] (pod: {uid}, container: c) the memory assignment uses the NUMA that does not exist"
        for uid in gone
    ]


def test_without_files_everything_is_placed_anew() -> None:
    assert survival(settings("restricted"), machine(), StateFiles(), PODS).survives


def test_a_kubelet_that_takes_its_pods_on_again_may_die_of_a_device_that_is_gone() -> None:
    gpu = "example.com/gpu"
    devices = (Device("a", (0,)), Device("b", (1,)))
    now, _ = node.admit(running("restricted"), PODS[0])
    asked = pod("g", container(gpu="1"))
    now, verdict = node.admit(node.report_devices(now, {gpu: devices}), asked)
    (held,) = verdict.placements["c"].devices[gpu].ids
    rest = tuple(each for each in devices if each.id != held)
    left_, gone = node.state_files(now), node.report_devices(now, {gpu: rest}).state
    found = survival(settings("restricted"), machine(), left_, (PODS[0], asked), gone)
    assert (found.survives, found.panics, found.refusal) == (False, True, NIL_POINTER)
    assert [(each.pod.uid, each.verdict.outcome) for each in found.lost] == [("g", "panics")]
    whole = survival(settings("restricted"), machine(), left_, (PODS[0], asked), now.state)
    assert (whole.survives, whole.lost) == (True, ())


def test_a_kubelet_that_is_stopped_by_its_cpus_has_no_differences_of_memory_to_tell() -> None:
    """Without a memory file there is nothing that could differ, and a damaged one says nothing either."""
    files = left()
    for memory in (None, "no json"):
        found = survival(
            settings("restricted", cpu_manager_policy="none"), machine(), StateFiles(files.cpu, memory), PODS
        )
        assert found.refusal.startswith("could not restore state from checkpoint: configured policy")
        assert found.differences == ()


def test_a_start_that_ends_for_certain_reasons_has_no_others() -> None:
    found = survival(settings("restricted", cpu_manager_policy="none"), machine(), left(), PODS)
    assert (found.alternatives, found.chance) == ((), False)


def test_which_of_two_wrong_sums_stops_a_restart_is_open() -> None:
    wrong = (MemoryReservation(0, {"memory": "2Gi", "hugepages-2Mi": "4Mi"}),)
    found = survival(settings("restricted", reserved_memory=wrong), machine(), left(), PODS)
    assert "hugepages-2Mi" in found.refusal
    (other,) = found.alternatives
    assert '"memory" is not equal' in other
    assert not found.panics


def test_a_kubelet_that_never_comes_back_from_a_running_pod_does_not_survive() -> None:
    """14 CPUs in whole cores, in equal shares, with a CPU reserved on each NUMA node: tests/oracle/written.py, never-comes-back."""
    now = settings(
        reserved_system_cpus="0,11,12,23",
        reservation={"cpu": "4", "memory": "1Gi"},
        cpu_manager_policy_options={options.DISTRIBUTE_ACROSS_NUMA: "true", options.FULL_PCPUS_ONLY: "true"},
    )
    asked = pod("wide", container(cpu="14"))
    found = survival(now, machine(4, cores=3), StateFiles(), (PODS[1], asked, PODS[0]))
    assert (found.survives, found.panics) == (False, True)
    assert "a loop that never ends" in found.refusal
    assert [(each.pod.uid, each.verdict.outcome) for each in found.lost] == [("wide", "hangs")]


def test_pods_that_are_lost_before_the_kubelet_dies_are_named_too() -> None:
    first, second = machine().nodes
    dying = Machine((first, msgspec.structs.replace(second, hugepages={})))
    wide = pod("wide", container(cpu="9"))
    pages = pod("pages", container(hugepages_2Mi="2Mi"))
    found = survival(settings("single-numa-node"), dying, StateFiles(), (wide, pages, PODS[0]))
    assert [(each.pod.uid, each.verdict.outcome) for each in found.lost] == [
        ("wide", "refused"),
        ("pages", "panics"),
    ]
    assert found.panics
