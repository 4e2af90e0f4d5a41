"""Pods that a kubelet refused: counted by owner, node and reason, and judged again by the engine from the node's state of that moment.

Which reasons: kubelet 1.37, lifecycle/predicate.go and cm/{cpumanager,topologymanager,admission}; a refused pod stays as
it is, phase Failed, until somebody deletes it, and its owner makes another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import F

from monitoring.models import Cluster, Failure
from monitoring.selectors import planning
from numacore.manifest import POLICY_ANNOTATION

REASONS = frozenset(
    ("TopologyAffinityError", "UnexpectedAdmissionError", "SMTAlignmentError", "PodFeatureUnsupported")
)
LACKS = re.compile(r"(OutOf|Insufficient).+")
"""`OutOfcpu` and the like; older kubelets and other admitters say `InsufficientXxx`."""
JUDGED_AT_ONCE = 20
"""Lines that get a verdict when many come in one moment; the others get one with their next pod."""


class Refused(msgspec.Struct, frozen=True):
    """A pod that was refused, with its columns of `Pod`."""

    uid: str
    columns: Mapping[str, Any]
    policy: str = ""
    """Value of the annotation by which it asks Volcano for a topology policy; "" = none."""


def refused(columns: Mapping[str, Any]) -> bool:
    """Whether a pod is one that a kubelet refused."""
    reason = columns["reason"]
    return columns["phase"] == "Failed" and (reason in REASONS or bool(LACKS.fullmatch(reason)))


class Failures:
    """The lines of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def note(self, news: Sequence[Refused], now: datetime) -> None:
        """Counts pods that were not counted before; the newest of each line is judged."""
        lines: dict[tuple[str, ...], list[Refused]] = {}
        for each in news:
            lines.setdefault(_line(each), []).append(each)
        for place, (key, members) in enumerate(lines.items()):
            self._count(key, members, now, judged=place < JUDGED_AT_ONCE)

    def _count(
        self, key: tuple[str, ...], members: Sequence[Refused], now: datetime, *, judged: bool
    ) -> None:
        newest = max(members, key=lambda each: each.columns["created"] or now)
        values: dict[str, Any] = {
            "last": now,
            "last_pod": newest.columns["name"],
            "message": newest.columns["message"],
            "asked": asked(newest),
        }
        if judged:
            values |= self._judged(newest, now)
        line, made = Failure.objects.get_or_create(
            cluster=self._cluster,
            **dict(zip(LINE, key, strict=True)),
            defaults={"first": now, "count": len(members), **values},
        )
        if not made:
            Failure.objects.filter(pk=line.pk).update(count=F("count") + len(members), **values)

    def _judged(self, pod: Refused, now: datetime) -> dict[str, Any]:
        columns = pod.columns
        found = planning.rejudge(
            self._cluster,
            columns["node_name"],
            columns["name"],
            columns["resources"],
            columns["scheduler"],
            now,
        )
        return {
            "judged": now,
            "state_age": found.age,
            "verdict": found.explanation and msgspec.to_builtins(found.explanation),
            "obstacle": found.obstacle,
        }


def asked(pod: Refused) -> dict[str, Any]:
    """What decides about a pod's placement, as a manifest without names."""
    scheduler = pod.columns["scheduler"]
    spec = {**({"schedulerName": scheduler} if scheduler else {}), **pod.columns["resources"]}
    return (
        {"metadata": {"annotations": {POLICY_ANNOTATION: pod.policy}}, "spec": spec}
        if pod.policy
        else {"spec": spec}
    )


LINE = ("namespace", "owner_kind", "owner_name", "node_name", "reason")


def _line(pod: Refused) -> tuple[str, ...]:
    """A pod without an owner is a line of its own, under its own name."""
    columns = pod.columns
    kind, owner = columns["owner_kind"] or "Pod", columns["owner_name"] or columns["name"]
    return (columns["namespace"], kind, owner, columns["node_name"], columns["reason"])
