"""Events of a cluster that concern NUMA placement. The API server forgets them after an hour; here they stay as long as administrators want."""

from __future__ import annotations

import re
from collections.abc import Sequence

from monitoring.kube import objects
from monitoring.models import ClusterEvent
from monitoring.services.changes import BATCH
from monitoring.services.watching import rows
from monitoring.services.watching.keeper import Keeper

OF_PODS = frozenset(
    (
        *("TopologyAffinityError", "UnexpectedAdmissionError", "SMTAlignmentError"),
        *("FailedAllocatePods", "Evicted", "OOMKilling", "FailedCreatePodSandBox"),
    )
)
OF_NODES = frozenset(
    (
        *("Starting", "Rebooted", "NodeReady", "NodeNotReady", "NodeSchedulable", "NodeNotSchedulable"),
        *(
            "NodeHasInsufficientMemory",
            "SystemOOM",
            "RegisteredNode",
            "RemovingNode",
            "FailedNodeAllocatableEnforcement",
        ),
    )
)
SCHEDULING = frozenset(("FailedScheduling", "Unschedulable"))
NUMA = re.compile(
    r"numa|topology|cpu manager|memory manager|Insufficient (cpu|memory|hugepages)", re.IGNORECASE
)
KEPT = tuple(f.name for f in ClusterEvent._meta.concrete_fields if f.name not in ("id", "cluster", "uid"))


def concerns(told: objects.Event) -> bool:
    """Whether an event has to do with where CPUs and memory are given out."""
    if told.involved_object.kind == "Node":
        return told.reason in OF_NODES
    if told.reason in SCHEDULING:
        return bool(NUMA.search(told.message))
    return told.reason in OF_PODS or told.reason.startswith("OutOf")


class EventKeeper(Keeper[objects.Event]):
    """Events come and change; that the API server forgets one says nothing."""

    def __init__(self, cluster: int) -> None:
        self._cluster = cluster

    def put(self, found: Sequence[objects.Event]) -> None:
        rows_ = [
            ClusterEvent(cluster_id=self._cluster, uid=each.metadata.uid, **rows.event(each, self.now))
            for each in found
            if concerns(each)
        ]
        if rows_:
            ClusterEvent.objects.bulk_create(
                rows_,
                update_conflicts=True,
                unique_fields=["cluster", "uid"],
                update_fields=KEPT,
                batch_size=BATCH,
            )

    def drop(self, found: Sequence[objects.Event]) -> None:
        """Nothing: what happened stays."""

    def end(self) -> None:
        """Nothing: what happened stays."""
