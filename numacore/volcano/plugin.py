"""The plugin itself: filter, predicate with its simulated allocation, and score.

Rules: volcano 1.15.1, pkg/scheduler/plugins/numaaware/numaaware.go, and plugins/util `NormalizeScore`. Functions are named as there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from numacore.cpuset import EMPTY, CpuSet
from numacore.hints import Hint
from numacore.volcano import assignment, hints, pods, topology
from numacore.volcano.pods import Container, NoHints, Pod, Qos
from numacore.volcano.topology import Index, Numatopology

STATIC = "static"
DEFAULT_WEIGHT = 1
MAX_SCORE = 100
MAX_OUTCOMES = 16
"""Most outcomes that are followed where Go's map order decides."""

Cause = Literal["", "no-numatopology", "not-static", "other-policy", "no-cpus", "container"]
Skipped = Literal["", "not-guaranteed", "no-numatopology", "not-static", "no-policy"]


class Step(msgspec.Struct, frozen=True):
    """What was simulated for one container.

    `hints`: None = the provider had no preference, for the cause `no_hints`. `reserved` and `free` are CPUs when its turn came; `cpus`
    are those it would get, empty when it gets none or when the simulation failed, which is no error to Volcano.
    """

    container: str
    request: int
    no_hints: NoHints
    reserved: CpuSet
    free: CpuSet
    hints: tuple[Hint, ...] | None
    best: Hint
    admitted: bool
    cpus: CpuSet = EMPTY


class Outcome(msgspec.Struct, frozen=True):
    """How the simulation ends on a node. `numa_nodes`: how many the CPUs touch, None = it did not get that far."""

    fit: bool
    reason: str = ""
    cause: Cause = ""
    steps: tuple[Step, ...] = ()
    numa_nodes: int | None = None

    @property
    def scored(self) -> bool:
        return self.numa_nodes is not None

    @property
    def cpus(self) -> CpuSet:
        return CpuSet.of_bits(topology.union(step.cpus.bits for step in self.steps))


class NodeVerdict(msgspec.Struct, frozen=True):
    """A node's verdict: the policies that were compared, why nothing was simulated (`skipped`), and every outcome that may be.

    The first outcome is the one that the code means; there are more only where the order of a Go map decides.
    """

    qos: Qos
    pod_policy: str
    node_policy: str | None
    skipped: Skipped
    outcomes: tuple[Outcome, ...]


class Score(msgspec.Struct, frozen=True):
    """`value` = `weight` x (100 - 100 x `numa_nodes` // `most`), where `most` is the largest count among the candidates.

    The same count everywhere, and so a single candidate, scores 0; when no candidate uses any CPU, each gets all 100.
    """

    numa_nodes: int
    most: int
    weight: int
    value: int


def judge_node(pod: Pod, node: Numatopology | None) -> NodeVerdict:
    """Volcano's `predicateFn` for one node; None = there is no Numatopology object of its name."""
    quality = pods.qos(pod)
    if quality != "Guaranteed":
        return _verdict(pod, node, quality, "not-guaranteed", Outcome(fit=True))
    if refusal := filter_node_by_policy(pod, node):
        return _verdict(pod, node, quality, "", refusal)
    if skipped := _not_enforced(pod, node):
        return _verdict(pod, node, quality, skipped, Outcome(fit=True))
    return _verdict(pod, node, quality, "", *predicate(pod, node or Numatopology()))


def _verdict(
    pod: Pod, node: Numatopology | None, quality: Qos, skipped: Skipped, *outcomes: Outcome
) -> NodeVerdict:
    return NodeVerdict(quality, pod.policy, node.topology_manager if node else None, skipped, outcomes)


def filter_node_by_policy(pod: Pod, node: Numatopology | None) -> Outcome | None:
    """The refusal of a pod that names a policy; policies are compared as texts, so "Restricted" fits no node."""
    if not pod.wants_policy:
        return None
    if node is None:
        return Outcome(False, "numa info is empty", "no-numatopology")
    if node.cpu_manager != STATIC:
        return Outcome(False, "cpu manager policy isn't static", "not-static")
    if pod.policy != node.topology_manager:
        text = f"task topology policy[{pod.policy}] is different with node[{node.topology_manager}]"
        return Outcome(False, text, "other-policy")
    if not node.allocatable:
        return Outcome(False, "cpu allocatable map is empty", "no-cpus")
    return None


def _not_enforced(pod: Pod, node: Numatopology | None) -> Skipped:
    """Why a pod that names no policy passes unseen; on other nodes the node's policy is enforced on it."""
    if pod.wants_policy:
        return ""
    if node is None:
        return "no-numatopology"
    if node.cpu_manager != STATIC:
        return "not-static"
    return "no-policy" if node.topology_manager in {"", "none"} else ""


def predicate(pod: Pod, node: Numatopology) -> tuple[Outcome, ...]:
    """Containers in order, each on what the one before left; every outcome that may be, the meant one first."""
    index = topology.index_of(node.cpus)
    branches: list[tuple[Step, ...]] = [()]
    for container in pod.containers:
        grown: dict[tuple[tuple[bool, CpuSet], ...], tuple[Step, ...]] = {}
        for branch in branches:
            for steps in _grown(container, node, index, branch):
                grown.setdefault(tuple((step.admitted, step.cpus) for step in steps), steps)
        branches = list(grown.values())[:MAX_OUTCOMES]
    return tuple(_outcome(branch, index) for branch in branches)


def _grown(
    container: Container, node: Numatopology, index: Index, branch: tuple[Step, ...]
) -> Iterator[tuple[Step, ...]]:
    """The branch with one more container; one that was refused stays as it is."""
    if branch and not branch[-1].admitted:
        yield branch
        return
    used = topology.union(step.cpus.bits for step in branch)
    for step in _steps(container, node, index, node.allocatable.bits & ~used):
        yield (*branch, step)


def _steps(container: Container, node: Numatopology, index: Index, left: int) -> Iterator[Step]:
    request, no_hints = pods.whole_cpus(container)
    # Hints and allocation each guess the reserved CPUs anew, so an open choice may fall differently in the two.
    guesses = [
        each or 0 for each in assignment.takes(index, index.every, topology.reserved_count(node.reserved))
    ]
    for reserved in guesses:
        free = left & ~reserved
        offered = None if no_hints else hints.offered(index, free, request)
        best, admitted = hints.best(offered, index.mask, node.topology_manager)
        seen = Step(
            container.name,
            request,
            no_hints,
            CpuSet.of_bits(reserved),
            CpuSet.of_bits(free),
            offered,
            best,
            admitted,
        )
        if not admitted:
            yield seen
            continue
        for again in guesses:
            for cpus in allocate(index, left & ~again, request, best):
                yield msgspec.structs.replace(seen, cpus=CpuSet.of_bits(cpus))


def allocate(index: Index, free: int, request: int, best: Hint) -> Iterator[int]:
    """The CPUs that a container may get: first from the NUMA nodes of its hint, then from anywhere; 0 = it failed."""
    aligned = 0 if best.mask is None else free & index.in_nodes(best.mask)
    for near in assignment.takes(index, aligned, min(request, aligned.bit_count())):
        if near is None:
            yield 0
            continue
        for far in assignment.takes(index, free & ~near, request - near.bit_count()):
            yield 0 if far is None else near | far


def _outcome(steps: tuple[Step, ...], index: Index) -> Outcome:
    if steps and not steps[-1].admitted:
        name = steps[-1].container
        return Outcome(False, f"container {name} cannot be assigned by numa", "container", steps)
    used = topology.union(step.cpus.bits for step in steps)
    return Outcome(True, steps=steps, numa_nodes=index.nodes_of(used))


def batch_node_order(pod: Pod, counts: Mapping[str, int], weight: int) -> dict[str, Score]:
    """The scores of the candidates, whose simulations touch `counts` NUMA nodes; a pod without a policy has none."""
    if not pod.wants_policy:
        return {}
    most = max(counts.values(), default=0)
    return {
        name: Score(count, most, weight, weight * _normalized(count, most)) for name, count in counts.items()
    }


def _normalized(count: int, most: int) -> int:
    return MAX_SCORE - MAX_SCORE * count // most if most else MAX_SCORE


def weight(argument: object) -> tuple[int, bool]:
    """The plugin's argument `weight`, and whether it was used: what is no integer leaves the default of 1.

    volcano, framework/arguments.go `GetInt`: "10" in quotation marks and 10.0 are no integers; 0 and negative ones are taken.
    """
    if argument is None:
        return DEFAULT_WEIGHT, True
    if isinstance(argument, int) and not isinstance(argument, bool) and -(1 << 63) <= argument < 1 << 63:
        return argument, True
    return DEFAULT_WEIGHT, False
