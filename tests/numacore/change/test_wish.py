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


@pytest.mark.parametrize(
    ("wish", "field", "code"),
    [
        (Wish(topology_policy="strict"), "topology_policy", "wish-choice"),  # type: ignore[arg-type]
        (Wish(memory_policy="static"), "memory_policy", "wish-choice"),  # type: ignore[arg-type]
        (Wish(reserved_memory="odd"), "reserved_memory", "wish-choice"),  # type: ignore[arg-type]
        (Wish(max_allowable_numa_nodes=7), "max_allowable_numa_nodes", "wish-max-nodes"),
        (Wish(max_allowable_numa_nodes=65), "max_allowable_numa_nodes", "wish-max-nodes"),
        (Wish(topology_policy="none", prefer_closest=True), "prefer_closest", "wish-closest-without-policy"),
        (Wish(cpu_options={"fast": True}), "cpu_options", "wish-option-unknown"),
        (Wish(cpu_options={"full-pcpus-only": True, "distribute-cpus-across-cores": True}), "cpu_options", "wish-options-exclude"),
        (Wish(cpu_policy="none", cpu_options={"full-pcpus-only": True}), "cpu_options", "wish-options-without-static"),
        (Wish(topology_policy="single-numa-node", cpu_options={"align-by-socket": True}), "cpu_options", "wish-socket-single-numa"),
        (Wish(reserved_cpus="0-"), "reserved_cpus", "wish-cpus"),
        (Wish(system_reserved_cpu="half"), "system_reserved_cpu", "wish-amount"),
        (Wish(kube_reserved_cpu="-1"), "kube_reserved_cpu", "wish-amount"),
        (Wish(reserved_memory={}), "reserved_memory", "wish-memory-amounts"),
        (Wish(reserved_memory={0: 0}), "reserved_memory", "wish-memory-amounts"),
        (Wish(memory_policy="None", reserved_memory="even"), "reserved_memory", "wish-memory-without-static"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_field(wish: Wish, field: str, code: str) -> None:
    assert [(fault.field, fault.reason.code) for fault in check(wish)] == [(field, code)]


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
