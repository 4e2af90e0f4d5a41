"""A pod that a kubelet refused, judged again on its node as it is now: is the refusal understood, and what would have fitted?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from monitoring import hot
from monitoring.models import Cluster
from monitoring.selectors.planning import nodes
from monitoring.selectors.planning.plan import row_of
from monitoring.selectors.planning.question import Question, UnknownNodesError
from numacore import manifest
from numacore.diagnosis import Reason
from numacore.kubelet.advice import Fit
from numacore.manifest import Group, ManifestError
from numacore.whatif import advising, judging

Obstacle = Literal["", "no-node", "no-state", "no-store", "unreadable", "unjudged"]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine says. `state` admitted = the node has room by now, or something that is not judged was in the way."""

    state: Literal["admitted", "refused", "crash"]
    why: tuple[Reason, ...] = ()
    advice: tuple[Fit, ...] = ()
    advice_complete: bool = True
    """False = not every smaller request that may help was tried."""
    assumed: tuple[Reason, ...] = ()


class Rejudged(msgspec.Struct, frozen=True, kw_only=True):
    """`age`: seconds that the node's state was old. `obstacle`: why there is no explanation."""

    age: float | None = None
    obstacle: Obstacle = ""
    explanation: Explanation | None = None


def rejudge(
    cluster: Cluster, node: str, pod: str, asked: Mapping[str, Any], scheduler: str, now: datetime
) -> Rejudged:
    """Judges one pod. `asked`: the part of its spec that decides, as `monitoring.models.Pod.resources` has it."""
    try:
        (row,) = nodes.chosen(cluster, Question(names=(node,)))
        (known,) = nodes.known(cluster, [row], now)
    except UnknownNodesError:
        return Rejudged(obstacle="no-node")
    except hot.StoreError:
        return Rejudged(obstacle="no-store")
    if known.state is None:
        return Rejudged(obstacle="no-node" if row.topology_id is None else "no-state")
    try:
        group = _group(pod, asked, scheduler)
    except ManifestError:
        return Rejudged(age=known.age, obstacle="unreadable")
    candidate, _capacity = nodes.candidate_of(known)
    answer = judging.judge_node(group, candidate, wanted=1)
    found = row_of(group, answer)
    if found.state == "unknown":
        return Rejudged(age=known.age, obstacle="unjudged")
    advised = advising.advice(group, candidate, answer)
    explanation = Explanation(
        state=found.state,
        why=found.why,
        advice=advised.fits,
        advice_complete=advised.complete,
        assumed=found.assumed,
    )
    return Rejudged(age=known.age, explanation=explanation)


def _group(pod: str, asked: Mapping[str, Any], scheduler: str) -> Group:
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod},
        "spec": {"schedulerName": scheduler, **asked} if scheduler else dict(asked),
    }
    (group,) = manifest.read([document])
    return group
