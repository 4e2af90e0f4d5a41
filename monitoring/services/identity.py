"""Which node speaks at an endpoint: new, known, replaced, renamed, returned, or claimed by two exporters."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import transaction

from monitoring.models import Cluster, Endpoint, Node, NodeEvent, Topology
from monitoring.services import leases
from monitoring.services.leases import Tenure
from monitoring.sources import failures
from numacore import topology as core
from numacore.wire import Exporter, Machine

Code = NodeEvent.Code
REUSE_AFTER = timedelta(hours=1)
"""A gone node's place in the planes is given to another one after this."""


class Claim(msgspec.Struct, frozen=True):
    """What an exporter says it is."""

    endpoint: int
    cluster: int
    exporter: Exporter
    machine: Machine


class Identity(msgspec.Struct, frozen=True):
    """What the endpoint is. `node` None = it contradicts another exporter (`conflict`)."""

    endpoint: int
    node: int | None
    slot: int = 0
    conflict: str = ""
    fresh: bool = False
    """The lists of nodes changed."""


class _Conflict(Exception):  # noqa: N818 - a verdict and no fault
    def __init__(self, remedy: str, text: str) -> None:
        super().__init__(text)
        self.remedy = remedy


def identify(claims: Iterable[Claim], now: datetime, tenure: Tenure | None = None) -> list[Identity]:
    """Finds or makes the node of each claim, in one transaction. Raises LeaseLostError."""
    with transaction.atomic():
        if tenure is not None:
            leases.fence(tenure)
        return [_identify(claim, now) for claim in claims]


def _identify(claim: Claim, now: datetime) -> Identity:
    endpoint = Endpoint.objects.select_related("node").get(pk=claim.endpoint)
    try:
        node, fresh = _settle(claim, endpoint, now)
    except _Conflict as verdict:
        return _refuse(endpoint, verdict, now)
    changes = _facts(node, claim, now)
    if endpoint.conflict or endpoint.node_id != node.pk or endpoint.state != Endpoint.State.OK:
        Endpoint.objects.filter(pk=endpoint.pk).update(
            node=node,
            conflict="",
            state=Endpoint.State.OK,
            error="",
            remedy="",
            failures=0,
            last_ok=now,
            last_try=now,
        )
    return Identity(endpoint.pk, node.pk, node.slot, fresh=fresh or changes)


def _settle(claim: Claim, endpoint: Endpoint, now: datetime) -> tuple[Node, bool]:
    """The node of a claim, and whether the lists changed."""
    name, uid = claim.exporter.node, claim.exporter.machine_id or ""
    current = Node.objects.select_related("topology").filter(cluster=claim.cluster, gone_at=None)
    named = current.filter(name=name).first()
    twin = current.filter(uid=uid).exclude(name=name).first() if uid else None
    if named is not None:
        _unclaimed(named, endpoint, f"node {name}", failures.CLAIMED)
    if twin is not None:
        _unclaimed(twin, endpoint, f"node {twin.name}, which has the same machine-id", failures.CLONE)
        _leave(twin, now, Code.GONE, {"renamed": name})
    if named is not None and uid and not named.uid:
        Node.objects.filter(pk=named.pk).update(uid=uid)
    elif named is not None and uid and named.uid != uid:
        _leave(named, now, Code.REPLACED, {"uid": uid})
        named = None
    if named is not None:
        return named, twin is not None
    return _arrive(claim, name, uid, now), True


def _unclaimed(node: Node, endpoint: Endpoint, what: str, remedy: str) -> None:
    """Raises if another exporter that answers has the node."""
    others = Endpoint.objects.filter(node=node, enabled=True, conflict="", state=Endpoint.State.OK)
    other = others.exclude(pk=endpoint.pk).first()
    if other is not None:
        raise _Conflict(remedy, f"{other.url} speaks for {what} already")


def _refuse(endpoint: Endpoint, verdict: _Conflict, now: datetime) -> Identity:
    text = str(verdict)[:500]
    if endpoint.conflict != text:
        Endpoint.objects.filter(pk=endpoint.pk).update(
            conflict=text, remedy=verdict.remedy, node=None, last_try=now
        )
    return Identity(endpoint.pk, None, conflict=text)


def _arrive(claim: Claim, name: str, uid: str, now: datetime) -> Node:
    """A node that is new, or that was gone and returned."""
    topology = store_topology(claim.machine.topology)
    node = Node.objects.filter(cluster=claim.cluster, name=name, uid=uid).first()
    code = Code.FIRST_SEEN if node is None else Code.RETURNED
    if node is None:
        node = Node(cluster_id=claim.cluster, name=name, uid=uid, first_seen=now)
        node.boot_id = claim.exporter.boot_id or ""
        node.attributes = attributes(claim.machine)
    node.topology, node.last_seen, node.gone_at = topology, now, None
    node.slot = place(claim.cluster, topology.numa_nodes, now)
    node.numa_nodes, node.cpus, node.sockets = topology.numa_nodes, topology.cpus, topology.sockets
    node.save()
    event(node, now, code, {"version": claim.exporter.version})
    return node


def _leave(node: Node, now: datetime, code: str, values: dict[str, Any]) -> None:
    Node.objects.filter(pk=node.pk).update(gone_at=now)
    node.container_rows.all().delete()
    event(node, now, code, values)


def _facts(node: Node, claim: Claim, now: datetime) -> bool:
    """Notes what of a known node changed: boot, topology, attributes. Whether the lists changed."""
    changes: dict[str, Any] = {}
    boot = claim.exporter.boot_id or ""
    if boot and boot != node.boot_id:
        if node.boot_id:
            event(node, now, Code.REBOOTED, {})
        changes["boot_id"] = boot
    if node.topology_id != claim.machine.topology.hash:
        changes |= _new_topology(node, claim, now)
    if (beside := attributes(claim.machine)) != node.attributes:
        changes["attributes"] = beside
    if changes:
        Node.objects.filter(pk=node.pk).update(**changes)
        node.slot = changes.get("slot", node.slot)
    return "topology" in changes


def _new_topology(node: Node, claim: Claim, now: datetime) -> dict[str, Any]:
    topology = store_topology(claim.machine.topology)
    event(node, now, Code.TOPOLOGY, {"before": node.topology_id, "after": topology.hash})
    changes: dict[str, Any] = {
        "topology": topology,
        "numa_nodes": topology.numa_nodes,
        "cpus": topology.cpus,
        "sockets": topology.sockets,
    }
    if topology.numa_nodes != node.topology.numa_nodes:
        changes["slot"] = place(claim.cluster, topology.numa_nodes, now)
    return changes


def place(cluster: int, width: int, now: datetime) -> int:
    """So many cells in the cluster's planes: those of a node of the same width that is long gone, or new ones."""
    row = Cluster.objects.select_for_update().get(pk=cluster)
    taken = Node.objects.filter(cluster=cluster, gone_at=None).values("slot")
    gone = Node.objects.filter(
        cluster=cluster, gone_at__lt=now - REUSE_AFTER, topology__numa_nodes=width
    ).exclude(slot__in=taken)
    free = gone.order_by("slot").values_list("slot", flat=True).first()
    if free is not None:
        return free
    Cluster.objects.filter(pk=cluster).update(cells=row.cells + width)
    return row.cells


def store_topology(topology: core.Topology) -> Topology:
    """The row of a topology, made where it is the first of its kind."""
    row, _ = Topology.objects.get_or_create(
        hash=topology.hash,
        defaults={
            "document": msgspec.json.encode(topology, enc_hook=core.enc_hook),
            "cpus": len(topology.cpus),
            "numa_nodes": len(topology.nodes),
            "sockets": len(topology.sockets),
            "threads_per_core": topology.threads_per_core(),
        },
    )
    return row


def attributes(machine: Machine) -> dict[str, Any]:
    """What a machine has beside its topology, as it reads back from the database."""
    found: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(machine.attributes, enc_hook=core.enc_hook)
    )
    return found


def event(node: Node, at: datetime, code: str, values: dict[str, Any]) -> None:
    """Notes what happened to a node."""
    NodeEvent.objects.create(node=node, at=at, code=code, values=values)
