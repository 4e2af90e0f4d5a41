"""Hints, their merge, and what each policy makes of them."""

import pytest

from numacore.hints import Hint
from numacore.volcano import hints
from tests.numacore.volcano.builders import bits, index, machine

TWO = index(machine(2, 4))
FIRST, SECOND, BOTH = 0b01, 0b10, 0b11


@pytest.mark.parametrize(
    ("free", "request_", "expected"),
    [
        ("0-7", 4, [(FIRST, True), (SECOND, True), (BOTH, False)]),
        ("1-7", 4, [(SECOND, True), (BOTH, False)]),
        ("0-7", 5, [(BOTH, True)]),
        ("0-7", 8, [(BOTH, True)]),
        ("0-7", 9, []),
        ("2-5", 4, [(BOTH, False)]),
    ],
)
def test_masks_that_suffice_are_offered(free: str, request_: int, expected: list[tuple[int, bool]]) -> None:
    offered = hints.offered(TWO, bits(free), request_)
    assert [(hint.mask, hint.preferred) for hint in offered] == expected


def test_free_cpus_that_nobody_described_count_for_numa_node_0() -> None:
    offered = hints.offered(TWO, bits("3,8-10"), 4)
    assert [hint.mask for hint in offered] == [FIRST, BOTH]


def test_hints_come_narrow_first_and_then_by_ids() -> None:
    three = index(machine(3, 2))
    assert [hint.mask for hint in hints.offered(three, three.every, 1)] == [1, 2, 4, 3, 5, 6, 7]


@pytest.mark.parametrize(
    ("offered", "merged"),
    [
        ([], Hint(BOTH, False)),
        ([Hint(None, True)], Hint(BOTH, True)),
        ([Hint(BOTH, False), Hint(SECOND, True)], Hint(SECOND, True)),
        ([Hint(SECOND, True), Hint(FIRST, True)], Hint(FIRST, True)),
        ([Hint(SECOND, True), Hint(FIRST, False)], Hint(SECOND, True)),
        ([Hint(BOTH, False), Hint(SECOND, False)], Hint(SECOND, False)),
        ([Hint(0b100, True)], Hint(BOTH, False)),
    ],
)
def test_the_narrowest_preferred_hint_wins(offered: list[Hint], merged: Hint) -> None:
    assert hints.merge(offered, BOTH) == merged


@pytest.mark.parametrize(
    ("policy", "offered", "admitted"),
    [
        ("best-effort", (), True),
        ("best-effort", (Hint(BOTH, False),), True),
        ("restricted", (Hint(BOTH, True),), True),
        ("restricted", (Hint(FIRST, False),), False),
        ("restricted", (), False),
        ("restricted", None, True),
        ("single-numa-node", (Hint(BOTH, True),), False),
        ("single-numa-node", (Hint(SECOND, True), Hint(BOTH, False)), True),
        ("single-numa-node", (Hint(FIRST, False),), False),
        ("single-numa-node", (), False),
        ("single-numa-node", None, True),
        ("anything else", (), True),
    ],
)
def test_a_policy_admits(policy: str, offered: tuple[Hint, ...] | None, admitted: bool) -> None:
    assert hints.best(offered, BOTH, policy)[1] is admitted


def test_sixteen_numa_nodes_give_every_mask() -> None:
    many = index(machine(16, 1))
    offered = hints.offered(many, many.every, 1)
    assert len(offered) == 65_535
    assert sum(hint.preferred for hint in offered) == 16
