"""Numbers come back as they were stored, whatever they are, and rubbish is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.history import chunks, codec, samples
from monitoring.history.codec import CodecError
from monitoring.history.metrics import ALL, METRICS, MISSING, PER_NODE, PER_NUMA, stored
from monitoring.history.samples import NodeSample

numbers = st.integers(-(2**61), 2**61)
tables = st.integers(0, 6).flatmap(
    lambda width: st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=5)
)


@given(tables, st.integers(1, 5))
def test_it_returns_what_was_packed(rows: list[list[int]], level: int) -> None:
    given_ = np.array(rows, np.int64).reshape(len(rows), -1)
    found = codec.unpack(codec.pack(given_, level))
    assert found.shape == given_.shape
    assert (found == given_).all()


@given(st.binary(max_size=200))
def test_it_refuses_rubbish(rubbish: bytes) -> None:
    try:
        codec.unpack(rubbish)
    except CodecError:
        return
    assert len(rubbish) >= codec.HEADER.size


def test_it_refuses_a_block_that_claims_to_be_huge() -> None:
    with pytest.raises(CodecError, match="numbers"):
        codec.unpack(codec.HEADER.pack(codec.VERSION, 8, 2**20, 2**20) + b"x")


def test_it_refuses_a_block_that_is_cut_off() -> None:
    data = codec.pack(np.arange(1000).reshape(10, 100) ** 3)
    with pytest.raises(CodecError):
        codec.unpack(data[: len(data) // 2])


@st.composite
def many(draw: st.DrawFn) -> list[NodeSample]:
    value = st.integers(MISSING, 2**50)
    made = []
    for node in draw(st.lists(st.integers(1, 10**9), unique=True, min_size=1, max_size=6)):
        ids = draw(st.lists(st.integers(0, 1000), unique=True, min_size=1, max_size=4).map(sorted))
        numa = [draw(st.lists(value, min_size=len(ids), max_size=len(ids))) for _ in PER_NUMA]
        made.append(NodeSample(node, ids, numa, [draw(value) for _ in PER_NODE]))
    return made


@given(many())
def test_it_finds_every_node_of_a_journal_row(given_: list[NodeSample]) -> None:
    block = samples.unpack_many(samples.pack_many(given_))
    for sample in given_:
        own = block.of(sample.node)
        assert own is not None
        assert own[0].tolist() == sample.ids
        assert own[1 : 1 + len(PER_NUMA)].tolist() == sample.numa
        assert own[1 + len(PER_NUMA) :, 0].tolist() == sample.values
    assert block.of(10**9 + 1) is None


def chunk(values: list[list[int]]) -> chunks.Chunk:
    """A chunk whose every metric has these values, a list per NUMA node."""
    table = np.array(values, np.int64)
    return chunks.Chunk(
        tuple(range(len(values))), np.stack([table] * len(PER_NUMA)), np.stack([table[0]] * len(PER_NODE))
    )


@given(st.lists(st.lists(st.integers(MISSING, 2**50), min_size=6, max_size=6), min_size=1, max_size=4))
def test_it_returns_a_chunk(values: list[list[int]]) -> None:
    found = chunks.unpack(chunks.pack(chunk(values)))
    assert found.ids == tuple(range(len(values)))
    assert (found.numa == chunk(values).numa).all()
    assert (found.node == chunk(values).node).all()


def test_it_rolls_up_means_and_highest_and_keeps_gaps() -> None:
    found = chunks.rolled_up(chunk([[10, 20, 60, MISSING, MISSING, MISSING]]), 3)
    busy, highest = PER_NUMA.index(METRICS["busy"]), PER_NUMA.index(METRICS["busy_max"])
    assert found.numa[busy, 0].tolist() == [30, MISSING]
    assert found.numa[highest, 0].tolist() == [60, MISSING]


def test_it_rolls_up_only_what_is_known() -> None:
    found = chunks.rolled_up(chunk([[10, MISSING, 20, MISSING, 4, MISSING]]), 2)
    assert found.numa[0, 0].tolist() == [10, 20, 4]


def test_it_merges_the_parts_of_a_machine_that_changed() -> None:
    first = chunk([[1, MISSING], [2, MISSING]])
    second = chunks.Chunk((0, 7), first.numa[:, :, ::-1] + 0, first.node[:, ::-1] + 0)
    found = chunks.merged(first, second)
    assert found.ids == (0, 1, 7)
    assert found.numa[0].tolist() == [[1, 1], [2, MISSING], [MISSING, 2]]


@pytest.mark.parametrize("value", [None, -1.0, float("nan"), float("inf"), 2.0**70])
def test_it_stores_what_is_no_value_as_missing(value: float | None) -> None:
    assert stored(METRICS["busy"], value) == MISSING


def test_it_loses_less_than_half_a_step() -> None:
    assert stored(METRICS["busy"], 0.12345678) / METRICS["busy"].scale == pytest.approx(0.1235)
    assert stored(METRICS["memory_used"], 123 * 1024) / METRICS["memory_used"].scale == 123 * 1024
    assert [metric.name for metric in ALL[:2]] == ["busy", "busy_max"]


def test_it_needs_few_bytes_for_a_busy_node() -> None:
    """A random walk of eight NUMA nodes, as pessimistic as a real node gets: about two bytes a value."""
    rng = np.random.default_rng(1)
    numa = np.abs(np.cumsum(rng.integers(-300, 301, (len(PER_NUMA), 8, 60)), axis=2) + 40_000)
    data = chunks.pack(chunks.Chunk(tuple(range(8)), numa, numa[: len(PER_NODE), 0]))
    assert len(data) / numa.size < 2.0
