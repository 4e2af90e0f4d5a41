"""A node's newest report as rows: its summary, its containers, and a placement whenever it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
import zstandard
from django.db import connection, transaction

from monitoring.models import Container, Node, NodeEvent, Placement
from monitoring.services import identity, leases, upsert
from monitoring.services.leases import Tenure
from numacore import workload
from numacore.facts import Facts
from numacore.report import ContainerReport, NodeReport, Policy
from numacore.topology import content_hash
from numacore.wire import Containers, encode_value

LENGTHS = {"pod_uid": 64, "namespace": 253, "pod": 253, "name": 253, "runtime": 32, "container_id": 500}


class Observation(msgspec.Struct, frozen=True):
    """A node with the facts that its exporter told, and the report made of them and of what the API server adds."""

    node: int
    facts: Facts
    report: NodeReport
    problems: int
    at: datetime
    same_containers: bool = False
    """The containers section is the one of the last report, so the placement cannot have changed."""
    new_kubelet: bool = False
    """The kubelet's settings or state changed since the last report."""


def record(
    observations: Iterable[Observation], tenure: Tenure | None = None, threshold: float = workload.BUSY
) -> None:
    """Writes them in one transaction. Raises LeaseLostError."""
    with transaction.atomic():
        if tenure is not None:
            leases.fence(tenure)
        for observation in observations:
            _record(observation, threshold)


def _record(seen: Observation, threshold: float) -> None:
    changed = Node.objects.filter(pk=seen.node, gone_at=None).update(**summary(seen, threshold))
    if changed:
        _containers(seen)
        if not seen.same_containers:
            _placement(seen)
        if seen.new_kubelet:
            identity.event(seen.node, seen.at, NodeEvent.Code.KUBELET, {})


def summary(seen: Observation, threshold: float) -> dict[str, Any]:
    """The summary columns of a node."""
    report, policy = seen.report, seen.report.policy
    costs = [each.cost for each in report.containers if each.cost is not None]
    return {
        "sockets": len(seen.facts.topology.sockets) or None,
        "numa_nodes": len(seen.facts.topology.nodes),
        "cpus": len(seen.facts.topology.cpus),
        **_owners(report, threshold),
        "memory_total": report.memory_total,
        "memory_used": report.memory_used,
        "busy": report.busy,
        "pinned": report.pinned,
        "pinnable": report.pinnable,
        "free_cpus": {str(numa.id): numa.free for numa in report.numa if numa.cpus},
        "cpu_requested": report.cpu.requested if report.cpu else None,
        "cpu_allocatable": report.cpu.allocatable if report.cpu else None,
        "cpu_allocation": report.cpu.share if report.cpu else None,
        "memory_allocation": report.memory.share if report.memory else None,
        "requests_unknown": report.cpu.unknown if report.cpu else None,
        **_policies(policy),
        "containers": len(report.containers),
        "exclusive_containers": sum(1 for each in report.containers if each.kind == "exclusive"),
        "crossing": report.crossing,
        "crossing_unknown": report.crossing_unknown,
        "worst_cost": max(costs, default=None),
        "problems": seen.problems,
        "contradictions": len(policy.contradictions) if policy else None,
        "last_seen": seen.at,
    }


def _owners(report: NodeReport, threshold: float) -> dict[str, int | None]:
    counts = dict.fromkeys(("offline", "reserved", "exclusive", "shared", "unknown"), 0)
    for cpu in report.cpus:
        counts[cpu.owner or "unknown"] += 1
    idle = [
        cpu.busy <= threshold
        for cpu in report.cpus
        if cpu.busy is not None and cpu.owner not in ("offline", "exclusive")
    ]
    return {
        **{f"cpus_{owner}": count for owner, count in counts.items()},
        "cpus_idle": sum(idle) if idle else None,
    }


def _policies(policy: Policy | None) -> dict[str, str]:
    if policy is None:
        return dict.fromkeys(("topology_policy", "topology_scope", "cpu_policy", "memory_policy"), "")
    return {
        "topology_policy": (policy.topology or "")[:64],
        "topology_scope": (policy.scope or "")[:64],
        "cpu_policy": (policy.cpu_in_force or policy.cpu or "")[:64],
        "memory_policy": (policy.memory_in_force or policy.memory or "")[:64],
    }


# Containers --------------------------------------------------------------------------------------------------


def _containers(seen: Observation) -> None:
    """Brings the rows of a node's containers up to date, writing only what changed."""
    before = Container.objects.filter(node=seen.node).values_list("pk", "container_id", *COLUMNS)
    there = {row[1]: row for row in before}
    wanted = {row["container_id"]: row for row in map(container_row, seen.report.containers)}
    due = [row for key, row in wanted.items() if key not in there or _differs(there[key], row)]
    upsert.containers(seen.node, seen.at, due)
    gone = [row[0] for key, row in there.items() if key not in wanted]
    for i in range(0, len(gone), 500):
        Container.objects.filter(pk__in=gone[i : i + 500]).delete()


def container_row(each: ContainerReport) -> dict[str, Any]:
    """The columns of one container."""
    container, cross = each.container, each.cross
    texts = {
        "container_id": container.id,
        "pod_uid": container.pod_uid,
        "namespace": container.namespace,
        "pod": container.pod,
        "name": container.name,
        "runtime": container.runtime,
    }
    return {
        **{name: _text(text, LENGTHS[name]) for name, text in texts.items()},
        "kubernetes": container.kubernetes,
        "qos": container.qos or "",
        "kind": each.kind or "",
        "cpus": "" if each.cpus is None else str(each.cpus),
        "cpu_count": None if each.cpus is None else len(each.cpus),
        "cpu_nodes": _ids(each.cpu_nodes),
        "memory_nodes": None
        if each.pages is None
        else {str(node): size for node, size in each.pages.items() if size},
        "device_nodes": _ids(each.device_nodes),
        "locality": each.locality,
        "cost": each.cost,
        "remote_pages": each.remote_pages,
        "cross_cpu": None if cross is None else "cpu" in cross,
        "cross_memory": None if cross is None else "memory" in cross,
        "cross_device": None if cross is None else "device" in cross,
        "crossing": None if cross is None else bool(cross),
        "cpu_use": each.cpu_use,
        "memory": each.memory,
        "pinning": each.pinning.code[:40],
        "told_by_api": ",".join(name for name in JOINED if name in container.told_by_api),
    }


COLUMNS = (
    *("pod_uid", "namespace", "pod", "name", "kubernetes", "runtime", "qos", "kind", "cpus", "cpu_count"),
    *("cpu_nodes", "memory_nodes", "device_nodes", "locality", "cost", "remote_pages"),
    *("cross_cpu", "cross_memory", "cross_device", "crossing", "cpu_use", "memory", "pinning"),
    "told_by_api",
)


JOINED = ("namespace", "pod", "name", "pod_uid")
"""What the API server may add to a container."""


def _text(text: str | None, length: int) -> str:
    return (text or "").replace("\0", "\ufffd")[:length]


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))[:1000]


def _differs(before: Sequence[Any], now: dict[str, Any]) -> bool:
    """Whether a row (pk, container id, COLUMNS) says something else than what is so."""
    return any(
        MOVING[name](old, now[name]) if name in MOVING else old != now[name]
        for name, old in zip(COLUMNS, before[2:], strict=True)
    )


def _moved(share: float, least: float) -> Callable[[float | None, float | None], bool]:
    """Whether a figure moved by more than a share of itself and by more than the least that counts."""

    def moved(old: float | None, new: float | None) -> bool:
        if old is None or new is None:
            return old is not new
        return abs(new - old) > max(least, share * max(abs(old), abs(new)))

    return moved


def _moved_pages(old: dict[str, int] | None, new: dict[str, int] | None) -> bool:
    if old is None or new is None:
        return old is not new
    return old.keys() != new.keys() or any(_moved_memory(old[node], new[node]) for node in new)


_moved_memory = _moved(0.05, 1 << 20)
MOVING: dict[str, Callable[[Any, Any], bool]] = {
    "locality": _moved(0.0, 0.005),
    "cost": _moved(0.0, 0.01),
    "remote_pages": _moved(0.0, 0.005),
    "cpu_use": _moved(0.2, 0.05),
    "memory": _moved_memory,
    "memory_nodes": _moved_pages,
}
"""Figures that move all the time are written again when the change could matter to whoever looks at a list."""


# Placements --------------------------------------------------------------------------------------------------


def placement_of(facts: Facts) -> bytes:
    """What a placement is about, as bytes that are the same for the same placement: who sits where, and no counters."""
    return encode_value(Containers(facts.containers))


def _placement(seen: Observation) -> None:
    data = placement_of(seen.facts)
    digest = content_hash(data)
    last = Placement.objects.filter(node=seen.node, until=None).order_by("-since").defer("data").first()
    if last is not None and last.hash == digest:
        return
    if last is not None:
        Placement.objects.filter(node=seen.node, until=None).update(until=seen.at)
        values = {"containers": len(seen.facts.containers)}
        identity.event(seen.node, seen.at, NodeEvent.Code.PLACEMENT, values)
    packed = zstandard.ZstdCompressor(level=3).compress(data)
    Placement.objects.create(node_id=seen.node, since=seen.at, hash=digest, data=packed)


# What moves --------------------------------------------------------------------------------------------------


class Pulse(msgspec.Struct, frozen=True):
    """What of a node's summary moves all the time."""

    node: int
    endpoint: int
    busy: float | None
    memory_used: int | None
    at: datetime
    skew: float | None


def pulses(beats: Sequence[Pulse], tenure: Tenure | None = None) -> None:
    """Writes what moves of many nodes and of their endpoints, in one transaction. Raises LeaseLostError."""
    with transaction.atomic():
        if tenure is not None:
            leases.fence(tenure)
        with connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE monitoring_node SET busy = %s, memory_used = %s, last_seen = %s WHERE id = %s",
                [(each.busy, each.memory_used, each.at, each.node) for each in beats],
            )
            cursor.executemany(
                "UPDATE monitoring_endpoint SET last_ok = %s, last_try = %s, skew = %s WHERE id = %s AND state = 'ok'",
                [(each.at, each.at, each.skew, each.endpoint) for each in beats],
            )
