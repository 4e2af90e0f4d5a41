"""The figures of one container: kind, locality, cost, crossing; and who owns a CPU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore import workload
from numacore.cpuset import EMPTY, CpuSet
from numacore.workload import Container, Cross, Kind, Ownership
from tests.numacore import machines

POOL = CpuSet.parse("2-7")


def container(cpus: str | None = None, exclusive: str | None = None) -> Container:
    return Container(
        id="c",
        cpus=None if cpus is None else CpuSet.parse(cpus),
        exclusive=None if exclusive is None else CpuSet.parse(exclusive),
    )


@pytest.mark.parametrize(
    ("cpus", "exclusive", "kind"),
    [
        ("0-1", "0-1", "exclusive"),
        (None, "0-1", "exclusive"),
        ("0-7", "", "floating"),
        ("2-7", "", "floating"),
        ("2-7", None, "floating"),
        ("4-7", "", "narrowed"),
        ("0-1", None, "narrowed"),
        (None, None, None),
        (None, "", None),
        ("", "", None),
    ],
)
def test_it_names_the_kind_of_a_container(cpus: str | None, exclusive: str | None, kind: Kind | None) -> None:
    assert workload.kind(container(cpus, exclusive), POOL) == kind


@pytest.mark.parametrize(
    ("reserved", "exclusive", "pool"),
    [("0", "1-2", "3-7"), (None, "", "0-7"), ("", "0-7", ""), ("0-1", "0-1", "2-7"), ("9", "8", "0-7")],
)
def test_the_pool_is_what_nobody_owns(reserved: str | None, exclusive: str, pool: str) -> None:
    kept = None if reserved is None else CpuSet.parse(reserved)
    found = workload.shared_pool(CpuSet.parse("0-7"), kept, CpuSet.parse(exclusive))
    assert found == CpuSet.parse(pool)


@pytest.mark.parametrize(
    ("amounts", "shares"),
    [
        ({0: 3.0, 1: 1.0}, {0: 0.75, 1: 0.25}),
        ({0: 0.0, 7: 5.0}, {7: 1.0}),
        ({0: 0.0}, None),
        ({}, None),
        ({0: 10.0, 1: -5.0}, {0: 1.0}),
    ],
)
def test_shares_add_up_to_one(amounts: dict[int, float], shares: dict[int, float] | None) -> None:
    assert workload.shares(amounts) == shares


def test_cpu_shares_are_measured_where_known_and_even_otherwise() -> None:
    three_of_four = CpuSet.parse("1-4")
    assert workload.cpu_shares(machines.TWO, three_of_four) == {0: 0.75, 1: 0.25}
    assert workload.cpu_shares(machines.TWO, three_of_four, {0: 10.0, 1: 30.0}) == {0: 0.25, 1: 0.75}
    assert workload.cpu_shares(machines.TWO, three_of_four, {0: 0.0, 1: 0.0}) == {0: 0.75, 1: 0.25}
    assert workload.cpu_shares(machines.TWO, None) is None
    assert workload.cpu_shares(machines.TWO, EMPTY) is None
    assert workload.cpu_shares(machines.TWO, CpuSet([99])) is None


@pytest.mark.parametrize(
    ("cpu", "pages", "locality", "cost"),
    [
        ({0: 1.0}, {0: 1.0}, 1.0, 1.0),
        ({0: 1.0}, {1: 1.0}, 0.0, 2.1),
        ({0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.5}, 0.5, 1.55),  # half of the pairs at 10, half at 21
        ({0: 0.75, 1: 0.25}, {0: 1.0}, 0.75, 1.275),  # 0.75 x 1.0 + 0.25 x 2.1
        ({0: 1.0}, {2: 1.0}, 0.0, 1.4),  # the memory-only node at 14
        (None, {0: 1.0}, None, None),
        ({0: 1.0}, None, None, None),
        ({0: 1.0}, {9: 1.0}, 0.0, None),  # a node that the machine does not have: no distance
    ],
)
def test_locality_and_cost(
    cpu: dict[int, float] | None, pages: dict[int, float] | None, locality: float | None, cost: float | None
) -> None:
    assert workload.locality(cpu, pages) == (None if locality is None else pytest.approx(locality))
    assert workload.cost(machines.HBM, cpu, pages) == (None if cost is None else pytest.approx(cost))


def test_cost_follows_the_direction_of_the_distance() -> None:
    assert workload.cost(machines.LOPSIDED, {0: 1.0}, {1: 1.0}) == 3.0
    assert workload.cost(machines.LOPSIDED, {1: 1.0}, {0: 1.0}) == 2.0


def test_an_unreachable_pair_has_no_cost() -> None:
    assert workload.cost(machines.CUT_OFF, {0: 1.0}, {1: 1.0}) is None
    assert workload.cost(machines.CUT_OFF, {0: 1.0}, {0: 1.0}) == 1.0


@pytest.mark.parametrize(
    ("nodes", "pages", "remote"),
    [
        ((0,), {0: 0.9, 1: 0.1}, 0.1),
        ((0, 1), {0: 0.9, 1: 0.1}, 0.0),
        ((), {0: 1.0}, 1.0),
        ((0,), None, None),
    ],
)
def test_remote_pages(nodes: tuple[int, ...], pages: dict[int, float] | None, remote: float | None) -> None:
    found = workload.remote_pages(nodes, pages)
    assert found == (None if remote is None else pytest.approx(remote))


@pytest.mark.parametrize(
    ("kind", "nodes", "pages", "devices", "cross"),
    [
        ("exclusive", (0,), {0: 1.0}, [], ()),
        ("exclusive", (0, 1), {0: 1.0}, [], ("cpu",)),
        ("narrowed", (0, 1), None, [], ("cpu",)),
        ("exclusive", (0,), {0: 0.95, 1: 0.05}, [], ()),  # exactly 5 % is not more than 5 %
        ("exclusive", (0,), {0: 0.94, 1: 0.06}, [], ("memory",)),
        ("exclusive", (0,), None, [(1,)], ("device",)),
        ("exclusive", (0,), None, [(0, 1)], ()),
        ("exclusive", (0,), None, [()], ()),
        ("exclusive", (0,), None, [(0,), (1,)], ("device",)),
        ("narrowed", (0, 1), {0: 0.5, 2: 0.5}, [(2,)], ("cpu", "memory", "device")),
        ("floating", (0, 1), {0: 0.5, 1: 0.5}, [(2,)], ()),
        ("floating", (), None, [], ()),
        (None, (0, 1), {0: 1.0}, [], None),
        ("narrowed", (), {0: 1.0}, [(0,)], None),  # CPUs in no known NUMA node: nobody can say
    ],
)
def test_it_tells_what_crosses(
    kind: Kind | None,
    nodes: tuple[int, ...],
    pages: dict[int, float] | None,
    devices: list[tuple[int, ...]],
    cross: tuple[Cross, ...] | None,
) -> None:
    assert workload.crosses(kind, nodes, pages, devices) == cross


@pytest.mark.parametrize(
    ("cpu", "reserved", "owner"),
    [
        (0, "0", "reserved"),
        (1, "0", "exclusive"),
        (1, "0-1", "exclusive"),
        (2, "0", "shared"),
        (0, None, "shared"),
        (7, "7", "offline"),
    ],
)
def test_it_names_the_owner_of_a_cpu(cpu: int, reserved: str | None, owner: Ownership) -> None:
    kept = None if reserved is None else CpuSet.parse(reserved)
    found = workload.ownership(cpu, online=CpuSet.parse("0-3"), reserved=kept, exclusive=CpuSet([1]))
    assert found == owner


@pytest.mark.parametrize(
    ("owner", "busy", "occupied"),
    [
        ("exclusive", 0.0, True),
        ("exclusive", None, True),
        ("shared", 0.11, True),
        ("shared", 0.10, False),
        ("reserved", 0.0, False),
        ("shared", None, None),
        ("offline", 0.9, None),
    ],
)
def test_it_tells_occupied_from_idle(owner: Ownership, busy: float | None, occupied: bool | None) -> None:
    assert workload.occupied(owner, busy) is occupied


def test_the_threshold_is_the_callers() -> None:
    assert workload.occupied("shared", 0.4, threshold=0.5) is False
    assert workload.occupied("shared", 0.6, threshold=0.5) is True


amounts = st.dictionaries(st.sampled_from([0, 1, 2]), st.integers(0, 10**12), max_size=3)


@given(amounts, amounts)
def test_locality_is_a_share_and_cost_at_least_local(cpu: dict[int, int], pages: dict[int, int]) -> None:
    cpu_shares, page_shares = workload.shares(cpu), workload.shares(pages)
    locality = workload.locality(cpu_shares, page_shares)
    cost = workload.cost(machines.HBM, cpu_shares, page_shares)
    if cpu_shares is None or page_shares is None:
        assert locality is None
        assert cost is None
    else:
        assert locality is not None
        assert cost is not None
        assert -1e-9 <= locality <= 1 + 1e-9
        assert 1 - 1e-9 <= cost <= 2.4 + 1e-9  # the greatest distance of that machine is 24
        assert (cost == pytest.approx(1)) == (locality == pytest.approx(1))
