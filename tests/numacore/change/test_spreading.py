"""Reserved memory over NUMA nodes: exact to the byte, where there is room, and read back as it stands."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numacore.change.spreading import SpreadError, amounts, entries, holds, spread, text
from numacore.kubelet.machine import Machine, Node
from tests.numacore.kubelet.builders import machine

MIB = 1 << 20


def node(numa: int, memory: int, *, pages: int = 0, cpus: bool = True) -> Node:
    """Mi of memory, `pages` of 2 Mi of them huge."""
    (made,) = machine(1, cores=1).nodes
    return msgspec.structs.replace(
        made, id=numa, memory=memory * MIB, hugepages={2048: pages}, cores=made.cores if cpus else ()
    )


TWO = Machine((node(0, 1000), node(1, 1000, pages=250)))
FAR = Machine((node(0, 100, pages=50), node(3, 100), node(7, 1000, cpus=False)))
"""NUMA node 0 is full of huge pages, 7 is memory without CPUs."""
NO_CPUS = Machine((node(0, 10, pages=5, cpus=False), node(1, 100, cpus=False)))


@pytest.mark.parametrize(
    ("how", "need", "on", "sizes"),
    [
        ("even", 10 * MIB, TWO, {0: 5 * MIB, 1: 5 * MIB}),
        ("even", 11 * MIB + 7, TWO, {0: 6 * MIB + 7, 1: 5 * MIB}),
        ("even", 1, TWO, {0: 1}),
        ("even", 1200 * MIB, TWO, {0: 700 * MIB, 1: 500 * MIB}),
        ("even", 1500 * MIB, TWO, {0: 1000 * MIB, 1: 500 * MIB}),
        ("first", 10 * MIB, TWO, {0: 10 * MIB}),
        ("first", 1001 * MIB, TWO, {0: 1000 * MIB, 1: MIB}),
        ("even", 10 * MIB, FAR, {3: 10 * MIB}),
        ("first", 10 * MIB, FAR, {3: 10 * MIB}),
        ("even", 101 * MIB, FAR, {3: 100 * MIB, 7: MIB}),
        ("even", 100 * MIB, NO_CPUS, {1: 100 * MIB}),
        ({1: 2, 0: 3}, 5 * MIB, TWO, {0: 3 * MIB, 1: 2 * MIB}),
        ({1: 2, 0: 3}, 6 * MIB - 1, TWO, {0: 4 * MIB - 1, 1: 2 * MIB}),
        ({1: 500}, 500 * MIB, TWO, {1: 500 * MIB}),
    ],
)
def test_the_sum_is_exact_and_every_numa_node_has_room(
    how: Any, need: int, on: Machine, sizes: dict[int, int]
) -> None:
    found = spread(how, need, on)
    assert found == sizes
    assert list(found) == sorted(found)


@pytest.mark.parametrize(
    ("how", "need", "on", "code", "values"),
    [
        ("even", 1501 * MIB, TWO, "ask-memory-too-small", {"need": 1501 * MIB, "room": 1500 * MIB}),
        ("even", 1, Machine((node(0, 10, pages=5),)), "ask-memory-too-small", {"need": 1, "room": 0}),
        ("first", 1, Machine((node(0, 10, pages=6),)), "ask-memory-too-small", {"need": 1, "room": 0}),
        ({9: 1, 5: 1}, 2 * MIB, TWO, "ask-memory-no-node", {"numa": 5, "nodes": "0, 1"}),
        ({0: 3}, 4 * MIB, TWO, "ask-memory-sum", {"have": 3 * MIB, "need": 4 * MIB}),
        ({0: 3}, 3 * MIB - 1, TWO, "ask-memory-sum", {"have": 3 * MIB, "need": 3 * MIB - 1}),
        (
            {1: 501},
            501 * MIB,
            TWO,
            "ask-memory-node-too-small",
            {"numa": 1, "size": 501 * MIB, "room": 500 * MIB},
        ),
    ],
)
def test_what_does_not_fit_is_told_with_its_numbers(
    how: Any, need: int, on: Machine, code: str, values: dict[str, Any]
) -> None:
    with pytest.raises(SpreadError) as raised:
        spread(how, need, on)
    assert (raised.value.reason.code, raised.value.reason.values) == (code, values)


def test_sizes_are_written_in_the_largest_unit_that_holds_them() -> None:
    assert [text(size) for size in (3 * MIB, 1536, 1024, 2047, 0)] == ["3Mi", "1536", "1Ki", "2047", "0Mi"]
    assert entries({0: 3 * MIB, 2: 5}) == [
        {"numaNode": 0, "limits": {"memory": "3Mi"}},
        {"numaNode": 2, "limits": {"memory": "5"}},
    ]


@pytest.mark.parametrize(
    ("stands", "sizes"),
    [
        ([{"numaNode": 1, "limits": {"memory": "2Mi"}}, {"limits": {"memory": 7}}], {0: 7, 1: 2 * MIB}),
        ([], {}),
        ([{"numaNode": 0, "limits": None}], None),
        ([{"numaNode": 0, "limits": {"memory": "1Mi", "hugepages-2Mi": "2Mi"}}], None),
        ([{"numaNode": 0, "limits": {"hugepages-2Mi": "2Mi"}}], None),
        ([{"numaNode": 0, "limits": {"memory": "1"}}, {"numaNode": 0, "limits": {"memory": "1"}}], None),
        ([{"numaNode": 0, "limits": {"memory": "500m"}}], None),
    ],
)
def test_what_stands_there_is_read_by_numa_node_or_not_at_all(
    stands: list[dict[str, Any]], sizes: dict[int, int] | None
) -> None:
    found = amounts(stands)
    assert found == sizes
    assert found is None or list(found) == sorted(found)


@pytest.mark.parametrize(
    ("sizes", "need", "right"),
    [
        ({0: 10, 1: 5}, 15, True),
        ({0: 10, 1: 5}, 16, False),
        ({1: 500 * MIB}, 500 * MIB, True),
        ({1: 501 * MIB}, 501 * MIB, False),
        ({0: 1, 1: 501 * MIB}, 501 * MIB + 1, False),
        ({0: 1}, 1, True),
        ({0: 5, 1: 0}, 5, False),
        ({0: 5, 2: 1}, 6, False),
    ],
)
def test_what_stands_there_is_right_if_its_sum_is_and_every_numa_node_bears_it(
    sizes: dict[int, int], need: int, right: bool
) -> None:
    assert holds(entries(sizes), need, TWO) is right
