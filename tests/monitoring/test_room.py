"""What fits on one NUMA node, from the free CPUs of each."""

from __future__ import annotations

import pytest

from monitoring.selectors.room import RoomFor, room


def test_it_names_the_largest_block_and_where_it_is() -> None:
    found = room([("a", {"0": 6, "1": 3}), ("b", {"0": 1, "8": 9})])
    assert (found.largest, found.node, found.numa) == (9, "b", 8)
    assert (found.free, found.numa_nodes, found.unknown) == (19, 4, 0)


def test_it_tells_what_is_lost_because_free_cpus_are_scattered() -> None:
    """Four NUMA nodes with three CPUs each: a node has room for three pods of four CPUs, and no NUMA node for one."""
    found = room([("a", {"0": 3, "1": 3, "2": 3, "3": 3})])
    assert found.sizes == (RoomFor(2, 4, 6), RoomFor(4, 0, 3), RoomFor(8, 0, 1))
    assert [each.scattered for each in found.sizes] == [2, 3, 1]


def test_what_nobody_tells_is_unknown_and_no_room() -> None:
    found = room([("a", None), ("b", {"0": None, "1": None}), ("c", {})])
    assert (found.free, found.largest, found.unknown, found.sizes) == (None, None, 3, ())
    part = room([("a", None), ("b", {"0": 4, "1": None})])
    assert (part.free, part.largest, part.unknown, part.numa_nodes) == (4, 4, 2, 1)


def test_full_nodes_are_known_to_have_no_room() -> None:
    found = room([("a", {"0": 0, "1": 0})])
    assert (found.free, found.largest, found.node, found.sizes) == (0, 0, "", ())


def test_of_equal_blocks_the_first_is_named() -> None:
    found = room([("a", {"1": 4, "0": 4}), ("b", {"0": 4})])
    assert (found.node, found.numa) == ("a", 0)


@pytest.mark.parametrize("cpus", [2, 4, 8, 16, 32, 64, 128])
def test_a_whole_block_of_a_size_takes_one_pod_of_it(cpus: int) -> None:
    (largest,) = room([("a", {"0": cpus})]).sizes[-1:]
    assert largest == RoomFor(cpus, 1, 1)
