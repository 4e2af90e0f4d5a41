"""What is wrong with a wish on any machine is said before a machine is looked at."""

from __future__ import annotations

import msgspec
import pytest

from numacore.change.wish import Wish, check


def test_nothing_wanted_is_nothing_written() -> None:
    assert msgspec.json.encode(Wish()) == b"{}"
    assert check(Wish()) == ()


def test_a_wish_travels_as_json() -> None:
    wish = Wish(
        topology_policy="restricted", scope="pod", prefer_closest=False, cpu_options={"full-pcpus-only": True}, reserved_memory={0: 512, 1: 64}
    )  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(wish), type=Wish) == wish
    assert check(wish) == ()


@pytest.mark.parametrize(
    "text", [b'{"topology_policy":"strict"}', b'{"maxPods":1}', b'{"prefer_closest":"yes"}']
)
def test_what_is_no_wish_is_not_read(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Wish)


OPTIONS = (
    "full-pcpus-only, strict-cpu-reservation, distribute-cpus-across-numa, prefer-align-cpus-by-uncorecache, align-by-socket, "
    "distribute-cpus-across-cores"
)
BOTH = {"full-pcpus-only": True, "distribute-cpus-across-cores": True}
WRONG: list[tuple[Wish, str, str, dict[str, str | int]]] = [
    (Wish(topology_policy="strict"), "topology_policy", "wish-choice",  # type: ignore[arg-type]
     {"value": "strict", "values": "none, best-effort, restricted, single-numa-node"}),
    (Wish(scope="node"), "scope", "wish-choice", {"value": "node", "values": "container, pod"}),  # type: ignore[arg-type]
    (Wish(cpu_policy="Static"), "cpu_policy", "wish-choice", {"value": "Static", "values": "none, static"}),  # type: ignore[arg-type]
    (Wish(memory_policy="static"), "memory_policy", "wish-choice", {"value": "static", "values": "None, Static"}),  # type: ignore[arg-type]
    (Wish(reserved_memory="odd"), "reserved_memory", "wish-choice", {"value": "odd", "values": "even, first"}),  # type: ignore[arg-type]
    (Wish(max_allowable_numa_nodes=7), "max_allowable_numa_nodes", "wish-max-nodes", {"least": 8, "most": 64}),
    (Wish(max_allowable_numa_nodes=65), "max_allowable_numa_nodes", "wish-max-nodes", {"least": 8, "most": 64}),
    (Wish(topology_policy="none", prefer_closest=True), "prefer_closest", "wish-closest-without-policy", {}),
    (Wish(cpu_options={"fast": True}), "cpu_options", "wish-option-unknown", {"option": "fast", "values": OPTIONS}),
    (Wish(cpu_options=BOTH), "cpu_options", "wish-options-exclude", {"first": "distribute-cpus-across-cores", "second": "full-pcpus-only"}),
    (Wish(cpu_policy="none", cpu_options={"strict-cpu-reservation": True, "full-pcpus-only": True, "align-by-socket": True}), "cpu_options",
     "wish-options-without-static", {"options": "align-by-socket, full-pcpus-only, strict-cpu-reservation"}),
    (Wish(topology_policy="single-numa-node", cpu_options={"align-by-socket": True}), "cpu_options", "wish-socket-single-numa", {}),
    (Wish(reserved_cpus="0-"), "reserved_cpus", "wish-cpus", {"value": "0-", "words": 'strconv.Atoi: parsing "": invalid syntax'}),
    (Wish(system_reserved_cpu="half"), "system_reserved_cpu", "wish-amount", {"value": "half"}),
    (Wish(system_reserved_cpu="1e100"), "system_reserved_cpu", "wish-amount", {"value": "1e100"}),
    (Wish(kube_reserved_cpu="-1"), "kube_reserved_cpu", "wish-amount", {"value": "-1"}),
    (Wish(reserved_memory={}), "reserved_memory", "wish-memory-amounts", {}),
    (Wish(reserved_memory={0: 0}), "reserved_memory", "wish-memory-amounts", {}),
    (Wish(reserved_memory={0: 64, 1: 0}), "reserved_memory", "wish-memory-amounts", {}),
    (Wish(reserved_memory={-1: 64}), "reserved_memory", "wish-memory-amounts", {}),
    (Wish(memory_policy="None", reserved_memory="even"), "reserved_memory", "wish-memory-without-static", {}),
]  # fmt: skip


@pytest.mark.parametrize(("wish", "field", "code", "values"), WRONG)
def test_what_is_wrong_is_named_by_its_field_with_what_would_be_right(
    wish: Wish, field: str, code: str, values: dict[str, str | int]
) -> None:
    (fault,) = check(wish)
    assert (fault.field, fault.reason.code, fault.reason.values) == (field, code, values)


def test_unknown_options_are_told_by_name() -> None:
    found = check(Wish(cpu_options={"d": True, "b": False, "c": True, "a": True}))
    assert [fault.reason.values["option"] for fault in found] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "wish",
    [
        Wish(max_allowable_numa_nodes=8),
        Wish(max_allowable_numa_nodes=64),
        Wish(reserved_memory={0: 1}),
        Wish(system_reserved_cpu="0", kube_reserved_cpu="1e3"),
        Wish(reserved_cpus="+1,2-3"),
        Wish(cpu_options={"full-pcpus-only": True, "strict-cpu-reservation": True}),
    ],
)
def test_what_is_just_right_is_no_fault(wish: Wish) -> None:
    assert check(wish) == ()


def test_options_that_are_switched_off_exclude_nothing() -> None:
    assert (
        check(
            Wish(
                cpu_policy="none",
                cpu_options={"full-pcpus-only": False, "distribute-cpus-across-cores": False},
            )
        )
        == ()
    )
