"""A state file goes with a change if the kubelet would not start on it, and only then."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import msgspec
import pytest

from numacore.change.leaving import leaving
from numacore.kubelet import node, options
from numacore.kubelet.machine import Core, Machine
from numacore.kubelet.node import StateFiles
from numacore.kubelet.restart import survival
from numacore.kubelet.settings import MemoryReservation, Settings
from tests.numacore.kubelet.builders import container, machine, pod, running, settings

BEFORE = settings("restricted")
CHANGES: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
    ({"topology_manager_policy": "single-numa-node"}, {}),
    ({"topology_manager_scope": "pod"}, {}),
    ({"topology_manager_policy_options": {options.PREFER_CLOSEST: "true"}}, {}),
    ({"cpu_manager_policy_options": {options.FULL_PCPUS_ONLY: "true"}}, {}),
    ({"cpu_manager_policy": "none"}, {"cpu_manager_state": "leave-cpu-policy"}),
    ({"memory_manager_policy": "None"}, {"memory_manager_state": "leave-memory-policy"}),
    ({"cpu_manager_policy": "none", "memory_manager_policy": "None"},
     {"cpu_manager_state": "leave-cpu-policy", "memory_manager_state": "leave-memory-policy"}),
    ({"cpu_manager_policy_options": {options.STRICT_RESERVATION: "true"}}, {"cpu_manager_state": "leave-cpu-options"}),
    ({"reserved_system_cpus": "0"}, {}),
    ({"reserved_system_cpus": "2"}, {"cpu_manager_state": "leave-reserved-cpus"}),
    ({"reservation": {"cpu": "9", "memory": "1Gi"}}, {"cpu_manager_state": "leave-reserved-cpus"}),
    ({"reserved_memory": (MemoryReservation(1, {"memory": "1Gi"}),)}, {"memory_manager_state": "leave-reserved-memory"}),
    ({"reserved_system_cpus": "2", "reserved_memory": (MemoryReservation(1, {"memory": "1Gi"}),)},
     {"cpu_manager_state": "leave-reserved-cpus", "memory_manager_state": "leave-reserved-memory"}),
)  # fmt: skip


def left() -> StateFiles:
    """As a kubelet leaves them on which two pods run: CPUs 1 to 5 are theirs."""
    now = running("restricted")
    for each in (pod("a", container(cpu="3")), pod("b", container(cpu="2", memory="2Gi"))):
        now, _ = node.admit(now, each)
    return node.state_files(now)


def after(changes: dict[str, Any]) -> Settings:
    return settings(**{"policy": "restricted"} | {"policy" if name == "topology_manager_policy" else "scope" if name == "topology_manager_scope" else name: value for name, value in changes.items()})  # fmt: skip


@pytest.mark.parametrize(("changes", "gone"), CHANGES)
def test_what_goes_and_why(changes: dict[str, Any], gone: dict[str, str]) -> None:
    found = leaving(BEFORE, after(changes), machine(), left())
    assert {each.file: each.reason.code for each in found} == gone


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ({"cpu_manager_policy": "none"}, {"before": "static", "after": "none"}),
        ({"memory_manager_policy": "None"}, {"before": "Static", "after": "None"}),
        ({"reserved_system_cpus": "2"}, {"words": 'not all reserved cpus: "2" are present in defaultCpuSet: "0,6-15"'}),
        (
            {"reserved_memory": (MemoryReservation(1, {"memory": "1Gi"}),)},
            {"words": "[memorymanager] the expected machine state is different from the real one"},
        ),
    ],
)  # fmt: skip
def test_the_reason_names_both_policies_or_the_kubelets_words(
    changes: dict[str, Any], values: dict[str, str]
) -> None:
    (found,) = leaving(BEFORE, after(changes), machine(), left())
    assert found.reason.values == values


def test_files_that_a_machine_of_now_refuses_go_for_their_own_sake() -> None:
    """Nothing of reservations or options changes: a CPU more and a page more than the files know."""
    first, second = machine().nodes
    bigger = msgspec.structs.replace(
        first, cores=(*first.cores, Core(8, 0, (16, 17))), memory=first.memory + 4096
    )
    found = leaving(BEFORE, after({"topology_manager_scope": "pod"}), Machine((bigger, second)), left())
    assert [(each.file, each.reason.code) for each in found] == [
        ("cpu_manager_state", "leave-cpu-state"),
        ("memory_manager_state", "leave-memory-state"),
    ]


@pytest.mark.parametrize(("changes", "gone"), CHANGES)
def test_with_those_gone_it_starts_and_with_any_of_them_kept_it_does_not(
    changes: dict[str, Any], gone: dict[str, str]
) -> None:
    """Held against the restart itself."""
    files = {"cpu_manager_state": left().cpu, "memory_manager_state": left().memory}
    for number in range(len(gone) + 1):
        for removed in combinations(gone, number):
            rest = {name: text for name, text in files.items() if name not in removed}
            found = survival(
                after(changes),
                machine(),
                StateFiles(rest.get("cpu_manager_state"), rest.get("memory_manager_state")),
            )
            assert bool(found.refusal) == (number < len(gone)), removed


def test_a_file_of_another_policy_goes_even_where_nobody_could_read_it() -> None:
    found = leaving(BEFORE, after({"cpu_manager_policy": "none"}), machine(), StateFiles())
    assert [each.file for each in found] == ["cpu_manager_state"]


def test_files_that_are_no_cause_stay_where_the_kubelet_refuses_anyway() -> None:
    """A reservation of everything: no state file is to blame."""
    found = leaving(BEFORE, after({"cpu_manager_policy_options": {"nonsense": "true"}}), machine(), left())
    assert found == ()
