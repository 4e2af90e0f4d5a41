"""What the simulation is worth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore.volcano import plugin
from tests.numacore.volcano.builders import pod

COUNTS = st.dictionaries(st.text(max_size=3), st.integers(0, 64), max_size=8)


@pytest.mark.parametrize(
    ("counts", "weight", "values"),
    [
        ({"a": 1, "b": 2, "c": 4}, 10, {"a": 750, "b": 500, "c": 0}),
        ({"a": 1, "b": 3}, 1, {"a": 67, "b": 0}),
        ({"a": 1, "b": 1}, 10, {"a": 0, "b": 0}),
        ({"a": 1}, 10, {"a": 0}),
        ({"a": 0, "b": 0}, 10, {"a": 1000, "b": 1000}),
        ({"a": 0, "b": 2}, 5, {"a": 500, "b": 0}),
        ({"a": 1, "b": 2}, 0, {"a": 0, "b": 0}),
        ({"a": 1, "b": 2}, -1, {"a": -50, "b": 0}),
        ({}, 1, {}),
    ],
)
def test_fewer_numa_nodes_score_higher(counts: dict[str, int], weight: int, values: dict[str, int]) -> None:
    scores = plugin.batch_node_order(pod(2), counts, weight)
    assert {name: score.value for name, score in scores.items()} == values


@pytest.mark.parametrize("policy", ["", "none"])
def test_a_pod_without_a_policy_has_no_score(policy: str) -> None:
    assert plugin.batch_node_order(pod(2, policy=policy), {"a": 1}, 10) == {}


@pytest.mark.parametrize(
    ("argument", "used"),
    [
        (10, (10, True)),
        (0, (0, True)),
        (-3, (-3, True)),
        (None, (1, True)),
        ("10", (1, False)),
        (10.0, (1, False)),
        (True, (1, False)),
        (1 << 63, (1, False)),
        ([10], (1, False)),
    ],
)
def test_a_weight_that_is_no_integer_is_not_used(argument: object, used: tuple[int, bool]) -> None:
    assert plugin.weight(argument) == used


@given(counts=COUNTS, weight=st.integers(0, 1000))
def test_scores_fall_as_counts_rise(counts: dict[str, int], weight: int) -> None:
    scores = plugin.batch_node_order(pod(2), counts, weight)
    by_count = sorted(scores.values(), key=lambda score: score.numa_nodes)
    values = [score.value for score in by_count]
    assert values == sorted(values, reverse=True)
    assert all(0 <= value <= 100 * weight for value in values)


@given(counts=COUNTS, weight=st.integers(1, 1000))
def test_the_weight_only_scales(counts: dict[str, int], weight: int) -> None:
    once, often = (plugin.batch_node_order(pod(2), counts, each) for each in (1, weight))
    assert {name: score.value * weight for name, score in once.items()} == {
        name: score.value for name, score in often.items()
    }
