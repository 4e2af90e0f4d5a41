"""What of a wish a kubelet's settings do not say: options, reserved CPUs and amounts, where reserved memory lies; and agreement with `asking`."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from numacore.change import asking
from numacore.change.differing import differences
from numacore.change.editing import REMOVE
from numacore.change.wish import Wish
from tests.numacore.kubelet.builders import machine

SINGLE: Literal["single-numa-node"] = "single-numa-node"
HALF = {"systemReserved": {"cpu": "500m"}, "kubeReserved": {"cpu": "500m"}}
TOPOLOGY, CPU = "topologyManagerPolicyOptions", "cpuManagerPolicyOptions"


def told(wish: Wish, numa_nodes: int | None = 2, **settings: Any) -> list[tuple[str, str, str]]:
    return [(each.field, each.is_now, each.wanted) for each in differences(wish, settings, numa_nodes)]


@pytest.mark.parametrize(
    ("wish", "settings", "found"),
    [
        (Wish(prefer_closest=True), {}, [(f"{TOPOLOGY}.prefer-closest-numa-nodes", "", "true")]),
        (Wish(prefer_closest=True), {TOPOLOGY: {"prefer-closest-numa-nodes": "T"}}, []),
        (Wish(prefer_closest=False), {}, []),
        (
            Wish(prefer_closest=False),
            {TOPOLOGY: {"prefer-closest-numa-nodes": "true"}},
            [(f"{TOPOLOGY}.prefer-closest-numa-nodes", "true", "")],
        ),
        (
            Wish(max_allowable_numa_nodes=16),
            {TOPOLOGY: {"max-allowable-numa-nodes": "12"}},
            [(f"{TOPOLOGY}.max-allowable-numa-nodes", "12", "16")],
        ),
        (Wish(max_allowable_numa_nodes=16), {TOPOLOGY: {"max-allowable-numa-nodes": "16"}}, []),
        (
            Wish(cpu_policy="static", cpu_options={"full-pcpus-only": True, "strict-cpu-reservation": False}),
            {**HALF, CPU: {"strict-cpu-reservation": "true"}},
            [(f"{CPU}.full-pcpus-only", "", "true"), (f"{CPU}.strict-cpu-reservation", "true", "")],
        ),
        (
            Wish(cpu_policy="none"),
            {CPU: {"full-pcpus-only": "true"}},
            [(f"{CPU}.full-pcpus-only", "true", "")],
        ),
        (Wish(scope="pod"), {CPU: {"full-pcpus-only": "true"}}, []),
    ],
)
def test_options_are_compared_one_by_one(
    wish: Wish, settings: dict[str, Any], found: list[tuple[str, str, str]]
) -> None:
    assert told(wish, **settings) == found


@pytest.mark.parametrize(
    ("wish", "settings", "found"),
    [
        (Wish(reserved_cpus="0,16"), {}, [("reservedSystemCPUs", "", "0,16")]),
        (Wish(reserved_cpus="0,16"), {"reservedSystemCPUs": "0-3,16"}, []),
        (
            Wish(reserved_cpus="0,16"),
            {"reservedSystemCPUs": "0-3"},
            [("reservedSystemCPUs", "0-3", "0-3,16")],
        ),
        (
            Wish(reserved_cpus="0"),
            {"reservedSystemCPUs": "rubbish"},
            [("reservedSystemCPUs", "rubbish", "0")],
        ),
        (Wish(topology_policy=SINGLE), {"reservedSystemCPUs": "0"}, []),
        (
            Wish(topology_policy=SINGLE),
            {},
            [("systemReserved.cpu", "", "500m"), ("kubeReserved.cpu", "", "500m")],
        ),
        (Wish(topology_policy=SINGLE), {"systemReserved": {"cpu": "1"}}, []),
        (
            Wish(topology_policy=SINGLE),
            {"systemReserved": {"cpu": "600m"}},
            [("kubeReserved.cpu", "", "500m")],
        ),
        (Wish(topology_policy=SINGLE), HALF, []),
        (Wish(topology_policy="none"), {}, []),
        (Wish(scope="pod"), {"cpuManagerPolicy": "static", **HALF}, []),
        (Wish(topology_policy=SINGLE), {"systemReserved": {"cpu": ["1"]}, "kubeReserved": {"cpu": "1"}}, []),
    ],
)
def test_nothing_reserved_is_ever_too_much(
    wish: Wish, settings: dict[str, Any], found: list[tuple[str, str, str]]
) -> None:
    assert told(wish, **settings) == found


def reserved(**sizes: str) -> list[dict[str, Any]]:
    return [{"numaNode": int(numa[1:]), "limits": {"memory": size}} for numa, size in sizes.items()]


@pytest.mark.parametrize(
    ("how", "stands", "right"),
    [
        (None, [], False),
        (None, reserved(n0="1100Mi"), True),
        ("first", reserved(n0="1100Mi"), True),
        ("first", reserved(n0="600Mi", n1="500Mi"), False),
        ("even", reserved(n0="550Mi", n1="550Mi"), True),
        ("even", reserved(n0="1100Mi"), False),
        ({0: 600, 1: 500}, reserved(n0="600Mi", n1="500Mi"), True),
        ({0: 600, 1: 500}, reserved(n0="614401Ki", n1="500Mi"), True),
        ({0: 600, 1: 500}, reserved(n0="500Mi", n1="600Mi"), False),
        ({0: 1100}, reserved(n0="600Mi", n1="500Mi"), False),
        ("even", "rubbish", False),
    ],
)
def test_reserved_memory_is_compared_by_where_it_lies(how: Any, stands: Any, right: bool) -> None:
    wish = Wish(memory_policy="Static", reserved_memory=how)
    found = differences(wish, {"memoryManagerPolicy": "Static", "reservedMemory": stands}, 2)
    assert (found == ()) == right
    assert all(each.field == "reservedMemory" for each in found)


def test_on_one_numa_node_even_is_all_on_it() -> None:
    wish = Wish(memory_policy="Static", reserved_memory="even")
    assert told(wish, 1, reservedMemory=reserved(n0="1100Mi")) == []
    assert told(Wish(reserved_memory="even"), 2) == [], "the memory manager is off and stays off"


@pytest.mark.parametrize(
    "wish",
    [
        Wish(topology_policy=SINGLE, prefer_closest=True),
        Wish(topology_policy="restricted", cpu_options={"full-pcpus-only": True}, reserved_cpus="0"),
        Wish(cpu_policy="static", system_reserved_cpu="2", kube_reserved_cpu="1"),
    ],
)
def test_what_a_change_would_make_is_no_difference_afterwards(wish: Wish) -> None:
    """The change is `asking`'s: both have the same rules."""
    before: dict[str, Any] = {"topologyManagerPolicy": "best-effort"}
    found = asking.asked(wish, before, machine(), 37)
    assert not found.refusals
    after = {name: value for name, value in {**before, **found.keys}.items() if value is not REMOVE}
    assert differences(wish, before, 2)
    assert differences(wish, after, 2) == ()
