"""Would the kubelet survive a restart now: its files against machine, settings and pods."""

import json
from typing import Any

import msgspec
import pytest

from numacore.kubelet import node, options
from numacore.kubelet.machine import Machine
from numacore.kubelet.node import StateFiles
from numacore.kubelet.restart import survival
from numacore.kubelet.settings import MemoryReservation
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


def test_without_files_everything_is_placed_anew() -> None:
    assert survival(settings("restricted"), machine(), StateFiles(), PODS).survives
