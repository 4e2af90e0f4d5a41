"""The merge of topology hints against the plain way: every permutation, one after the other."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore import hints
from numacore.hints import IMPOSSIBLE, Hint, Hints

Offer = Hints | None


def every_permutation(offers: list[Offer], everything: int) -> Hint:
    """The kubelet's own way (cm/topologymanager/policy.go): walk over all permutations, keep the better."""
    lists = [
        [Hint(None, True)]
        if offer is None
        else [Hint(mask, mask in offer.preferred) for mask in offer.masks] or [Hint(None, False)]
        for offer in offers
    ]
    needs = [min(hint.mask.bit_count() for hint in each) for each in lists if each[0].mask is not None]
    best: Hint | None = None
    for permutation in product(*lists):
        masks = [hint.mask for hint in permutation if hint.mask is not None]
        merged = everything
        for mask in masks:
            merged &= mask
        if merged:
            preferred = all(hint.preferred for hint in permutation) and len(set(masks)) <= 1
            best = better(best, Hint(merged, preferred), max(needs, default=0))
    return best or Hint(everything, False)


def better(current: Hint | None, candidate: Hint, wanted: int) -> Hint:
    if current is None:
        return candidate
    if current.preferred != candidate.preferred:
        return candidate if candidate.preferred else current
    narrower = min(current, candidate, key=lambda hint: hints.narrowest(hint.mask or 0))
    size, other = current.mask.bit_count(), candidate.mask.bit_count()
    if current.preferred or size > wanted or size == other:
        return narrower
    if size == wanted or other > wanted:
        return current
    return candidate if other > size else current


@st.composite
def offers(draw: st.DrawFn) -> tuple[list[Offer], int]:
    nodes = draw(st.integers(1, 4))
    masks = st.lists(st.integers(1, (1 << nodes) - 1), unique=True, min_size=1)

    def offer(drawn: list[int]) -> Hints:
        return Hints(drawn, [mask for mask in drawn if draw(st.booleans())])

    one = st.none() | st.just(IMPOSSIBLE) | masks.map(offer)
    return draw(st.lists(one, min_size=1, max_size=3)), (1 << nodes) - 1


@given(offers())
def test_the_merge_equals_trying_every_permutation(case: tuple[list[Offer], int]) -> None:
    given_offers, everything = case
    assert hints.merge(given_offers, everything, hints.narrowest) == every_permutation(
        given_offers, everything
    )


@given(offers())
def test_what_can_be_told_without_all_intersections_is_the_same(case: tuple[list[Offer], int]) -> None:
    given_offers, everything = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hints, "_FEW", 0)
        assert hints.merge(given_offers, everything, hints.narrowest) == every_permutation(
            given_offers, everything
        )


@given(families=st.lists(st.lists(st.integers(1, 31), unique=True, min_size=1), min_size=2, max_size=14))
def test_counting_finds_the_same_intersections_as_pairing(families: list[list[int]]) -> None:
    paired: set[int] = set(families[0])
    for family in families[1:]:
        paired = {a & b for a in paired for b in family}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hints, "_FEW", 0)
        assert set(hints.intersections(families)) == paired


def test_sparse_node_ids_merge_too() -> None:
    offers = [Hints((1 << 0, 1 << 40, 1 << 0 | 1 << 40), (1 << 0, 1 << 40)), Hints((1 << 40,), (1 << 40,))]
    assert hints.merge(offers, 1 << 0 | 1 << 40, hints.narrowest) == Hint(1 << 40, True)


@pytest.mark.parametrize(
    ("masks", "order"),
    [
        ((0b111, 0b10, 0b11, 0b1), [0b1, 0b10, 0b11, 0b111]),
        ((0b1100, 0b1010, 0b1001), [0b1001, 0b1010, 0b1100]),
    ],
)
def test_masks_come_in_the_kubelets_order(masks: tuple[int, ...], order: list[int]) -> None:
    assert list(hints.in_order(masks)) == order


@pytest.mark.parametrize("rank", [hints.narrowest, lambda mask: (mask.bit_count(), -mask)])
def test_equal_masks_are_told_apart_by_the_given_order(rank: Callable[[int], tuple[int, int]]) -> None:
    both = Hints((0b01, 0b10), (0b01, 0b10))
    assert hints.merge([both], 0b11, rank) == Hint(min(both.masks, key=rank), True)


def test_where_every_common_mask_is_wider_than_anybody_needs_the_narrowest_is_taken() -> None:
    """Both would do with one NUMA node, but never with the same one."""
    offers: list[Offer] = [Hints((1, 12, 28), (1,)), Hints((2, 12, 28), (2,))]
    assert hints.merge(offers, 31, hints.narrowest) == Hint(12, False) == every_permutation(offers, 31)
