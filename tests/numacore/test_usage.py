"""Rates between two readings: counters that grow, start anew, run back a little or are not there."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore import usage
from numacore.cpuset import CpuSet
from numacore.topology import dec_hook
from numacore.usage import ContainerUse, CpuTimes, MemoryUse, Usage
from tests.numacore import machines


def times(cpus: str, busy: tuple[int, ...], idle: tuple[int, ...]) -> CpuTimes:
    return CpuTimes(CpuSet.parse(cpus), busy, idle)


@pytest.mark.parametrize(
    ("before", "after", "shares"),
    [
        (times("0-1", (100, 100), (900, 900)), times("0-1", (150, 100), (950, 1000)), {0: 0.5, 1: 0.0}),
        (times("0", (0,), (0,)), times("0", (25,), (75,)), {0: 0.25}),
        # no tick passed: nothing can be said
        (times("0", (5,), (5,)), times("0", (5,), (5,)), {}),
        # busy ran backwards: counters started anew
        (times("0-1", (900, 5), (900, 5)), times("0-1", (10, 10), (20, 10)), {1: 0.5}),
        # idle may slip back a little (tickless kernels), but not far
        (times("0", (0,), (1000,)), times("0", (50,), (950,)), {0: 1.0}),
        (times("0", (0,), (1000,)), times("0", (50,), (899,)), {}),
        # a CPU came, a CPU went
        (times("0-1", (0, 0), (0, 0)), times("1-2", (10, 10), (30, 30)), {1: 0.25}),
        (None, times("0", (1,), (1,)), {}),
        (times("0", (1,), (1,)), None, {}),
    ],
)
def test_busy_shares(before: CpuTimes | None, after: CpuTimes | None, shares: dict[int, float]) -> None:
    assert usage.busy_shares(before, after) == shares


def test_a_reading_is_summed_up_by_numa_node() -> None:
    known = {0: MemoryUse(used=5, free=6, file=1, counters={"other_node": 3})}
    every = CpuTimes(CpuSet(range(4)), (1, 2, 3, 4), (10, 20, 30, 40))
    found = usage.numa_usage(machines.TWO, every, known)
    sizes = [sum(cpu < 4 for cpu in node.cpus) for node in machines.TWO.nodes]
    assert sum(each or 0 for each in found.busy) == 10
    assert [each is None for each in found.busy] == [not size for size in sizes]
    assert (found.used[0], found.free[0], found.file[0], found.other_node[0]) == (5, 6, 1, 3)
    assert (found.used[1], found.other_node[1]) == (None, None)
    nothing = usage.numa_usage(machines.HBM, None, {})
    assert set(nothing.busy) == set(nothing.idle) == {None}
    assert not nothing.cpus


@pytest.mark.parametrize(
    ("busy", "nodes"),
    [
        ({0: 0.2, 1: 0.4, 2: 0.0, 3: 0.2, 4: 1.0}, {0: pytest.approx(0.2), 1: 1.0, 2: None}),
        ({}, {0: None, 1: None, 2: None}),
        ({99: 1.0}, {0: None, 1: None, 2: None}),
    ],
)
def test_the_busy_share_of_a_numa_node(busy: dict[int, float], nodes: dict[int, float | None]) -> None:
    assert usage.numa_busy(machines.HBM, busy) == nodes


@pytest.mark.parametrize(
    ("before", "after", "seconds", "rate"),
    [
        (10, 30, 4.0, 5.0),
        (10, 10, 4.0, 0.0),
        (30, 10, 4.0, None),
        (None, 10, 4.0, None),
        (10, None, 4.0, None),
        (10, 30, 0.0, None),
        (10, 30, -1.0, None),
    ],
)
def test_the_rate_of_a_counter(
    before: int | None, after: int | None, seconds: float, rate: float | None
) -> None:
    assert usage.counter_rate(before, after, seconds) == rate


@pytest.mark.parametrize(
    ("values", "total"),
    [([1, 2], 3), ([0], 0), ([1, None], None), ([None], None), ([], None)],
)
def test_a_total_of_a_part_is_unknown(values: list[int | None], total: int | None) -> None:
    assert usage.total(values) == total


def reading(
    cpu_time: tuple[int | None, ...] | None, counters: dict[int, dict[str, int]] | None = None
) -> Usage:
    columns = None if cpu_time is None else ContainerUse(cpu_time, (None,) * len(cpu_time), {})
    memory = {node: MemoryUse(counters=each) for node, each in (counters or {}).items()}
    return Usage(containers_of="h", containers=columns, memory=memory)


def test_rates_follow_containers_by_id_not_by_place() -> None:
    before, after = reading((1_000_000, 5_000_000, 7)), reading((9_000_000, 3_000_000, 50))
    found = usage.rates(before, ["a", "b", "gone"], after, ["b", "a", "new"], 2.0)
    assert found.cpu_use == {"b": 2.0, "a": 1.0}
    assert found.seconds == 2.0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (reading((5,)), reading((None,))),
        (reading((None,)), reading((5,))),
        (reading((9,)), reading((5,))),  # restarted under the same id
        (reading(None), reading((5,))),
        (reading((5,)), reading(None)),
        (reading(()), reading((5,))),  # fewer values than containers
    ],
)
def test_unknown_use_of_a_container_stays_out(before: Usage, after: Usage) -> None:
    assert usage.rates(before, ["a"], after, ["a"], 1.0).cpu_use == {}


def test_numastat_rates_leave_out_what_started_anew() -> None:
    before = reading(None, {0: {"numa_hit": 100, "other_node": 50}, 1: {"numa_hit": 5}})
    after = reading(None, {0: {"numa_hit": 300, "other_node": 10, "numa_miss": 4}, 9: {"numa_hit": 5}})
    found = usage.rates(before, [], after, [], 10.0)
    assert found.numastat == {0: {"numa_hit": 20.0}, 9: {}}


@pytest.mark.parametrize(("busy", "idle"), [((1,), (1, 1)), ((1, 1), (1,)), ((), ())])
def test_counters_of_another_number_of_cpus_are_refused(busy: tuple[int, ...], idle: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"\d busy and \d idle counters for 2 CPUs"):
        times("0-1", busy, idle)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b'{"containers_of":"h","cpu":{"cpus":"0","busy":[-1],"idle":[0]}}', "$.cpu.busy[0]"),
        (b'{"containers_of":"h","cpu":{"cpus":"0-1","busy":[1],"idle":[0]}}', "for 2 CPUs - at `$.cpu`"),
        (b'{"containers_of":"h","memory":{"0":{"used":1.5}}}', "used"),
        (b'{"containers_of":"h","memory":{"x":{}}}', "`key` in `$.memory`"),
        (b'{"containers_of":"h","containers":{"cpu_time":[],"memory":[],"pages":{"0":["1"]}}}', "pages"),
        (b"{}", "containers_of"),
    ],
)
def test_a_wrong_field_is_named(data: bytes, field: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(data, type=Usage, dec_hook=dec_hook)
    assert field in str(raised.value)


ticks = st.integers(0, 2**40)


@given(st.lists(st.tuples(ticks, ticks, ticks, ticks), max_size=8))
def test_a_busy_share_is_a_share(rows: list[tuple[int, int, int, int]]) -> None:
    cpus = CpuSet(range(len(rows)))
    before = CpuTimes(cpus, tuple(row[0] for row in rows), tuple(row[1] for row in rows))
    after = CpuTimes(cpus, tuple(row[2] for row in rows), tuple(row[3] for row in rows))
    found = usage.busy_shares(before, after)
    assert all(0 <= share <= 1 for share in found.values())
    assert all(after.busy[cpu] >= before.busy[cpu] for cpu in found)


@given(ticks, ticks, st.floats(0.001, 1e6))
def test_a_rate_is_never_negative(before: int, after: int, seconds: float) -> None:
    rate = usage.counter_rate(before, after, seconds)
    assert rate is None or rate >= 0
