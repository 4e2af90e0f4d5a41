"""The hot store in memory; the same contract runs against Redis in tests/services."""

from collections.abc import Callable

import pytest

from monitoring.hot import Store, planes
from monitoring.hot.memory import MemoryStore
from tests.monitoring import hot_contract


@pytest.mark.parametrize("it", hot_contract.CONTRACT)
def test_memory(it: Callable[[Store], None]) -> None:
    it(MemoryStore())


def test_it_makes_planes_as_long_as_the_cluster_even_without_data() -> None:
    assert planes([], 3).pinned.tolist() == [255, 255, 255]


def test_it_tells_when_each_node_was_heard() -> None:
    assert hot_contract.block([0, 2], b"\0\0\0\0", taken=9.0).heard() == {0: 9.0, 2: 9.0}
