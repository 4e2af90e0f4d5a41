"""Which node speaks at an endpoint: new, known, replaced, renamed, returned, or claimed by two exporters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Q

from monitoring.models import Cluster, Endpoint, Node, NodeEvent, Topology
from monitoring.services import leases
from monitoring.services.leases import Tenure
from monitoring.sources import failures
from numacore import topology as core
from numacore.wire import Exporter, Machine

Code = NodeEvent.Code
OK = Endpoint.State.OK
REUSE_AFTER = timedelta(hours=1)
"""A gone node's place in the planes is given to another one after this."""


class Claim(msgspec.Struct, frozen=True):
    """What an exporter says it is."""

    endpoint: int
    cluster: int
    exporter: Exporter
    machine: Machine

    @property
    def uid(self) -> str:
        return self.exporter.machine_id or ""


class Identity(msgspec.Struct, frozen=True):
    """What the endpoint is. `node` None = it contradicts another exporter (`conflict`)."""

    endpoint: int
    node: int | None
    slot: int = 0
    conflict: str = ""
    fresh: bool = False
    """The lists of nodes changed."""


class ConflictError(Exception):
    """Another exporter speaks for this node already; `remedy` is a code of what to do."""

    def __init__(self, remedy: str, text: str) -> None:
        super().__init__(text)
        self.remedy = remedy


def identify(claims: Sequence[Claim], now: datetime, tenure: Tenure | None = None) -> list[Identity]:
    """Finds or makes the node of each claim, in one transaction. Raises LeaseLostError."""
    with transaction.atomic():
        if tenure is not None:
            leases.fence(tenure)
        register = _Register(claims, now)
        found = [register.settle(claim) for claim in claims]
        NodeEvent.objects.bulk_create(register.events)
    return found


class _Register:
    """The nodes and endpoints that some claims are about, read in a few queries and kept up to date in between."""

    def __init__(self, claims: Sequence[Claim], now: datetime) -> None:
        self.now = now
        self.events: list[NodeEvent] = []
        self._topologies: dict[str, Topology] = {}
        clusters = {claim.cluster for claim in claims}
        names = {claim.exporter.node for claim in claims}
        uids = {claim.uid for claim in claims} - {""}
        nodes = Node.objects.select_related("topology").filter(cluster__in=clusters, gone_at=None)
        self._nodes = {node.pk: node for node in nodes.filter(Q(name__in=names) | Q(uid__in=uids))}
        wanted = Q(pk__in=[claim.endpoint for claim in claims]) | Q(node__in=list(self._nodes))
        self._endpoints = {each.pk: each for each in Endpoint.objects.filter(wanted)}

    def settle(self, claim: Claim) -> Identity:
        """Decides one claim."""
        endpoint = self._endpoints.get(claim.endpoint)
        if endpoint is None:
            return Identity(claim.endpoint, None, conflict="the endpoint was removed")
        try:
            node, fresh = self._find(claim, endpoint)
        except ConflictError as verdict:
            return self._refuse(endpoint, verdict)
        changed = self._facts(node, claim)
        self._accept(endpoint, node)
        return Identity(endpoint.pk, node.pk, node.slot, fresh=fresh or changed)

    def _find(self, claim: Claim, endpoint: Endpoint) -> tuple[Node, bool]:
        """The node of a claim, and whether the lists changed. Raises ConflictError."""
        name, uid = claim.exporter.node, claim.uid
        mine = [node for node in self._nodes.values() if node.cluster_id == claim.cluster]
        named = next((node for node in mine if node.name == name), None)
        twin = next((node for node in mine if uid and node.uid == uid and node.name != name), None)
        if named is not None:
            self._unclaimed(named, endpoint, f"node {name}", failures.CLAIMED)
        if twin is not None:
            self._unclaimed(
                twin, endpoint, f"node {twin.name}, which has the same machine-id", failures.CLONE
            )
            self._leave(twin, Code.GONE, {"renamed": name})
        if named is not None and uid and not named.uid:
            self._update(named, uid=uid)
        elif named is not None and uid and named.uid != uid:
            self._leave(named, Code.REPLACED, {"uid": uid})
            named = None
        return (named, twin is not None) if named is not None else (self._arrive(claim), True)

    def _unclaimed(self, node: Node, endpoint: Endpoint, what: str, remedy: str) -> None:
        """Raises if another exporter that answers has the node."""
        for other in self._endpoints.values():
            speaks = other.enabled and not other.conflict and other.state == OK
            if other.node_id == node.pk and other.pk != endpoint.pk and speaks:
                raise ConflictError(remedy, f"{other.url} speaks for {what} already")

    def _refuse(self, endpoint: Endpoint, verdict: ConflictError) -> Identity:
        text = str(verdict)[:500]
        if endpoint.conflict != text:
            self._write(endpoint, conflict=text, remedy=verdict.remedy, node_id=None, last_try=self.now)
        return Identity(endpoint.pk, None, conflict=text)

    def _accept(self, endpoint: Endpoint, node: Node) -> None:
        if endpoint.state == Endpoint.State.FAILING and endpoint.node_id == node.pk:
            self._note(node, Code.OK, {})
        if endpoint.conflict or endpoint.node_id != node.pk or endpoint.state != OK:
            self._write(
                endpoint,
                node_id=node.pk,
                conflict="",
                state=OK,
                error="",
                remedy="",
                failures=0,
                last_ok=self.now,
                last_try=self.now,
            )

    def _arrive(self, claim: Claim) -> Node:
        """A node that is new, or that was gone and returned."""
        name, topology = claim.exporter.node, self._topology(claim.machine.topology)
        node = Node.objects.filter(cluster=claim.cluster, name=name, uid=claim.uid).first()
        code = Code.FIRST_SEEN if node is None else Code.RETURNED
        if node is None:
            node = Node(cluster_id=claim.cluster, name=name, uid=claim.uid, first_seen=self.now)
            node.boot_id = claim.exporter.boot_id or ""
            node.attributes = attributes(claim.machine)
        node.topology, node.last_seen, node.gone_at = topology, self.now, None
        node.slot = place(claim.cluster, topology.numa_nodes, self.now)
        node.numa_nodes, node.cpus, node.sockets = topology.numa_nodes, topology.cpus, topology.sockets
        node.save()
        self._nodes[node.pk] = node
        self._note(node, code, {"version": claim.exporter.version})
        return node

    def _leave(self, node: Node, code: str, values: dict[str, Any]) -> None:
        self._update(node, gone_at=self.now)
        node.container_rows.all().delete()
        del self._nodes[node.pk]
        self._note(node, code, values)

    def _facts(self, node: Node, claim: Claim) -> bool:
        """Notes what of a known node changed: boot, topology, attributes. Whether the lists changed."""
        changes: dict[str, Any] = {}
        boot = claim.exporter.boot_id or ""
        if boot and boot != node.boot_id:
            if node.boot_id:
                self._note(node, Code.REBOOTED, {})
            changes["boot_id"] = boot
        if node.topology_id != claim.machine.topology.hash:
            changes |= self._new_topology(node, claim)
        if (beside := attributes(claim.machine)) != node.attributes:
            changes["attributes"] = beside
        if changes:
            self._update(node, **changes)
        return "topology" in changes

    def _new_topology(self, node: Node, claim: Claim) -> dict[str, Any]:
        topology = self._topology(claim.machine.topology)
        self._note(node, Code.TOPOLOGY, {"before": node.topology_id, "after": topology.hash})
        changes: dict[str, Any] = {
            "topology": topology,
            "numa_nodes": topology.numa_nodes,
            "cpus": topology.cpus,
            "sockets": topology.sockets,
        }
        if topology.numa_nodes != node.topology.numa_nodes:
            changes["slot"] = place(claim.cluster, topology.numa_nodes, self.now)
        return changes

    def _topology(self, topology: core.Topology) -> Topology:
        found = self._topologies.get(topology.hash)
        if found is None:
            found = self._topologies[topology.hash] = store_topology(topology)
        return found

    def _update(self, node: Node, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(node, name, value)
        Node.objects.filter(pk=node.pk).update(**changes)

    def _write(self, endpoint: Endpoint, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(endpoint, name, value)
        Endpoint.objects.filter(pk=endpoint.pk).update(**changes)

    def _note(self, node: Node, code: str, values: dict[str, Any]) -> None:
        self.events.append(NodeEvent(node_id=node.pk, at=self.now, code=code, values=values))


def place(cluster: int, width: int, now: datetime) -> int:
    """So many cells in the cluster's planes: those of a node of the same width that is long gone, or new ones."""
    row = Cluster.objects.select_for_update().get(pk=cluster)
    gone = Node.objects.filter(cluster=cluster, gone_at__lt=now - REUSE_AFTER, topology__numa_nodes=width)
    if gone.exists():
        taken = Node.objects.filter(cluster=cluster, gone_at=None).values("slot")
        free = gone.exclude(slot__in=taken).order_by("slot").values_list("slot", flat=True).first()
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


def event(node: int, at: datetime, code: str, values: dict[str, Any]) -> None:
    """Notes what happened to a node."""
    NodeEvent.objects.create(node_id=node, at=at, code=code, values=values)
