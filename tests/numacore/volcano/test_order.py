"""Lists whose comparison contradicts itself come out as Go's sort leaves them."""

import json
import lzma
from pathlib import Path

import pytest

from numacore.volcano import order

RECORDED = Path(__file__).with_name("go-orders.jsonl.xz")
"""Input and output of `sort.Slice` in Go 1.26, compared by a chain of "or" over the keys."""


def test_it_leaves_what_go_leaves() -> None:
    with lzma.open(RECORDED, "rt") as lines:
        runs = [json.loads(line) for line in lines]
    assert len(runs) == 40
    contradictions = 0
    for run in runs:
        keys = run["keys"]

        def less(a: int, b: int, keys: list[list[int]] = keys) -> bool:
            return any(mine < theirs for mine, theirs in zip(keys[a], keys[b], strict=True))

        assert order.slice_order(run["in"], less) == run["out"]
        contradictions += run["out"] != sorted(run["in"], key=keys.__getitem__)
    assert contradictions > 20


@pytest.mark.parametrize("length", [0, 1, 12, 13, 49, 50, 300])
def test_it_sorts_what_can_be_sorted(length: int) -> None:
    items = [number * 7919 % 1009 for number in range(length)]
    assert order.slice_order(items, lambda a, b: a < b) == sorted(items)


def test_it_bears_an_order_that_defeats_its_pivots() -> None:
    """Everything comes before everything: partitions are as unbalanced as can be, and it falls back to a heap."""
    items = list(range(200))
    assert sorted(order.slice_order(items, lambda a, b: True)) == items
