"""Hints, their merge and the policies, as Volcano has them.

Rules: volcano 1.15.1, pkg/scheduler/plugins/numaaware/policy/*.go and provider/cpumanager/cpu_mng.go. This is the merge of a kubelet
before 1.23: hints need not agree in size, and among those that are not preferred the narrowest wins.
"""

from __future__ import annotations

from functools import lru_cache

from numacore.hints import Hint, in_order, narrowest, subset_sums, subsets
from numacore.volcano.topology import Index

BEST_EFFORT = "best-effort"
RESTRICTED = "restricted"
SINGLE = "single-numa-node"


def offered(index: Index, free: int, request: int) -> tuple[Hint, ...]:
    """The masks whose free CPUs suffice for `request` CPUs, narrow ones first (`generateCPUTopologyHints`).

    Preferred are those as narrow as the narrowest whose CPUs, free or not, would suffice.
    """
    counts = tuple(index.numa[node].bit_count() for node in index.nodes)
    return _offered(index.nodes, counts, index.free_per_node(free), request)


@lru_cache(maxsize=512)
def _offered(
    nodes: tuple[int, ...], counts: tuple[int, ...], free: tuple[int, ...], request: int
) -> tuple[Hint, ...]:
    masks = subsets(nodes)
    enough = (
        mask.bit_count() for mask, cpus in zip(masks, subset_sums(counts), strict=True) if cpus >= request
    )
    width = min(enough, default=len(nodes))
    found = [mask for mask, cpus in zip(masks, subset_sums(free), strict=True) if cpus >= request]
    return tuple(Hint(mask, mask.bit_count() == width) for mask in in_order(found))


def best(hints: tuple[Hint, ...] | None, every: int, policy: str) -> tuple[Hint, bool]:
    """The hint that a container's NUMA affinity becomes, and whether the node's `policy` admits it.

    `hints`: None = the provider has no preference; empty = it sees no way. `every`: all NUMA nodes as a mask.
    """
    if policy not in {BEST_EFFORT, RESTRICTED, SINGLE}:
        return Hint(None, False), True
    considered = filtered(hints)
    if policy == SINGLE:
        considered = [hint for hint in considered if hint.preferred and _single(hint)]
    merged = merge(considered, every)
    return merged, policy == BEST_EFFORT or merged.preferred


def filtered(hints: tuple[Hint, ...] | None) -> list[Hint]:
    """`filterProvidersHints`: no preference is a preferred hint for any node, no way is one that is not."""
    if hints is None:
        return [Hint(None, True)]
    return list(hints) or [Hint(None, False)]


def merge(hints: list[Hint], every: int) -> Hint:
    """`mergeFilteredHints` for the one provider there is: preferred before not, then fewer nodes, then lower ids."""
    found = Hint(every, False)
    for hint in hints:
        mask = every if hint.mask is None else hint.mask & every
        if mask and _better(Hint(mask, hint.preferred), found):
            found = Hint(mask, hint.preferred)
    return found


def _better(one: Hint, other: Hint) -> bool:
    if one.preferred != other.preferred:
        return one.preferred
    return narrowest(one.mask or 0) < narrowest(other.mask or 0)


def _single(hint: Hint) -> bool:
    return hint.mask is None or hint.mask.bit_count() == 1
