"""A group of pods on every chosen node: for each a short answer, as far as the time allows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from monitoring.models import Cluster
from monitoring.selectors.planning import nodes
from monitoring.selectors.planning.memory import Memory
from monitoring.selectors.planning.nodes import Key, Known
from monitoring.selectors.planning.question import POLICIES, Question
from numacore.cpuset import CpuSet, union
from numacore.diagnosis import Reason
from numacore.kubelet.verdict import Placement, Verdict
from numacore.lint import Capacity
from numacore.manifest import Group
from numacore.volcano.plugin import NodeVerdict, Score
from numacore.whatif import explaining, judging
from numacore.whatif.candidate import Candidate
from numacore.whatif.disagreement import Disagreement
from numacore.whatif.judging import NodeAnswer, Shortage

State = Literal["crash", "admitted", "refused", "unknown"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One node's answer in short.

    `why`: reasons of a refusal, the heaviest first; also why it cannot be judged. `fits`: how many pods it takes, None = unknown.
    `last`: why no more than these fit. `policies`: the state under each policy, in the node's own scope.
    """

    node: str
    state: State
    age: float | None = None
    stale: bool = False
    policy: str = ""
    scope: str = ""
    why: tuple[Reason, ...] = ()
    last: tuple[Reason, ...] = ()
    assumed: tuple[Reason, ...] = ()
    fits: int | None = None
    qos: str = ""
    placements: dict[str, Placement] = {}
    """What each container of an admitted pod would hold; containers that hold nothing are absent."""
    numa: tuple[int, ...] = ()
    volcano: NodeVerdict | None = None
    counted: int | None = None
    """NUMA nodes that the pod would touch by Volcano's simulation."""
    score: Score | None = None
    disagreement: Disagreement | None = None
    policies: dict[str, State] = {}
    devices_known: bool = True
    unknown_requests: int = 0
    """Containers on the node whose requests nobody knows."""

    @property
    def cpus(self) -> CpuSet:
        """CPUs that the pod would own; empty = it would run on shared ones."""
        return union(each.cpus for each in self.placements.values() if each.cpus)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a group. `pending`: nodes that there was no time for; asking again goes on there."""

    group: Group
    replicas: int | None
    """Pods that are wanted altogether; None = one on every node."""
    wanted: int
    """Pods that were tried on each node."""
    rows: tuple[Row, ...]
    pending: int
    before: tuple[Group, ...]
    """Workloads that were put onto each node first."""
    weight: tuple[int, bool]
    """Of Volcano's plugin, and whether it is the one that was asked for."""
    capacities: tuple[Capacity, ...]
    """What the judged nodes could give at most, for the linter; each kind of machine once."""

    @property
    def judged(self) -> tuple[Row, ...]:
        return tuple(each for each in self.rows if each.state != "unknown")

    def in_state(self, state: State) -> tuple[Row, ...]:
        return tuple(each for each in self.rows if each.state == state)

    @property
    def best(self) -> Row | None:
        """Where the pod would be best off: Volcano's score, then fewer NUMA nodes, then more room."""
        return min(self.in_state("admitted"), key=rank, default=None)


def rank(row: Row) -> tuple[object, ...]:
    """Order of nodes that admit the pod: no disagreement, Volcano's score, fewer NUMA nodes, more pods, name."""
    score = row.score.value if row.score else 0
    return (row.disagreement is not None, -score, len(row.numa) or 1, -(row.fits or 0), row.node)


_ORDER: Mapping[State, int] = {"crash": 0, "admitted": 1, "refused": 2, "unknown": 3}

# Short answers by what is asked, and in there by what decides on a node.
_answers: Memory[dict[Key, tuple[Row, Capacity | None]]] = Memory(6)
_MOST_ROWS = 20_000


def forget() -> None:
    """Nothing is remembered any more; for tests."""
    for each in (_answers, nodes.candidates, nodes.machines):
        each.clear()


def plan(
    cluster: Cluster,
    group: Group,
    question: Question,
    now: datetime,
    *,
    seconds: float,
    before: Sequence[Group] = (),
) -> Plan:
    """A group of pods judged on the nodes of a question, where those of the groups `before` it stand already as far as they fit.

    `seconds`: so long nodes are judged that were not yet; at least one is, so that asking again comes to an end.

    Raises:
        hot.StoreError: the newest state cannot be read.
        UnknownNodesError: the question names nodes that the cluster does not have.
    """
    listed = nodes.chosen(cluster, question)
    wanted = judging.wanted_of(group, question.replicas)
    groups = msgspec.json.encode((group, before)).decode()
    asked = (groups, question.policy, question.scope, str(question.replicas))
    held = _answers.got(asked, dict)
    rows: list[Row] = []
    capacities: dict[bytes, Capacity] = {}
    fresh, until = 0, time.monotonic() + seconds
    for each in nodes.known(cluster, listed, now):
        answer = held.get(each.key) if each.key else None
        if answer is None:
            if each.key and fresh and time.monotonic() > until:
                continue
            fresh += bool(each.key)  # one without a key costs nothing
            answer = _judged(each, group, question, before)
            if each.key and len(held) < _MOST_ROWS:
                held[each.key] = answer
        row, capacity = answer
        if capacity:
            capacities.setdefault(msgspec.json.encode(capacity), capacity)
        rows.append(msgspec.structs.replace(row, node=each.name, age=each.age, stale=each.stale))
    weight = question.volcano_weight
    ordered = sorted(_scored(group, rows, weight[0]), key=lambda row: (_ORDER[row.state], rank(row)))
    return Plan(
        group=group,
        replicas=group.replicas if question.replicas is None else question.replicas,
        wanted=wanted,
        rows=tuple(ordered),
        pending=len(listed) - len(rows),
        before=tuple(before),
        weight=weight,
        capacities=tuple(capacities.values()),
    )


def _scored(group: Group, rows: Sequence[Row], weight: int) -> list[Row]:
    scores = judging.scores_of(group, {row.node: row.counted for row in rows}, weight)
    return [msgspec.structs.replace(row, score=scores.get(row.node)) for row in rows]


def _judged(
    known: Known, group: Group, question: Question, before: Sequence[Group]
) -> tuple[Row, Capacity | None]:
    candidate, capacity = nodes.candidate_of(known)
    changed = judging.set_otherwise(candidate, policy=question.policy, scope=question.scope)
    for each in before:
        changed = judging.after(each, changed, judging.wanted_of(each, question.replicas))
    wanted = judging.wanted_of(group, question.replicas)
    return row_of(group, judging.judge_node(group, changed, wanted)), capacity


def row_of(group: Group, answer: NodeAnswer) -> Row:
    """The short form of an answer."""
    candidate, first = answer.candidate, answer.first
    if candidate.kubelet is None:
        why = (answer.problem,) if answer.problem else ()
        return Row(node=candidate.name, state="unknown", why=why, assumed=candidate.assumed)
    settings = candidate.kubelet.settings
    policy = settings.topology_manager_policy
    return Row(
        node=candidate.name,
        state=state_of(answer.shortage, first),
        policy=policy,
        scope=settings.topology_manager_scope,
        why=_why(answer, first, policy),
        last=explaining.why(answer.last, policy) if answer.last and answer.fits else (),
        assumed=candidate.assumed,
        fits=answer.fits,
        qos=first.qos if first else "",
        placements=first.placements if first and first.admitted else {},
        numa=numa_of(candidate, first) if first else (),
        volcano=answer.volcano,
        counted=judging.numa_count(answer),
        disagreement=answer.disagreement,
        policies=_policies(group, candidate, first) if answer.shortage is None else {},
        devices_known=candidate.devices_known,
        unknown_requests=max((each.unknown for each in candidate.room.values()), default=0),
    )


def state_of(shortage: Shortage | None, verdict: Verdict | None) -> State:
    if shortage is not None:
        return "refused"
    if verdict is None:
        return "unknown"
    if verdict.outcome in ("panics", "hangs"):
        return "crash"
    return "admitted" if verdict.admitted else "refused"


def _why(answer: NodeAnswer, verdict: Verdict | None, policy: str) -> tuple[Reason, ...]:
    shortage = answer.shortage
    if shortage is not None and "/" in shortage.resource and shortage.resource not in answer.candidate.room:
        return (Reason("devices-unregistered", {"resource": shortage.resource, "container": ""}),)
    if shortage is not None:
        values: explaining.Values = {
            "resource": shortage.resource,
            "asked": float(shortage.asked),
            "free": float(shortage.free),
        }
        return (Reason("scheduler-short", values),)
    return explaining.why(verdict, policy) if verdict else ()


def numa_of(candidate: Candidate, verdict: Verdict) -> tuple[int, ...]:
    """NUMA nodes that an admitted pod holds CPUs, memory or devices of; nothing where it floats."""
    if candidate.kubelet is None or not verdict.admitted:
        return ()
    found: set[int] = set()
    for each in verdict.placements.values():
        if each.cpus:
            by_cpu = candidate.kubelet.machine.topology.by_cpu
            found |= {by_cpu[cpu].numa for cpu in each.cpus if cpu in by_cpu}
        found.update(numa for block in each.memory for numa in block.numa)
        found.update(numa for held in each.devices.values() for ids in held.numa for numa in ids)
    return tuple(sorted(found))


def _policies(group: Group, candidate: Candidate, first: Verdict | None) -> dict[str, State]:
    """The state under each policy, in the node's own scope."""
    assert candidate.kubelet is not None
    settings = candidate.kubelet.settings
    found: dict[str, State] = {}
    for policy in POLICIES:
        verdict = first
        if policy != settings.topology_manager_policy:
            scope = settings.topology_manager_scope
            verdict = judging.under(group, candidate.kubelet, policy=policy, scope=scope).verdict
        found[policy] = state_of(None, verdict)
    return found
