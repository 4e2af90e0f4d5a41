"""A wish for a node becomes settings that its kubelet starts with, or a refusal that says why."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from numacore.change import asking
from numacore.change.asking import Asked, applied, tried
from numacore.change.order import check_keys
from numacore.change.wish import CPU_OPTIONS, Scope, TopologyPolicy, Wish
from numacore.kubelet import resource
from numacore.kubelet.machine import Machine
from tests.numacore.change import machines
from tests.numacore.kubelet.builders import machine

TWO = machine(2, cores=4)  # CPUs 0-15, two threads a core, 8 GiB and 128 MiB of huge pages on each NUMA node
GOOD = Wish(topology_policy="single-numa-node", scope="pod", prefer_closest=True, memory_policy="Static")
POLICIES: tuple[TopologyPolicy, ...] = ("none", "best-effort", "restricted", "single-numa-node")
SCOPES: tuple[Scope, ...] = ("container", "pod")
WISHES = (
    *(Wish(topology_policy=policy, scope=scope) for policy, scope in product(POLICIES, SCOPES)),
    *(Wish(cpu_policy="static", cpu_options={option: True}) for option in CPU_OPTIONS),
    GOOD,
    Wish(topology_policy="restricted", max_allowable_numa_nodes=64, prefer_closest=True),
    Wish(cpu_policy="none", memory_policy="None"),
    Wish(cpu_policy="static", reserved_cpus="0"),
    Wish(cpu_policy="static", system_reserved_cpu="3", kube_reserved_cpu="250m"),
    Wish(memory_policy="Static", reserved_memory="first"),
)  # fmt: skip
BEFORE: tuple[dict[str, Any], ...] = (
    {},
    {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0-1", "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}, "topologyManagerPolicy": "restricted"},
    {"systemReserved": {"cpu": "1500m", "memory": "300Mi"}, "kubeReserved": {"memory": "123456789"}, "evictionHard": {"memory.available": "5%"},
     "memoryManagerPolicy": "None", "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-2Mi": "2Mi"}}]},
)  # fmt: skip
TURNS = len(machines.NAMES) // 3


def asked(wish: Wish, before: dict[str, Any] | None = None, on: Machine = TWO, minor: int = 37) -> Asked:
    return asking.asked(wish, before or {}, on, minor)


def codes(found: Asked) -> list[str]:
    return [reason.code for reason in found.refusals]


def cases(name: str) -> Iterator[tuple[Wish, dict[str, Any], int]]:
    """Every wish from every starting point on three of the machines, minor versions taking turns."""
    turn = machines.NAMES.index(name)
    for at, (wish, before) in enumerate(product(WISHES, BEFORE)):
        if at % TURNS == turn % TURNS:
            yield wish, before, 21 + (at * 5 + len(name)) % 17


@pytest.mark.parametrize("name", machines.NAMES)
def test_the_kubelet_starts_with_what_is_asked_of_it_and_reserves_no_less(name: str) -> None:
    on, taken = machines.recorded(name), 0
    for wish, before, minor in cases(name):
        found = asked(wish, before, on, minor)
        assert found.refusals or tried(applied(before, found.keys), on, minor).starts, (wish, before, minor)
        assert not (found.refusals and found.keys)
        check_keys({key: value for key, value in found.keys.items() if value is not None}, drop_in=False)
        if not found.refusals:
            taken += 1
            after = applied(before, found.keys)
            assert_no_less(before, after)
            again = asked(wish, after, on, minor)
            assert (again.keys, again.refusals) == ({}, ()), "asked twice, nothing is left to ask"
    assert taken > 2, "refusing everything would prove nothing"


def assert_no_less(before: dict[str, Any], after: dict[str, Any]) -> None:
    for field in ("systemReserved", "kubeReserved"):
        for kind, size in (before.get(field) or {}).items():
            assert resource.parse(after[field][kind]).amount >= resource.parse(size).amount
    kept = set(filter(None, (before.get("reservedSystemCPUs") or "").split(",")))
    assert kept <= set((after.get("reservedSystemCPUs") or "").split(","))


@pytest.mark.parametrize("minor", range(21, 38))
def test_every_version_takes_the_four_switches(minor: int) -> None:
    for policy in POLICIES:
        assert asked(Wish(topology_policy=policy), minor=minor).refusals == ()


def test_a_fresh_node_gets_what_the_policy_needs() -> None:
    assert asked(GOOD).keys == {
        "cpuManagerPolicy": "static",
        "systemReserved": {"cpu": "500m"},
        "kubeReserved": {"cpu": "500m"},
        "topologyManagerPolicy": "single-numa-node",
        "topologyManagerScope": "pod",
        "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
        "memoryManagerPolicy": "Static",
        "reservedMemory": [
            {"numaNode": 0, "limits": {"memory": "50Mi"}},
            {"numaNode": 1, "limits": {"memory": "50Mi"}},
        ],
    }
    assert [note.code for note in asked(GOOD).notes] == [
        "ask-static-implied", "ask-reserved-more", "ask-reserved-more", "ask-memory-spread",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "spread", "sizes"),
    [
        ({}, None, {0: "50Mi", 1: "50Mi"}),
        ({}, "first", {0: "100Mi"}),
        ({"evictionHard": {"memory.available": "1%"}}, None, {0: "85893Ki", 1: "80Mi"}),
        ({"kubeReserved": {"memory": "1Gi"}, "systemReserved": {"memory": "1Gi"}}, None, {0: "1074Mi", 1: "1074Mi"}),
        ({"kubeReserved": {"memory": "1000001"}}, {1: 100, 0: 0 + 1}, None),
        ({"systemReserved": {"memory": "24Mi"}}, {1: 100, 0: 24}, {0: "24Mi", 1: "100Mi"}),
        ({"systemReserved": {"memory": "9Gi"}}, "first", {0: "8064Mi", 1: "1252Mi"}),
    ],
)  # fmt: skip
def test_reserved_memory_adds_up_to_the_byte(
    fields: dict[str, Any], spread: Any, sizes: dict[int, str] | None
) -> None:
    found = asked(Wish(memory_policy="Static", reserved_memory=spread), fields)
    if sizes is None:
        assert codes(found) == ["ask-memory-sum"]
        assert found.refusals[0].values == {"have": 101 << 20, "need": 1000001 + (100 << 20)}
        return
    told = found.keys["reservedMemory"]
    if "evictionHard" in fields:  # 1 % of 16 GiB as the kubelet counts it, in single precision
        total = sum(resource.parse(each["limits"]["memory"]).amount for each in told)
        assert total == Fraction(int((16 << 30) * 0.009999999776482582))
        return
    assert {each["numaNode"]: each["limits"]["memory"] for each in told} == sizes


def test_reserved_memory_that_is_right_stays_as_it_stands() -> None:
    stands = [{"numaNode": 1, "limits": {"memory": "100Mi"}}]
    assert asked(Wish(memory_policy="Static"), {"reservedMemory": stands}).keys == {
        "memoryManagerPolicy": "Static"
    }
    moved = asked(Wish(memory_policy="Static", reserved_memory="first"), {"reservedMemory": stands})
    assert moved.keys["reservedMemory"] == [{"numaNode": 0, "limits": {"memory": "100Mi"}}]


@pytest.mark.parametrize(
    ("before", "wish", "keys"),
    [
        ({"systemReserved": {"cpu": "2"}}, Wish(cpu_policy="static"), {"cpuManagerPolicy": "static"}),
        ({"systemReserved": {"cpu": "300m", "memory": "1Gi"}}, Wish(cpu_policy="static"),
         {"cpuManagerPolicy": "static", "systemReserved": {"cpu": "500m", "memory": "1Gi"}, "kubeReserved": {"cpu": "500m"}}),
        ({"reservedSystemCPUs": "0"}, Wish(cpu_policy="static"), {"cpuManagerPolicy": "static"}),
        ({"reservedSystemCPUs": "0"}, Wish(cpu_policy="static", reserved_cpus="8"), {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,8"}),
        ({"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "cpuManagerPolicyOptions": {"full-pcpus-only": "true", "strict-cpu-reservation": "1"}},
         Wish(cpu_options={"full-pcpus-only": False, "strict-cpu-reservation": True}), {"cpuManagerPolicyOptions": {"strict-cpu-reservation": "1"}}),
        ({"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
         Wish(cpu_policy="none"), {"cpuManagerPolicy": "none", "cpuManagerPolicyOptions": None}),
        ({"topologyManagerPolicy": "restricted", "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"}},
         Wish(prefer_closest=False), {"topologyManagerPolicyOptions": None}),
        ({"topologyManagerPolicy": "restricted"}, Wish(), {}),
    ],
)  # fmt: skip
def test_only_what_differs_is_asked_for(before: dict[str, Any], wish: Wish, keys: dict[str, Any]) -> None:
    found = asked(wish, before)
    assert found.refusals == ()
    assert found.keys == keys


@pytest.mark.parametrize(
    ("wish", "before", "minor", "code"),
    [
        (GOOD, {}, 25, "ask-option-version"),
        (GOOD, {}, 26, "ask-option-gate"),
        (GOOD, {}, 27, "ask-option-gate"),
        (GOOD, {"featureGates": {"TopologyManagerPolicyBetaOptions": False}}, 31, "ask-option-gate"),
        (Wish(topology_policy="restricted", max_allowable_numa_nodes=9), {}, 30, "ask-option-version"),
        (Wish(cpu_policy="static", cpu_options={"align-by-socket": True}), {}, 37, "ask-option-gate"),
        (Wish(cpu_policy="static", cpu_options={"strict-cpu-reservation": True}), {}, 31, "ask-option-version"),
        (Wish(memory_policy="Static"), {}, 21, "ask-gate-off"),
        (Wish(cpu_policy="static", reserved_cpus="16-17"), {}, 37, "ask-cpus-offline"),
        (Wish(cpu_policy="static", reserved_cpus="1"), {"systemReserved": {"cpu": "1500m"}}, 37, "ask-cpus-fewer"),
        (Wish(cpu_policy="static", system_reserved_cpu="0", kube_reserved_cpu="0"), {}, 37, "ask-nothing-reserved"),
        (Wish(cpu_options={"full-pcpus-only": True}), {}, 37, "wish-options-without-static"),
        (Wish(prefer_closest=True), {}, 37, "wish-closest-without-policy"),
        (Wish(memory_policy="Static"), {"evictionHard": {"memory.available": "0%"}}, 37, "ask-no-memory-reserved"),
        (Wish(memory_policy="Static", reserved_memory={5: 100}), {}, 37, "ask-memory-no-node"),
        (Wish(memory_policy="Static"), {"systemReserved": {"memory": "20Gi"}}, 37, "ask-memory-too-small"),
        (Wish(memory_policy="Static", reserved_memory={0: 9316}), {"systemReserved": {"memory": "9Gi"}}, 37, "ask-memory-node-too-small"),
        (Wish(reserved_memory="first"), {}, 37, "wish-memory-without-static"),
        (Wish(cpu_policy="static", cpu_options={"distribute-cpus-across-numa": True}),
         {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "cpuManagerPolicyOptions": {"prefer-align-cpus-by-uncorecache": "true"}}, 37,
         "wish-options-exclude"),
        (Wish(cpu_policy="static", reserved_cpus="0"), {"kubeReservedCgroup": "/kube"}, 37, "ask-would-not-start"),
        (Wish(scope="pod"), {"cpuManagerPolicy": "Static"}, 37, "ask-would-not-start"),
        (Wish(scope="pod"), {"featureGates": {"NoSuchGate": True}}, 37, "ask-would-crash"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_reason(
    wish: Wish, before: dict[str, Any], minor: int, code: str
) -> None:
    found = asked(wish, before, minor=minor)
    assert codes(found) == [code]
    assert found.keys == {}


ALIGNED = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "featureGates": {"CPUManagerPolicyAlphaOptions": True},
           "cpuManagerPolicyOptions": {"align-by-socket": "true"}}  # fmt: skip
SAID: list[tuple[Wish, dict[str, Any], int, str, dict[str, Any]]] = [
    (GOOD, {}, 25, "ask-option-version", {"option": "prefer-closest-numa-nodes", "version": "1.25", "since": "1.26"}),
    (Wish(cpu_policy="static", cpu_options={"full-pcpus-only": True}), {}, 21, "ask-option-version",
     {"option": "full-pcpus-only", "version": "1.21", "since": "1.22"}),
    (Wish(cpu_policy="static", cpu_options={"prefer-align-cpus-by-uncorecache": True}), {}, 31, "ask-option-version",
     {"option": "prefer-align-cpus-by-uncorecache", "version": "1.31", "since": "1.32"}),
    (GOOD, {}, 26, "ask-option-gate",
     {"option": "prefer-closest-numa-nodes", "version": "1.26", "stage": "alpha",
      "gates": "TopologyManagerPolicyOptions, TopologyManagerPolicyAlphaOptions"}),
    (Wish(cpu_policy="static", cpu_options={"align-by-socket": True}), {}, 37, "ask-option-gate",
     {"option": "align-by-socket", "version": "1.37", "stage": "alpha", "gates": "CPUManagerPolicyAlphaOptions"}),
    (Wish(memory_policy="Static"), {}, 21, "ask-gate-off", {"gate": "MemoryManager", "version": "1.21"}),
    (Wish(cpu_policy="static", reserved_cpus="14-17"), {}, 37, "ask-cpus-offline", {"cpus": "16-17", "online": "0-15"}),
    (Wish(cpu_policy="static", reserved_cpus="99999999999"), {}, 37, "ask-cpus-offline", {"cpus": "65535", "online": "0-15"}),
    (Wish(cpu_policy="static", reserved_cpus="1"), {"systemReserved": {"cpu": "1500m"}, "kubeReserved": {"cpu": "600m"}}, 37, "ask-cpus-fewer",
     {"cpus": "1", "number": 1, "least": 3}),
    (Wish(cpu_options={"full-pcpus-only": True, "align-by-socket": True}), {}, 37, "wish-options-without-static",
     {"options": "align-by-socket, full-pcpus-only"}),
    (Wish(cpu_policy="static", cpu_options={"distribute-cpus-across-numa": True}),
     {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "cpuManagerPolicyOptions": {"prefer-align-cpus-by-uncorecache": "T"}}, 37,
     "wish-options-exclude", {"first": "prefer-align-cpus-by-uncorecache", "second": "distribute-cpus-across-numa"}),
    (Wish(topology_policy="single-numa-node"), ALIGNED, 37, "wish-socket-single-numa", {}),
    (Wish(memory_policy="Static"), {"kubeReserved": {"memory": "500m"}}, 37, "ask-memory-fraction", {"amount": "104857600500m"}),
    (Wish(memory_policy="Static", reserved_memory={5: 100}), {}, 37, "ask-memory-no-node", {"numa": 5, "nodes": "0, 1"}),
    (Wish(memory_policy="Static"), {"systemReserved": {"memory": "20Gi"}}, 37, "ask-memory-too-small",
     {"need": (20 << 30) + (100 << 20), "room": 2 * ((8 << 30) - (128 << 20))}),
    (Wish(memory_policy="Static", reserved_memory={0: 9316}), {"systemReserved": {"memory": "9Gi"}}, 37, "ask-memory-node-too-small",
     {"numa": 0, "size": 9316 << 20, "room": (8 << 30) - (128 << 20)}),
    (Wish(scope="pod"), {"cpuManagerPolicy": "Static"}, 37, "ask-would-not-start",
     {"field": "cpuManagerPolicy", "words": 'unknown policy: "Static"', "cause": "value-case"}),
]  # fmt: skip


@pytest.mark.parametrize(("wish", "before", "minor", "code", "values"), SAID)
def test_a_refusal_says_what_is_wrong_and_what_would_do(
    wish: Wish, before: dict[str, Any], minor: int, code: str, values: dict[str, Any]
) -> None:
    (reason,) = asked(wish, before, minor=minor).refusals
    assert (reason.code, reason.values) == (code, values)


def test_a_machine_with_more_numa_nodes_than_the_kubelet_takes_is_told_with_both_numbers() -> None:
    (reason,) = asked(Wish(topology_policy="restricted"), on=machine(9, cores=1)).refusals
    assert (reason.code, reason.values) == ("ask-too-many-nodes", {"most": "8", "nodes": 9})


LISTED = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0-1"}
NOTES: list[tuple[Wish, dict[str, Any], list[tuple[str, dict[str, Any]]]]] = [
    (Wish(topology_policy="restricted"), {"systemReserved": {"cpu": "1"}}, [("ask-static-implied", {"policy": "restricted"})]),
    (Wish(topology_policy="restricted"), LISTED, []),
    (Wish(cpu_policy="static"), {"systemReserved": {"cpu": "300m"}},
     [("ask-reserved-more", {"field": "systemReserved", "before": "300m", "after": "500m"}),
      ("ask-reserved-more", {"field": "kubeReserved", "before": "0", "after": "500m"})]),
    (Wish(cpu_policy="static"), {"systemReserved": {"cpu": "500m"}, "kubeReserved": {"cpu": "250m"}},
     [("ask-reserved-more", {"field": "kubeReserved", "before": "250m", "after": "500m"})]),
    (Wish(cpu_policy="static"), {"systemReserved": {"cpu": "400m"}, "kubeReserved": {"cpu": "600m"}}, []),
    (Wish(reserved_cpus="1-2"), LISTED, [("ask-cpus-kept", {"cpus": "0"})]),
    (Wish(reserved_cpus="+0,1-+3"), LISTED, []),
    (Wish(cpu_policy="none"), LISTED | {"cpuManagerPolicyOptions": {"strict-cpu-reservation": "true", "full-pcpus-only": "true"}},
     [("ask-options-go", {"options": "full-pcpus-only, strict-cpu-reservation"})]),
    (Wish(cpu_policy="none"), {}, []),
    (Wish(memory_policy="Static"), {}, [("ask-memory-spread", {"bytes": 100 << 20, "nodes": "0, 1"})]),
    (Wish(memory_policy="Static", reserved_memory="even"),
     {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "50Mi"}}, {"numaNode": 1, "limits": {"memory": "50Mi"}}]}, []),
]  # fmt: skip


@pytest.mark.parametrize(("wish", "before", "notes"), NOTES)
def test_what_else_comes_with_a_change_is_told(
    wish: Wish, before: dict[str, Any], notes: list[tuple[str, dict[str, Any]]]
) -> None:
    found = asked(wish, before)
    assert found.refusals == ()
    assert [(each.code, each.values) for each in found.notes] == notes


def test_a_list_takes_the_place_of_amounts_whatever_they_are() -> None:
    """CPUs that are reserved by list already were never held against amounts; an amount that nobody can read is none."""
    before = LISTED | {"systemReserved": {"cpu": "9"}}
    assert asked(Wish(reserved_cpus="2"), before).keys == {"reservedSystemCPUs": "0-2"}
    assert asked(Wish(cpu_policy="static", reserved_cpus="+2"), {"reservedSystemCPUs": "+0"}).keys == {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0,2",
    }


@pytest.mark.parametrize("spelling", ["1", "t", "T", "TRUE", "true", "True"])
def test_an_option_that_is_on_stays_as_it_is_written(spelling: str) -> None:
    before = LISTED | {"cpuManagerPolicyOptions": {"full-pcpus-only": spelling}}
    assert asked(Wish(cpu_options={"full-pcpus-only": True}), before).keys == {}


def test_options_that_do_not_exclude_each_other_stand_together() -> None:
    found = asked(Wish(topology_policy="restricted"), ALIGNED)
    assert (found.refusals, found.keys) == ((), {"topologyManagerPolicy": "restricted"})


def test_gates_that_are_on_open_an_old_kubelet_to_the_distance() -> None:
    gates = {"TopologyManagerPolicyOptions": True, "TopologyManagerPolicyAlphaOptions": True}
    found = asked(Wish(topology_policy="restricted", prefer_closest=True), {"featureGates": gates}, minor=27)
    assert found.refusals == ()
    assert found.keys["topologyManagerPolicyOptions"] == {"prefer-closest-numa-nodes": "true"}


def test_a_wish_that_is_wrong_everywhere_is_refused_before_any_machine_is_asked() -> None:
    wish = Wish(
        cpu_policy="none", cpu_options={"full-pcpus-only": True, "distribute-cpus-across-cores": True}
    )
    assert codes(asked(wish)) == ["wish-options-exclude", "wish-options-without-static"]
