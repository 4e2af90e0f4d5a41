"""One node with all evidence: what every manager offered, where the pod would lie, what other policies would say."""

from __future__ import annotations

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
from numacore.kubelet import advice
from numacore.kubelet.advice import Fit
from numacore.kubelet.verdict import Verdict
from numacore.manifest import Group
from numacore.report import NodeReport
from numacore.whatif import judging
from numacore.whatif.judging import Alternative, NodeAnswer


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """`row` without a score, which takes all nodes. `alternatives`: the first pod under each policy and scope on the node as it stands.
    `others`: what else the kubelet may answer where it is not deterministic itself."""

    group: Group
    row: Row
    answer: NodeAnswer
    alternatives: tuple[Alternative, ...]
    others: tuple[Verdict, ...]
    advice: tuple[Fit, ...]
    """Single changes that would let a refused pod in; every one was judged."""
    facts: Facts
    report: NodeReport


def detail(cluster: Cluster, group: Group, question: Question, node: str, now: datetime) -> Detail | None:
    """A group's pods on one node; None where nothing current is known of it.

    Raises:
        hot.StoreError: the newest state cannot be read.
        UnknownNodesError: there is no such node.
    """
    (row,) = nodes.chosen(cluster, Question(names=(node,)))
    (known,) = nodes.known(cluster, [row], now)
    if known.state is None:
        return None
    return _of(known, known.state, group, question)


def _of(known: nodes.Known, state: HotNode, group: Group, question: Question) -> Detail | None:
    facts = state.facts()
    if facts is None:
        return None
    candidate, _capacity = nodes.candidate_of(known)
    changed = judging.set_otherwise(candidate, policy=question.policy, scope=question.scope)
    answer = judging.judge_node(group, changed, judging.wanted_of(group, question.replicas))
    advised: tuple[Fit, ...] = ()
    if changed.kubelet is not None and answer.first is not None:
        advised = advice.advice(changed.kubelet, group.pod, answer.first)
    judged = answer.first is not None and changed.kubelet is not None
    row = row_of(group, answer)
    return Detail(
        group=group,
        row=msgspec.structs.replace(row, age=known.age, stale=known.stale),
        answer=answer,
        alternatives=judging.under_policies(group, changed) if judged else (),
        others=judging.open_choices(group, changed.kubelet) if judged and changed.kubelet else (),
        advice=advised,
        facts=facts,
        report=report.node_report(facts, configuration.settings().busy_threshold),
    )
