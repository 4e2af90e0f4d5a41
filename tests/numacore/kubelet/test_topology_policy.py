"""The topology manager's merge on machines with sparse NUMA ids, where the kubelet may die of a comparison."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore.hints import Hint, Hints
from numacore.kubelet.errors import StartError
from numacore.kubelet.machine import Machine
from numacore.kubelet.options import TopologyPolicyOptions
from numacore.kubelet.topology_manager import TopologyPolicy
from tests.numacore.kubelet.builders import machine, running

ROWS = ((12, 30, 21), (30, 11, 12), (21, 12, 10))
"""The order of the masks is not that of the distances."""
MASKS = range(1, 8)


def policy(nodes: int, row: int) -> TopologyPolicy:
    """NUMA nodes 0 to 2 and, by `nodes`, another one that nobody offers; rows of distances with `row` entries."""
    distances = {at: (*each, *(20 for _ in range(row - 3))) for at, each in enumerate(ROWS)}
    options = TopologyPolicyOptions(prefer_closest=True, max_nodes=8)
    return TopologyPolicy("restricted", "container", options, nodes, distances)


@st.composite
def offers(draw: st.DrawFn) -> list[Hints | None]:
    found: list[Hints | None] = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 5)) == 0:
            found.append(None)
            continue
        masks = sorted(draw(st.sets(st.sampled_from(MASKS), max_size=5)))
        fewest = min((mask.bit_count() for mask in masks), default=0) + draw(st.integers(0, 1))
        found.append(Hints(masks, [mask for mask in masks if mask.bit_count() == fewest]))
    return found


@given(offers())
def test_walking_through_all_permutations_gives_what_the_short_way_gives(given_: list[Hints | None]) -> None:
    """NUMA node 3 makes the rows too short, and nobody offers it: the kubelet survives, and the answer is that of long rows."""
    sparse, dense = policy(0b1111, 3), policy(0b1111, 4)
    assert sparse.merge(given_) == dense.merge(given_)


FIVE = (
    (10, 32, 21, 15, 40), (32, 10, 12, 33, 22), (21, 12, 10, 20, 17), (15, 33, 20, 10, 28), (40, 22, 17, 28, 10),
)  # fmt: skip


def five(row: int) -> TopologyPolicy:
    """NUMA nodes 0 to 4 and a fifth that nobody offers; rows of distances with `row` entries."""
    distances = {at: (*each, *(20 for _ in range(row - 5))) for at, each in enumerate(FIVE)}
    options = TopologyPolicyOptions(prefer_closest=True, max_nodes=8)
    return TopologyPolicy("restricted", "container", options, 0b111111, distances)


@pytest.mark.parametrize(
    ("offered", "best", "preferred"),
    [
        ([Hints([4, 11, 23, 27]), Hints([4, 7], [4]), Hints([3, 21], [3])], 5, False),
        ([Hints([6, 8, 24], [8]), None], 8, True),
        ([Hints([3, 15, 16], [16]), Hints([3, 4], [4])], 4, False),
        ([Hints([2, 3, 24, 27], [2]), Hints([27], [27])], 27, False),
        ([Hints(), Hints([14], [14])], 14, False),
        ([Hints([2]), Hints([4])], 0b111111, False),
        ([Hints([4, 19], [4]), Hints([10, 27])], 2, False),
        ([Hints([12, 15], [12]), None, Hints([4])], 4, False),
        ([Hints([9, 29], [9]), Hints([9], [9])], 9, True),
    ],
)
def test_both_ways_of_merging_keep_the_same_of_two_hints(
    offered: list[Hints | None], best: int, preferred: bool
) -> None:
    """Pairs of which one is preferred, wider than needed, narrower, nearer, or found again."""
    assert five(6).merge(offered) == five(5).merge(offered) == (Hint(best, preferred), preferred)


def test_a_resource_that_cannot_be_had_is_never_preferred_on_such_a_machine() -> None:
    assert policy(0b1111, 3).merge([Hints(), Hints([1, 2], [1, 2])]) == (Hint(2, False), False)


def test_one_numa_node_without_distances_is_enough_to_refuse_the_start() -> None:
    first, second = machine().nodes
    blind = Machine((first, msgspec.structs.replace(second, distances=None)))
    with pytest.raises(StartError, match="cannot discover NUMA topology"):
        running("restricted", on=blind, topology_manager_policy_options={"prefer-closest-numa-nodes": "true"})
