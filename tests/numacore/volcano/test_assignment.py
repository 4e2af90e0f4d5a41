"""Which CPUs Volcano believes that a container gets."""

import pytest

from numacore.hints import Hint
from numacore.volcano import assignment, plugin
from tests.numacore.volcano.builders import bits, index, machine, shown

# Two sockets, a NUMA node each, two cores of two neighbouring threads; core ids unique.
NEIGHBOURS = {number: machine(2, 2)[number // 2] for number in range(8)}


@pytest.mark.parametrize(
    ("free", "request_", "mask", "expected"),
    [
        ("0-7", 4, 0b01, "0-3"),
        ("1-7", 4, 0b10, "4-7"),
        ("0-7", 5, 0b11, "0-4"),
        ("1-7", 5, 0b11, "1,4-7"),
        ("1-7", 8, 0b11, ""),
    ],
)
def test_it_takes_from_the_hint_first(free: str, request_: int, mask: int, expected: str) -> None:
    (found,) = plugin.allocate(index(NEIGHBOURS), bits(free), request_, Hint(mask, True))
    assert shown(found) == expected


def test_without_a_hint_it_takes_from_anywhere() -> None:
    (found,) = plugin.allocate(index(NEIGHBOURS), bits("0-7"), 2, Hint(None, False))
    assert shown(found) == "0-1"


def test_it_takes_a_whole_socket_only_where_the_id_of_the_socket_is_a_free_cpu() -> None:
    """Four CPUs are a socket's worth, but CPU 1 is taken, and 1 is the id of the second socket: cores are taken instead."""
    whole = index(machine(2, 4))
    assert [shown(each) for each in assignment.takes(whole, bits("0-7"), 4)] == ["0-3"]
    assert [shown(each) for each in assignment.takes(whole, bits("4-7"), 4)] == ["4-7"]
    # CPUs 0 and 1 are owned: neither socket passes, and the fuller choice is made core by core.
    assert [shown(each) for each in assignment.takes(whole, bits("2-7"), 4)] == ["2-5"]


def test_core_ids_that_are_unique_in_a_socket_only_take_the_cores_of_both() -> None:
    """2 x 10 cores with 2 threads, as the resource-exporter describes them: a reservation of 2 removes 4 CPUs."""
    twice = index(machine(2, 10, threads=2, unique=False))
    once = index(machine(2, 10, threads=2))
    assert [shown(each) for each in assignment.takes(twice, twice.every, 2)] == ["0,10,20,30"]
    assert [shown(each) for each in assignment.takes(once, once.every, 2)] == ["0,20"]


def test_more_than_there_is_cannot_be_taken() -> None:
    assert assignment.takes(index(NEIGHBOURS), bits("0-2"), 4) == (None,)
    assert assignment.takes(index(NEIGHBOURS), bits("0-2"), 0) == (0,)


def test_cpus_that_nobody_described_are_not_taken() -> None:
    assert assignment.takes(index(NEIGHBOURS), bits("6-9"), 3) == (None,)


def test_it_says_where_the_order_of_a_go_map_decides() -> None:
    """Socket 0 has more free cores than socket 1, so each comes before the other, and either may be emptied first."""
    found = assignment.takes(index(machine(2, 4)), bits("0-3,6-7"), 3)
    assert {shown(each) for each in found} == {"0,6-7", "0-2"}
    assert shown(found[0]) == "0,6-7"


def test_sockets_in_agreement_leave_one_answer() -> None:
    assert [shown(each) for each in assignment.takes(index(machine(2, 4)), bits("2-3,4-7"), 3)] == ["2-4"]
