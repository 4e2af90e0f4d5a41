"""A cluster whose pods are known, and pods of it that kubelets refused or that do not start: put there as the watcher does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from monitoring.models import Cluster, Connection, WatchHealth
from monitoring.services.watching.exporters import Exporters
from monitoring.services.watching.failures import Failures
from monitoring.services.watching.pods import PodKeeper
from tests.monitoring.watching import objects

WORDS = "Pod was rejected: Resources cannot be allocated with Topology locality"


def connected(cluster: Cluster, **known: Any) -> Connection:
    """A connection over which all pods were told."""
    values = {"state": Connection.State.OK, "source": "in-cluster", **known}
    row, _made = Connection.objects.update_or_create(cluster=cluster, defaults=values)
    now = datetime.now(UTC)
    WatchHealth.objects.update_or_create(
        connection=row,
        resource="pods",
        defaults={"state": "watching", "since": now, "listed": now, "objects_known": 40},
    )
    return row


def owned(
    owner: str,
    number: int,
    *,
    node: str,
    cpu: str = "40",
    memory: str = "8Gi",
    namespace: str = "shop",
    kind: str = "StatefulSet",
    reason: str = "TopologyAffinityError",
    words: str = WORDS,
    waiting: bool = False,
) -> Any:
    """One pod of an owner: refused with `reason`, or admitted and `waiting` with it. Without a kind it is nobody's."""
    name = f"{owner}-{number}" if kind else owner
    made = datetime.now(UTC) - timedelta(minutes=60 - number % 60)
    meta: dict[str, Any] = {"creationTimestamp": made.isoformat()}
    if kind:
        meta["ownerReferences"] = [{"kind": kind, "name": owner, "uid": owner, "controller": True}]
    status: dict[str, Any] = {"phase": "Failed", "reason": reason, "message": words}
    if waiting:
        held = {"name": "main", "state": {"waiting": {"reason": reason}}}
        status = {"phase": "Pending", "containerStatuses": [held]}
    spec = {"nodeName": node, "containers": [objects.container(cpu, memory)]}
    return objects.pod(
        name, f"uid-{namespace}-{name}", namespace=namespace, meta=meta, spec=spec, status=status
    )


def told(cluster: Cluster, *pods: Any) -> None:
    """The watcher hears of these pods, at this moment."""
    keeper = PodKeeper(cluster.pk, Failures(cluster), Exporters(Connection.objects.get(cluster=cluster)))
    keeper.now = datetime.now(UTC)
    keeper.begin()
    keeper.put(pods)


def scene(cluster: Cluster) -> None:
    """A loop on one node, two more refusals, one that nobody can explain, one of many, and a loop that does not start."""
    connected(cluster)
    told(cluster, *(owned("inference", number, node="node-07") for number in range(7)))
    told(
        cluster,
        owned("batch", 0, node="node-07", cpu="60", memory="16Gi", namespace="jobs", kind="Job"),
        owned("cache", 0, node="silent", cpu="4"),
        owned(
            "debug",
            0,
            node="solo",
            cpu="100m",
            memory="64Mi",
            kind="",
            reason="UnexpectedAdmissionError",
            words="Allocate failed",
        ),
        owned("edge", 0, node="elsewhere", reason="OutOfcpu", words="Node didn't have enough resource: cpu"),
    )
    told(
        cluster,
        *(
            owned(
                "web",
                number,
                node="node-07",
                cpu="2",
                kind="ReplicaSet",
                reason="CreateContainerError",
                waiting=True,
            )
            for number in range(3)
        ),
    )
