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
        (Wish(max_allowable_numa_nodes=16), {}, [(f"{TOPOLOGY}.max-allowable-numa-nodes", "", "16")]),
        (
            Wish(cpu_policy="none"),
            {CPU: {"strict-cpu-reservation": "true", "full-pcpus-only": "true"}},
            [(f"{CPU}.full-pcpus-only", "true", ""), (f"{CPU}.strict-cpu-reservation", "true", "")],
        ),
        (
            Wish(cpu_options={"full-pcpus-only": True}),
            {"cpuManagerPolicy": "static", **HALF},
            [(f"{CPU}.full-pcpus-only", "", "true")],
        ),
        (Wish(cpu_options={"full-pcpus-only": True}), {}, []),
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
        (Wish(reserved_cpus="1,2"), {"reservedSystemCPUs": "+1-3"}, []),
        (Wish(reserved_cpus="0"), {"reservedSystemCPUs": "0, 1"}, [("reservedSystemCPUs", "0, 1", "0")]),
        (
            Wish(topology_policy=SINGLE),
            {"systemReserved": {"cpu": "1e100"}, "kubeReserved": {"cpu": "500m"}},
            [("systemReserved.cpu", "1e100", "500m")],
        ),
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


@pytest.mark.parametrize(
    ("how", "stands", "is_now", "wanted"),
    [
        (None, [], "", "even"),
        ("first", reserved(n1="500Mi", n0="614401Ki"), "0: 614401Ki, 1: 500Mi", "first"),
        ("even", [], "", "even"),
        ({1: 500, 0: 600}, reserved(n0="1100Mi"), "0: 1100Mi", "0: 600Mi, 1: 500Mi"),
        ({0: 600, 1: 500}, reserved(n1="500Mi"), "1: 500Mi", "0: 600Mi, 1: 500Mi"),
        ({0: 600, 1: 500}, reserved(n0="601Mi", n1="500Mi"), "0: 601Mi, 1: 500Mi", "0: 600Mi, 1: 500Mi"),
        (
            {0: 600, 1: 500, 2: 1},
            reserved(n0="600Mi", n1="500Mi", n2="2Mi"),
            "0: 600Mi, 1: 500Mi, 2: 2Mi",
            "0: 600Mi, 1: 500Mi, 2: 1Mi",
        ),
        ({0: 600}, reserved(n0="600Mi", n1="500Mi"), "0: 600Mi, 1: 500Mi", "0: 600Mi"),
        ("first", [{"limits": {"memory": "1Gi", "hugepages-2Mi": "2Mi"}}], "", "first"),
        ({0: 600}, [5], "", "0: 600Mi"),
    ],
)
def test_where_reserved_memory_lies_and_should_lie_is_told(
    how: Any, stands: Any, is_now: str, wanted: str
) -> None:
    wish = Wish(memory_policy="Static", reserved_memory=how)
    assert told(wish, reservedMemory=stands) == [("reservedMemory", is_now, wanted)]


def test_reserved_memory_counts_where_the_policy_of_the_node_or_of_the_wish_is_static() -> None:
    missing = [("reservedMemory", "", "first")]
    assert told(Wish(reserved_memory="first"), memoryManagerPolicy="Static") == missing
    assert told(Wish(reserved_memory="first", memory_policy="Static")) == missing
    assert told(Wish(memory_policy="None"), memoryManagerPolicy="Static") == []
    assert told(Wish(), 1, memoryManagerPolicy=None) == []
    assert (
        told(Wish(memory_policy="Static", reserved_memory="even"), None, reservedMemory=reserved(n0="1Gi"))
        == []
    )


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
