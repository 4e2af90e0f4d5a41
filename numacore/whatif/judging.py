"""Pods judged on candidates: what the scheduler counts first, what the kubelet would do, what Volcano would think of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from numacore.cpuset import CpuSet, union
from numacore.diagnosis import Reason
from numacore.kubelet import node, topology_manager
from numacore.kubelet import pod as kubelet_pod
from numacore.kubelet.choices import every
from numacore.kubelet.errors import HangError, PanicError, StartError, UnsupportedError
from numacore.kubelet.verdict import Verdict
from numacore.manifest import Group, aggregate
from numacore.volcano import plugin, pods
from numacore.volcano.plugin import NodeVerdict, Score
from numacore.whatif.candidate import Candidate, Room
from numacore.whatif.disagreement import Disagreement, disagreement

MOST_REPLICAS = 200
"""Pods of a group that are put onto one node one after the other to see how many fit."""

MOST_OPEN = 16
"""Open choices are followed up to this many answers."""


class Shortage(msgspec.Struct, frozen=True):
    """The scheduler's own count says no (`Insufficient cpu`), and so would the kubelet (`OutOfcpu`). Exact amounts."""

    resource: str
    asked: Fraction
    free: Fraction


class NodeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a group's pods on one node.

    `fits`: how many of them it takes one after the other, None = it cannot be judged. `first` is the verdict on the first pod,
    `last` on the first that does not fit (None = all fit).
    """

    candidate: Candidate
    shortage: Shortage | None = None
    fits: int | None = None
    first: Verdict | None = None
    last: Verdict | None = None
    volcano: NodeVerdict | None = None
    """None = Volcano does not schedule these pods, or nothing is known of the node."""
    score: Score | None = None
    disagreement: Disagreement | None = None
    problem: Reason | None = None

    @property
    def admitted(self) -> bool | None:
        """Whether the first pod is admitted; None = unknown."""
        if self.first is None:
            return None if self.shortage is None else False
        return self.first.admitted


def judge(
    group: Group, candidates: Sequence[Candidate], *, replicas: int | None = None, weight: int = 1
) -> tuple[NodeAnswer, ...]:
    """A group's pods on every candidate, in the order given: each node as if all of them went there.

    `replicas`: how many, else as the manifest says. `weight`: of Volcano's plugin.
    """
    wanted = wanted_of(group, replicas)
    return scored(group, [judge_node(group, each, wanted) for each in candidates], weight)


def wanted_of(group: Group, replicas: int | None) -> int:
    """How many pods are tried on a node: as asked, else as the manifest says, within bounds."""
    return min(MOST_REPLICAS, max(1, (group.replicas or 1) if replicas is None else replicas))


def judge_node(group: Group, candidate: Candidate, wanted: int) -> NodeAnswer:
    """Up to `wanted` pods of a group on one candidate; scores need all candidates and are added by `scored`."""
    if candidate.kubelet is None:
        return NodeAnswer(candidate=candidate, problem=candidate.problem)
    seen = volcano_verdict(group, candidate)
    shortage = _no_plugin(group, candidate) or _shortage(group, candidate.room, 1)
    if shortage:
        return NodeAnswer(candidate=candidate, shortage=shortage, fits=0, volcano=seen)
    running, first = node.admit(candidate.kubelet, _numbered(group, 0))
    fits, last = _how_many(group, candidate, running, first, wanted)
    return NodeAnswer(
        candidate=candidate,
        fits=fits,
        first=first,
        last=last,
        volcano=seen,
        disagreement=disagreement(group, candidate, first, seen) if seen else None,
    )


def after(group: Group, candidate: Candidate, wanted: int) -> Candidate:
    """The candidate once up to `wanted` pods of the group stand on it, one after the other; as it was where none fits.

    One whose kubelet crashes on them cannot be judged any more.
    """
    if candidate.kubelet is None:
        return candidate
    running, placed, owned = candidate.kubelet, 0, 0
    base = len(running.state.pods)
    while placed < wanted and not _shortage(group, candidate.room, placed + 1):
        pod = msgspec.structs.replace(group.pod, uid=f"before-{base}-{placed}")
        following, verdict = node.admit(running, pod)
        if verdict.outcome in ("panics", "hangs"):
            problem = Reason("crashed-before", {"workload": group.title})
            return Candidate(name=candidate.name, assumed=candidate.assumed, problem=problem)
        if not verdict.admitted:
            break
        running, placed = following, placed + 1
        owned |= union(each.cpus for each in verdict.placements.values() if each.cpus).bits
    room = {
        name: msgspec.structs.replace(each, requested=each.requested + placed * asked_for(group, name))
        for name, each in candidate.room.items()
    }
    seen = candidate.volcano
    if seen is not None:
        seen = msgspec.structs.replace(seen, allocatable=seen.allocatable - CpuSet.of_bits(owned))
    return msgspec.structs.replace(candidate, kubelet=running, room=room, volcano=seen)


def _how_many(
    group: Group, candidate: Candidate, running: node.Node, first: Verdict, wanted: int
) -> tuple[int, Verdict | None]:
    if not first.admitted:
        return 0, first
    for number in range(1, wanted):
        if _shortage(group, candidate.room, number + 1):
            return number, None
        running, verdict = node.admit(running, _numbered(group, number))
        if not verdict.admitted:
            return number, verdict
    return wanted, None


def _numbered(group: Group, number: int) -> kubelet_pod.Pod:
    """A pod of the group with a uid that no running pod has."""
    return msgspec.structs.replace(group.pod, uid=f"asked-{number}")


def _shortage(group: Group, room: Mapping[str, Room], pods_there: int) -> Shortage | None:
    """The first resource that this many pods ask more of than is left; unknown requests of others count as none."""
    for name, each in sorted(room.items()):
        asked = asked_for(group, name)
        free = each.allocatable - each.requested - asked * (pods_there - 1)
        if asked > 0 and asked > free:
            return Shortage(name, asked, max(free, Fraction(0)))
    return None


def _no_plugin(group: Group, candidate: Candidate) -> Shortage | None:
    """The first device asked for that no plugin offers on a node whose devices are known."""
    names = {name for each in group.pod.in_order() for name in each.limits if "/" in name}
    for name in sorted(names) if candidate.devices_known else ():
        if name not in candidate.room and (asked := asked_for(group, name)) > 0:
            return Shortage(name, asked, Fraction(0))
    return None


def asked_for(group: Group, name: str) -> Fraction:
    """What one pod of the group requests of a resource, as the scheduler counts it."""
    whole = group.pod.resources
    if whole is not None and name in whole.requests:
        return kubelet_pod.Container("", whole.requests).request(name).amount
    return aggregate(group.pod.init, group.pod.containers, name).amount


def volcano_verdict(group: Group, candidate: Candidate) -> NodeVerdict | None:
    """Volcano's predicate, for pods that Volcano schedules."""
    if candidate.kubelet is None or group.scheduler == "default-scheduler":
        return None
    return plugin.judge_node(_for_volcano(group), candidate.volcano)


def _for_volcano(group: Group) -> pods.Pod:
    return pods.Pod(
        containers=tuple(map(_container_for_volcano, group.pod.containers)),
        policy=group.policy,
        init=tuple(map(_container_for_volcano, group.pod.init)),
    )


def _container_for_volcano(container: kubelet_pod.Container) -> pods.Container:
    return pods.Container(
        container.name,
        {name: container.request(name).amount for name in container.requests},
        {name: container.limit(name).amount for name in container.limits},
    )


def scored(group: Group, answers: Iterable[NodeAnswer], weight: int) -> tuple[NodeAnswer, ...]:
    """Answers with Volcano's scores, which compare the nodes that its predicate let pass."""
    answers = tuple(answers)
    scores = scores_of(group, {each.candidate.name: numa_count(each) for each in answers}, weight)
    return tuple(msgspec.structs.replace(each, score=scores.get(each.candidate.name)) for each in answers)


def numa_count(answer: NodeAnswer) -> int | None:
    """How many NUMA nodes the pod's CPUs would touch by Volcano's simulation; None = the node is no candidate for a score."""
    if answer.volcano is None or not answer.volcano.outcomes[0].fit or answer.shortage is not None:
        return None
    return answer.volcano.outcomes[0].numa_nodes


def scores_of(group: Group, counts: Mapping[str, int | None], weight: int) -> dict[str, Score]:
    """Volcano's scores of the nodes whose `numa_count` is known."""
    known = {name: count for name, count in counts.items() if count is not None}
    return plugin.batch_node_order(_for_volcano(group), known, weight)


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """One pod under another policy on the same node as it stands. `problem`: the kubelet would not even start."""

    policy: str
    scope: str
    verdict: Verdict | None
    problem: str = ""


def under_policies(group: Group, candidate: Candidate) -> tuple[Alternative, ...]:
    """The first pod under each policy and scope of the topology manager; the running pods stay where they are."""
    if candidate.kubelet is None:
        return ()
    scopes = (topology_manager.CONTAINER, topology_manager.POD)
    return tuple(
        under(group, candidate.kubelet, policy=policy, scope=scope)
        for policy in topology_manager.POLICIES
        for scope in (scopes if policy != topology_manager.NONE else scopes[:1])
    )


def set_otherwise(candidate: Candidate, *, policy: str = "", scope: str = "") -> Candidate:
    """The candidate as it would be with another policy or scope of the topology manager; empty = as it is set. Running pods
    stay where they are."""
    if candidate.kubelet is None or not (policy or scope):
        return candidate
    held = candidate.kubelet.settings
    wanted = msgspec.structs.replace(
        held,
        topology_manager_policy=policy or held.topology_manager_policy,
        topology_manager_scope=scope or held.topology_manager_scope,
    )
    try:
        changed = node.resume(wanted, candidate.kubelet.machine, candidate.kubelet.state)
    except (StartError, PanicError, HangError, UnsupportedError) as error:
        problem = Reason("would-not-start", {"message": str(error)})
        return Candidate(name=candidate.name, assumed=candidate.assumed, problem=problem)
    seen = candidate.volcano
    if seen is not None:
        seen = msgspec.structs.replace(seen, topology_manager=wanted.topology_manager_policy)
    return msgspec.structs.replace(candidate, kubelet=changed, volcano=seen)


def open_choices(group: Group, kubelet: node.Node) -> tuple[Verdict, ...]:
    """What else the kubelet may answer on the first pod, where it walks its maps in any order; nothing where all is settled."""
    given: list[Verdict] = []
    for verdict in every(lambda choices: node.admit(kubelet, _numbered(group, 0), choices)[1], MOST_OPEN):
        if verdict not in given:
            given.append(verdict)
    return tuple(given[1:])


def under(group: Group, kubelet: node.Node, *, policy: str, scope: str) -> Alternative:
    """The first pod on a node whose topology manager is set otherwise."""
    wanted = msgspec.structs.replace(
        kubelet.settings, topology_manager_policy=policy, topology_manager_scope=scope
    )
    try:
        changed = node.resume(wanted, kubelet.machine, kubelet.state)
    except (StartError, PanicError, HangError, UnsupportedError) as error:
        return Alternative(policy=policy, scope=scope, verdict=None, problem=str(error))
    return Alternative(policy=policy, scope=scope, verdict=node.admit(changed, _numbered(group, 0))[1])
