"""One node with all evidence: what every manager offered, where the pod would lie, what other policies would say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from monitoring.hot import HotNode
from monitoring.models import Cluster
from monitoring.selectors import configuration
from monitoring.selectors.planning import nodes
from monitoring.selectors.planning.plan import Row, row_of
from monitoring.selectors.planning.question import Question
from numacore import report
from numacore.facts import Facts
from numacore.kubelet.advice import Advice
from numacore.kubelet.verdict import Verdict
from numacore.manifest import Group
from numacore.report import NodeReport
from numacore.whatif import advising, judging
from numacore.whatif.judging import Alternative, NodeAnswer


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one workload when its turn comes on a node. `wanted`: pods that were tried."""

    title: str
    wanted: int
    row: Row


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """`row` without a score, which takes all nodes. `alternatives`: the first pod under each policy and scope on the node as it stands.
    `others`: what else the kubelet may answer where it is not deterministic itself."""

    group: Group
    row: Row
    answer: NodeAnswer
    alternatives: tuple[Alternative, ...]
    others: tuple[Verdict, ...]
    turns: tuple[Turn, ...]
    """The workloads that come first, in their order, then this one; only this one where each is judged alone."""
    advice: Advice
    """Single changes that would let a refused pod in; every one was judged."""
    facts: Facts
    report: NodeReport


def detail(
    cluster: Cluster,
    group: Group,
    question: Question,
    node: str,
    now: datetime,
    before: Sequence[Group] = (),
) -> Detail | None:
    """A group's pods on one node after those of the groups `before` it; None where nothing current is known of it.

    Raises:
        hot.StoreError: the newest state cannot be read.
        UnknownNodesError: there is no such node.
    """
    (row,) = nodes.chosen(cluster, Question(names=(node,)))
    (known,) = nodes.known(cluster, [row], now)
    if known.state is None:
        return None
    return _of(known, known.state, group, question, before)


def _of(
    known: nodes.Known, state: HotNode, group: Group, question: Question, before: Sequence[Group]
) -> Detail | None:
    facts = state.facts()
    if facts is None:
        return None
    candidate, _capacity = nodes.candidate_of(known)
    changed = judging.set_otherwise(candidate, policy=question.policy, scope=question.scope)
    turns: list[Turn] = []
    for each in before:
        wanted = judging.wanted_of(each, question.replicas)
        turns.append(_turn(each, judging.judge_node(each, changed, wanted), wanted))
        changed = judging.after(each, changed, wanted)
    wanted = judging.wanted_of(group, question.replicas)
    answer = judging.judge_node(group, changed, wanted)
    judged = answer.first is not None and changed.kubelet is not None
    row = row_of(group, answer)
    return Detail(
        group=group,
        row=msgspec.structs.replace(row, age=known.age, stale=known.stale),
        answer=answer,
        alternatives=judging.under_policies(group, changed) if judged else (),
        others=judging.open_choices(group, changed.kubelet) if judged and changed.kubelet else (),
        turns=(*turns, _turn(group, answer, wanted)),
        advice=advising.advice(group, changed, answer),
        facts=facts,
        report=report.node_report(facts, configuration.settings().busy_threshold),
    )


def _turn(group: Group, answer: NodeAnswer, wanted: int) -> Turn:
    return Turn(title=group.title, wanted=wanted, row=row_of(group, answer))
