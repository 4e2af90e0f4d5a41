"""Why the kubelet refuses a pod, as codes with amounts: which NUMA node lacks what, read from the evidence of its verdict.

The kubelet's own words say little ("Resources cannot be allocated with Topology locality"); what its managers offered says the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, combinations

from numacore.diagnosis import Reason
from numacore.kubelet import errors, resource, topology_manager
from numacore.kubelet.offers import Offer
from numacore.kubelet.verdict import Alignment, Verdict

Values = dict[str, str | int | float]
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("smt-multiple", re.compile(r"requested (?P<asked>\d+) cpus not multiple cpus per core = (?P<per_core>\d+)")),
    (
        "smt-short",
        re.compile(r"available physical CPUs = (?P<free>\d+), requested CPUs = (?P<asked>\d+)"),
    ),
    ("cpus-short", re.compile(r"not enough cpus available.*requested=(?P<asked>\d+), available=(?P<free>\d+)")),
    ("cpus-not-divisible", re.compile(r"failed to allocate cpus|accounting error")),
    (
        "devices-short",
        re.compile(r"devices unavailable for (?P<resource>\S+)\. Requested: (?P<asked>\d+), Available: (?P<free>\d+)"),
    ),
    ("devices-unregistered", re.compile(r"cannot allocate unregistered device (?P<resource>\S+?),")),
    ("devices-unhealthy", re.compile(r"cannot allocate unhealthy devices (?P<resource>\S+?),")),
    ("devices-changed", re.compile(r'changed request for resource "(?P<resource>[^"]+)"')),
    ("memory-nowhere", re.compile(r"no NUMA nodes with enough memory is available")),
    ("memory-not-extended", re.compile(r"extend the current topology hint|the extended preferred hint")),
    ("memory-not-preferred", re.compile(r"failed to find the default preferred hint")),
    ("memory-groups", re.compile(r"preferred hint violates NUMA node allocation")),
    ("memory-amount", re.compile(r"\[memorymanager\].*(requested|quantity|integer)")),
)  # fmt: skip
"""Codes by the kubelet's own words (kubelet 1.37, cm/cpumanager, cm/devicemanager, cm/memorymanager)."""


def why(verdict: Verdict, policy: str) -> tuple[Reason, ...]:
    """Why a pod is not admitted, what weighs most first; nothing for one that is. `policy`: the topology manager's."""
    if verdict.outcome == "admitted":
        return ()
    if verdict.outcome in ("panics", "hangs"):
        return (Reason(f"kubelet-{verdict.outcome}", {"message": verdict.message}),)
    where = _container(verdict)
    if verdict.reason == errors.TOPOLOGY_AFFINITY and verdict.alignments:
        return tuple(_not_aligned(verdict.alignments[-1], policy))
    if verdict.reason == errors.EMPTY_POD_SHARED_POOL:
        return (Reason("empty-shared-pool", where),)
    if memory := _memory_lacks(verdict):
        return (Reason("memory-lacks", where | memory),)
    for code, form in _FORMS:
        if found := form.search(verdict.message):
            amounts: Values = {
                name: int(text) if text.isdigit() else text for name, text in found.groupdict().items()
            }
            return (Reason(code, where | amounts),)
    return (Reason("refused-otherwise", where | {"reason": verdict.reason, "message": verdict.message}),)


def _container(verdict: Verdict) -> Values:
    """`container`: its name, empty for the pod as a whole."""
    at = verdict.failure
    return {"container": at.container or "" if at else ""}


def _memory_lacks(verdict: Verdict) -> Values | None:
    """The NUMA node with most of the kind of memory that no single one has enough of, where memory was what failed."""
    if verdict.failure is None or verdict.failure.provider != "memory" or not verdict.alignments:
        return None
    for offer in verdict.alignments[-1].offers:
        if resource.is_memory(offer.resource) and offer.free:
            most = max(offer.free, key=lambda numa: offer.free[numa])
            if offer.free[most] < offer.requested:
                return _amounts(offer, (most,))
    return None


def _not_aligned(alignment: Alignment, policy: str) -> list[Reason]:
    """What the NUMA nodes that come nearest to serving the request lack."""
    owner: Values = {"container": alignment.container or "", "policy": policy}
    offers = [each for each in alignment.offers if each.hints is not None]
    counted = [each for each in offers if each.total]
    nowhere = [each for each in offers if each.hints is not None and not each.hints.masks]
    short = [each for each in nowhere if each.free and sum(each.free.values()) < each.requested]
    if short:
        return [Reason("not-enough-free", owner | _amounts(each, tuple(each.total))) for each in short]
    if policy == topology_manager.RESTRICTED and (differ := _widths_differ(counted)):
        return [Reason("widths-differ", owner | differ)]
    width = _width(counted, policy)
    lacking, numa = _nearest(counted, width)
    if lacking:
        code = "numa-lacks" if width == 1 else "numa-set-lacks"
        return [Reason(code, owner | _amounts(each, numa)) for each in lacking]
    names = ", ".join(sorted({each.resource for each in offers}))
    return [Reason("no-common-numa", owner | {"resources": names})]


def _amounts(offer: Offer, numa: Sequence[int]) -> Values:
    """`numa`: ids with commas; `free` and `total` there, `asked` altogether."""
    return {
        "resource": offer.resource,
        "numa": ", ".join(map(str, sorted(numa))),
        "asked": offer.requested,
        "free": sum(offer.free.get(each, 0) for each in numa),
        "total": sum(offer.total.get(each, 0) for each in numa),
    }


def _widths_differ(offers: Sequence[Offer]) -> Values | None:
    """restricted admits only what every resource prefers, and each prefers as few NUMA nodes as it needs by itself."""
    widths = {each.resource: _fewest(each) for each in offers}
    wide, narrow = (
        max(widths, key=lambda name: widths[name], default=""),
        min(widths, key=lambda name: widths[name], default=""),
    )
    if not widths or widths[wide] == widths[narrow]:
        return None
    return {"wide": wide, "most": widths[wide], "narrow": narrow, "fewest": widths[narrow]}


def _width(offers: Sequence[Offer], policy: str) -> int:
    """How many NUMA nodes the policy allows at most: one, or as many as an empty machine would need."""
    if policy == topology_manager.SINGLE_NUMA_NODE:
        return 1
    return max((_fewest(each) for each in offers), default=1)


def _fewest(offer: Offer) -> int:
    sums = accumulate(sorted(offer.total.values(), reverse=True))
    return next((number for number, total in enumerate(sums, start=1) if total >= offer.requested), 1)


def _nearest(offers: Sequence[Offer], width: int) -> tuple[list[Offer], tuple[int, ...]]:
    """Of the sets of that many NUMA nodes the one that lacks the fewest resources, and the smallest part of them."""
    ids = sorted({numa for each in offers for numa in each.total})
    best: tuple[tuple[int, float], list[Offer], tuple[int, ...]] | None = None
    for numa in combinations(ids, min(width, len(ids))):
        lacking = [each for each in offers if _free(each, numa) < each.requested]
        missing = sum(1 - _free(each, numa) / each.requested for each in lacking)
        if best is None or (len(lacking), missing) < best[0]:
            best = ((len(lacking), missing), lacking, numa)
    return (best[1], best[2]) if best else ([], ())


def _free(offer: Offer, numa: Sequence[int]) -> int:
    return sum(offer.free.get(each, 0) for each in numa)
