"""The topology manager: policies and the merge of hints (kubelet 1.37, cm/topologymanager)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from numacore import hints
from numacore.hints import IMPOSSIBLE, Hint, Hints
from numacore.kubelet.errors import PanicError, StartError, UnsupportedError, index_out_of_range
from numacore.kubelet.machine import MASK_BITS, Machine
from numacore.kubelet.options import TopologyPolicyOptions, topology_policy_options
from numacore.kubelet.settings import Settings

NONE = "none"
BEST_EFFORT = "best-effort"
RESTRICTED = "restricted"
SINGLE_NUMA_NODE = "single-numa-node"
POLICIES = (NONE, BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE)
CONTAINER, POD = "container", "pod"

MOST_NODES = 16
"""With more NUMA nodes than this the kubelet's own enumeration, 2 to that power of hints for each resource, never ends."""
NIL_MASK = "interface conversion: bitmask.BitMask is nil, not *bitmask.bitMask"
_MOST_STEPS = 4_000_000

ANY = Hint(None, True)


class TopologyPolicy(msgspec.Struct, frozen=True):
    """A policy with its NUMA nodes (`NUMAInfo`): ids, and rows of distances by id where they are used."""

    name: str
    scope: str
    options: TopologyPolicyOptions
    nodes: int
    distances: dict[int, tuple[int, ...]] = {}

    def merge(self, offers: Sequence[Hints | None]) -> tuple[Hint, bool]:
        """`Merge` of the policy: the best hint, and whether it lets the pod in. Raises PanicError."""
        if self.nodes >> MASK_BITS:
            raise PanicError(NIL_MASK)
        if self.name == SINGLE_NUMA_NODE:
            single = [_single(offer) for offer in offers]
            if IMPOSSIBLE in single:
                return Hint(None, False), False
            best = hints.merge(single, self.nodes, hints.narrowest)
            return (Hint(None, best.preferred) if best.mask == self.nodes else best), best.preferred
        best = self._merge(offers)
        return best, self.name == BEST_EFFORT or best.preferred

    def _merge(self, offers: Sequence[Hints | None]) -> Hint:
        if not self.options.prefer_closest:
            return hints.merge(offers, self.nodes, hints.narrowest)
        if all(1 << len(row) > self.nodes for row in self.distances.values()):
            return hints.merge(offers, self.nodes, self._closest)
        return _Walk(self, offers).best()

    def _closest(self, mask: int) -> tuple[int, float, int]:
        return mask.bit_count(), self.average_distance(mask), mask

    def average_distance(self, mask: int) -> float:
        """`CalculateAverageFor`: over all pairs, each node with itself too. A row is indexed by node *id*: with sparse ids the
        kubelet reads beyond its end and dies. Raises PanicError."""
        nodes = hints.nodes_of(mask)
        total = 0
        for row in (self.distances[node] for node in nodes):
            if nodes[-1] >= len(row):
                raise index_out_of_range(next(node for node in nodes if node >= len(row)), len(row))
            total += sum(map(row.__getitem__, nodes))
        return total / len(nodes) ** 2


class _Walk:
    """The merge permutation by permutation, for machines on which a comparison may end the kubelet: then it matters which
    masks are compared at all. A prefix of hints that leads nowhere new is walked once for each best hint."""

    def __init__(self, policy: TopologyPolicy, offers: Sequence[Hints | None]) -> None:
        self._policy = policy
        self._lists = [_in_order(offer) for offer in offers]
        real = [offer for offer in offers if offer is not None and offer.masks]
        self._wanted = hints.widest_need(real) if real else 0
        self._best: Hint | None = None
        self._seen: set[tuple[int, int, int | None, bool]] = set()
        self._steps = 0

    def best(self) -> Hint:
        self._walk(0, self._policy.nodes, None, True)
        return self._best or Hint(self._policy.nodes, False)

    def _walk(self, depth: int, mask: int, first: int | None, preferred: bool) -> None:
        """`first`: the mask that all others have to equal for a preferred hint; of no use once it is not preferred."""
        key = (depth, mask, first if preferred else None, preferred)
        if key in self._seen:
            return
        before = self._best
        if depth == len(self._lists):
            self._consider(Hint(mask, preferred))
        else:
            for hint in self._lists[depth]:
                self._count()
                agreed = hint.mask is None or first is None or hint.mask == first
                self._walk(
                    depth + 1,
                    mask if hint.mask is None else mask & hint.mask,
                    hint.mask if first is None else first,
                    preferred and hint.preferred and agreed,
                )
        if self._best == before:
            self._seen.add(key)

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise UnsupportedError(
                "too many NUMA nodes with sparse ids to foresee whether the kubelet crashes"
            )

    def _consider(self, candidate: Hint) -> None:
        """`compare`."""
        if not candidate.mask:
            return
        kept = self._best
        self._best = candidate if kept is None else self._better(kept, candidate)
        if self._best != kept:
            self._seen.clear()

    def _better(self, current: Hint, candidate: Hint) -> Hint:
        if current.preferred != candidate.preferred:
            return current if current.preferred else candidate
        size, other = (current.mask or 0).bit_count(), (candidate.mask or 0).bit_count()
        if current.preferred or size > self._wanted or size == other:
            return self._fitter(current, candidate)
        if size == self._wanted or other > self._wanted:
            return current
        return candidate if other > size else current

    def _fitter(self, current: Hint, candidate: Hint) -> Hint:
        """`CompareNUMAAffinityMasks` with `Closest`: distances count only between masks of the same size."""
        mine, other = current.mask or 0, candidate.mask or 0
        if mine == other:
            return current
        if mine.bit_count() != other.bit_count():
            return min(current, candidate, key=lambda hint: hints.narrowest(hint.mask or 0))
        ranks = [(self._policy.average_distance(mask), mask) for mask in (mine, other)]
        return current if ranks[0] < ranks[1] else candidate


def _in_order(offer: Hints | None) -> list[Hint]:
    """One resource's hints as the kubelet walks over them (`filterProvidersHints`)."""
    if offer is None:
        return [ANY]
    preferred = set(offer.preferred)
    return [Hint(mask, mask in preferred) for mask in hints.in_order(offer.masks)] or [Hint(None, False)]


def _single(offer: Hints | None) -> Hints | None:
    """`filterSingleNumaHints`: only what is preferred and lies on one NUMA node."""
    if offer is None:
        return None
    masks = [mask for mask in offer.preferred if mask.bit_count() == 1]
    return Hints(masks, masks) if masks else IMPOSSIBLE


def policy(settings: Settings, machine: Machine) -> TopologyPolicy | None:
    """`NewManager`: the policy, None for `none`. Raises StartError."""
    name = settings.topology_manager_policy
    if name == NONE:
        return None
    options = topology_policy_options(settings)
    if options.prefer_closest and any(node.distances is None for node in machine.nodes):
        raise StartError("cannot discover NUMA topology: error getting NUMA distances from cadvisor")
    if len(machine.nodes) > options.max_nodes:
        raise StartError(f"unsupported on machines with more than {options.max_nodes} NUMA Nodes")
    if name not in POLICIES:
        raise StartError(f'unknown policy: "{name}"')
    if settings.topology_manager_scope not in (CONTAINER, POD):
        raise StartError(f'unknown scope: "{settings.topology_manager_scope}"')
    rows = {node.id: node.distances or () for node in machine.nodes} if options.prefer_closest else {}
    return TopologyPolicy(name, settings.topology_manager_scope, options, machine.mask, rows)
