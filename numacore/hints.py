"""Topology hints and their merge: which NUMA nodes serve every resource of a request best.

A set of NUMA nodes is an integer with a bit per node id (a mask), as in the kubelet's bitmask package. The kubelet merges
hints by trying every permutation, one hint of each resource. Here the same answer comes from what permutations can
yield at all: a preferred one needs one mask that every resource prefers, any other is an intersection of one mask of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import combinations
from math import prod
from operator import and_, mul, or_
from typing import TypeVar

import msgspec

Rank = TypeVar("Rank", int, float, tuple[int, int], tuple[int, float, int])

_FEW = 4096
"""Up to this many pairs of masks are simply intersected one by one."""
_FIELD = 64
"""Bits of a counter in the dense form of a family of masks."""


class Hint(msgspec.Struct, frozen=True):
    """NUMA nodes for an allocation. `mask` None = any."""

    mask: int | None
    preferred: bool


class Hints(msgspec.Struct, frozen=True):
    """What a provider offers for one resource: every mask that would do, and those of them that it prefers.

    No mask at all = the resource cannot be had. A resource without preference is not in here: its hints are None.
    """

    masks: Sequence[int] = ()
    preferred: Sequence[int] = ()


IMPOSSIBLE = Hints()


def nodes_of(mask: int) -> list[int]:
    """Ids in a mask, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def mask_of(nodes: Iterable[int]) -> int:
    """The mask of these ids."""
    return reduce(lambda mask, node: mask | 1 << node, nodes, 0)


def narrowest(mask: int) -> tuple[int, int]:
    """Order of masks: fewer nodes first, then lower ids (`IsNarrowerThan`)."""
    return mask.bit_count(), mask


def subset_sums(amounts: Iterable[int]) -> list[int]:
    """For every subset of the amounts its sum; the subset's members are the bits of the index."""
    sums = [0]
    for amount in amounts:
        sums += [each + amount for each in sums]
    return sums


@lru_cache(maxsize=64)
def subsets(nodes: tuple[int, ...]) -> Sequence[int]:
    """The masks of all subsets of these nodes, in the order of `subset_sums`."""
    return subset_sums(1 << node for node in nodes)


@lru_cache(maxsize=64)
def subset_sizes(nodes: int) -> Sequence[int]:
    """Sizes of all subsets of so many nodes, in the order of `subset_sums`."""
    return subset_sums([1] * nodes)


def merge(offers: Sequence[Hints | None], everything: int, rank: Callable[[int], Rank]) -> Hint:
    """The best hint over all permutations of the offers, one hint of each.

    `rank` orders masks of equal worth, the smallest wins. Equal to trying every permutation in any order:
    kubelet 1.34, cm/topologymanager/policy.go `HintMerger.Merge` and its `compare`.
    """
    real = [offer for offer in offers if offer is not None and offer.masks]
    satisfiable = all(offer is None or offer.masks for offer in offers)
    if not real:
        return Hint(everything, satisfiable)
    if satisfiable and (agreed := agreed_masks(real)):
        return Hint(min(agreed, key=rank), True)
    families = list({id(offer.masks): offer.masks for offer in real}.values())
    wanted = widest_need(real)
    if prod(map(len, families)) > _FEW and (plain := _plainly_best(families, wanted, rank)):
        return Hint(plain, False)
    found = [mask for mask in intersections([offer.masks for offer in real]) if mask]
    if not found:
        return Hint(everything, False)
    return Hint(_best_non_preferred(found, wanted, rank), False)


def agreed_masks(offers: Sequence[Hints]) -> set[int]:
    """Masks that every resource prefers: a permutation is preferred only if its masks are all equal (`mergePermutation`)."""
    return reduce(and_, (set(offer.preferred) for offer in offers))


def widest_need(offers: Iterable[Hints]) -> int:
    """NUMA nodes that the most demanding resource needs at least (`maxOfMinAffinityCounts`)."""
    return max(min(mask.bit_count() for mask in offer.masks) for offer in offers)


def _plainly_best(families: Sequence[Sequence[int]], wanted: int, rank: Callable[[int], Rank]) -> int | None:
    """The best mask of the wanted size, where one can tell without all intersections: it is itself a mask of some family and
    every other family has one around it. None = a mask comes first of which one cannot tell, or there is no such mask."""
    members = [frozenset(family) for family in families]
    nodes = nodes_of(reduce(or_, (mask for family in families for mask in family)))
    for mask in sorted(map(mask_of, combinations(nodes, wanted)), key=rank):
        inside = [mask in each for each in members]
        if all(has or _surrounded(mask, family) for has, family in zip(inside, families, strict=True)):
            return mask if any(inside) else None
    return None


def _surrounded(mask: int, family: Sequence[int]) -> bool:
    """Whether a family has a mask around this one."""
    return any(each & mask == mask for each in reversed(family))


def _best_non_preferred(found: Sequence[int], wanted: int, rank: Callable[[int], Rank]) -> int:
    """As many nodes as the most demanding resource needs; else as close below as possible; else the best above."""
    sizes = {mask.bit_count() for mask in found}
    size = max((each for each in sizes if each <= wanted), default=min(sizes))
    return min((mask for mask in found if mask.bit_count() == size), key=rank)


def intersections(families: Sequence[Sequence[int]]) -> Iterable[int]:
    """Every mask that is an intersection of one mask of each family, once."""
    nodes = tuple(nodes_of(reduce(or_, (mask for family in families for mask in family), 0)))
    together = max(2, _FIELD // max(1, len(nodes)))
    merged: Iterable[int] = set(families[0])
    for start in range(1, len(families), together - 1):
        batch = [tuple(merged), *families[start : start + together - 1]]
        merged = _by_pairs(batch) if prod(map(len, batch)) <= _FEW else _by_counting(batch, nodes)
    return merged


def _by_pairs(families: Sequence[Sequence[int]]) -> set[int]:
    return reduce(lambda left, right: {a & b for a in left for b in right}, families[1:], set(families[0]))


def _by_counting(families: Sequence[Sequence[int]], nodes: tuple[int, ...]) -> list[int]:
    """For large families: count for each mask the tuples whose intersection contains it, a product of counts over the
    families; the tuples that meet exactly in it follow by inclusion and exclusion over its supersets.

    As many families at once as counters hold: the product is less than 2 to the power of nodes times families.
    """
    width = len(nodes)
    masks = subsets(nodes)
    containing: dict[int, list[int]] = {}
    for family in families:
        if id(family) not in containing:
            members = set(family)
            flags = bytes(mask in members for mask in masks)
            containing[id(family)] = _counters(_over_supersets(_packed(flags), width, 1), width)
    products = list(map(mul, *(containing[id(family)] for family in families[:2])))
    for family in families[2:]:
        products = list(map(mul, products, containing[id(family)]))
    exact = _counters(_over_supersets(_packed(products), width, -1), width)
    return [mask for mask, count in zip(masks, exact, strict=True) if count]


def _packed(counts: Sequence[int]) -> int:
    """Counters by subset as one long integer, so that one addition adds them all."""
    memory = bytearray(_FIELD // 8 * len(counts))
    if isinstance(counts, bytes):
        memory[:: _FIELD // 8] = counts
    else:
        view = memoryview(memory).cast("Q")
        for at, count in enumerate(counts):
            view[at] = count
    return int.from_bytes(memory, "little")


def _counters(packed: int, width: int) -> list[int]:
    return memoryview(packed.to_bytes(_FIELD // 8 << width, "little")).cast("Q").tolist()


def _over_supersets(packed: int, width: int, sign: int) -> int:
    """Sum over supersets (sign 1) or its inverse (sign -1), one node after the other."""
    for node, without in enumerate(_fields_without(width)):
        packed += sign * (packed >> (_FIELD << node) & without)
    return packed


@lru_cache(maxsize=8)
def _fields_without(width: int) -> tuple[int, ...]:
    """For each node the fields of the subsets without it, all ones."""
    patterns = []
    for node in range(width):
        pattern, length = (1 << (_FIELD << node)) - 1, _FIELD << node + 1
        while length < _FIELD << width:
            pattern |= pattern << length
            length *= 2
        patterns.append(pattern)
    return tuple(patterns)


def in_order(masks: Iterable[int]) -> Iterator[int]:
    """Masks in the order in which the kubelet makes them: by size, then by ids (`IterateBitMasks`)."""
    yield from sorted(masks, key=lambda mask: (mask.bit_count(), nodes_of(mask)))
