"""Which node speaks at an endpoint: new, known, replaced, renamed, returned, or claimed by two exporters.

Claims are settled one after the other in memory and written together: how many nodes arrive at once costs rows, not
queries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from monitoring.models import Cluster, Connection, Endpoint, KubernetesNode, Node, NodeEvent, Topology
from monitoring.services import leases, planes, topologies
from monitoring.services.changes import COLUMNS, Changes
from monitoring.services.leases import Tenure
from monitoring.sources import failures
from numacore import topology as core
from numacore.wire import Exporter, Machine

Code = NodeEvent.Code
OK = Endpoint.State.OK
KNOWN = ("cluster", "name", "topology__numa_nodes", *COLUMNS)
Key = tuple[int, str]
"""Cluster and name of a current node."""


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


class _Verdict(msgspec.Struct, frozen=True):
    """An `Identity` whose node may have no number yet."""

    endpoint: int
    node: Node | None = None
    conflict: str = ""
    fresh: bool = False


def identify(claims: Sequence[Claim], now: datetime, tenure: Tenure | None = None) -> list[Identity]:
    """Finds or makes the node of each claim, in one transaction. Raises LeaseLostError."""
    with transaction.atomic():
        if tenure is not None:
            leases.fence(tenure)
        register = _Register(claims, now)
        verdicts = [register.settle(claim) for claim in claims]
        register.write()
    return [
        Identity(each.endpoint, None, conflict=each.conflict)
        if each.node is None or each.node.slot is None
        else Identity(each.endpoint, each.node.pk, each.node.slot, fresh=each.fresh)
        for each in verdicts
    ]


class _Register:
    """The nodes and endpoints that some claims are about, read in a few queries, decided in memory, then written."""

    def __init__(self, claims: Sequence[Claim], now: datetime) -> None:
        self.now = now
        self._claims = claims
        self._changes = Changes(now)
        self._topologies: dict[str, Topology] = {}
        self._gone: dict[tuple[int, str, str], Node] | None = None
        wanted = sorted({claim.cluster for claim in claims})
        # Whoever identifies waits here for other shards of the same cluster, and then sees what they wrote.
        whole = Connection.listing_nodes().filter(cluster=OuterRef("pk"))
        rows = Cluster.objects.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk")
        clusters = list(rows.annotate(whole=Exists(whole)))
        self._planes = {row.pk: planes.Planes(row, now) for row in clusters}
        self._whole = {row.pk for row in clusters if row.whole}
        """Clusters all of whose nodes the API server told."""
        self._read_nodes(wanted)
        self._read_endpoints()

    # What is there -------------------------------------------------------------------------------------------

    def _read_nodes(self, clusters: Sequence[int]) -> None:
        names = {claim.exporter.node for claim in self._claims}
        uids = {claim.uid for claim in self._claims} - {""}
        known = Node.objects.filter(Q(name__in=names) | Q(uid__in=uids), cluster__in=clusters, gone_at=None)
        self._named: dict[Key, Node] = {}
        self._of_uid: defaultdict[Key, list[Node]] = defaultdict(list)
        told = KubernetesNode.objects.filter(node=OuterRef("pk"))
        self._of_api = set[int]()
        """Nodes that an API server knows: their names say who they are, and only it can replace or remove them."""
        for node in known.select_related("topology").only(*KNOWN).annotate(of_api=Exists(told)):
            self._enter(node)
            if node.of_api:
                self._of_api.add(node.pk)

    def _read_endpoints(self) -> None:
        known = {node.pk: node for node in self._named.values()}
        wanted = Q(pk__in=[claim.endpoint for claim in self._claims]) | Q(node__in=list(known))
        self._endpoints = {each.pk: each for each in Endpoint.objects.filter(wanted)}
        self._voices: defaultdict[Key, dict[int, Endpoint]] = defaultdict(dict)
        self._speaks_for: dict[int, Key] = {}
        for endpoint in self._endpoints.values():
            if endpoint.node_id in known:
                self._speak(endpoint, known[endpoint.node_id])

    def _enter(self, node: Node) -> None:
        self._named[_key(node)] = node
        if node.uid:
            self._of_uid[node.cluster_id, node.uid].append(node)

    # Decisions -----------------------------------------------------------------------------------------------

    def settle(self, claim: Claim) -> _Verdict:
        """Decides one claim."""
        endpoint = self._endpoints.get(claim.endpoint)
        if endpoint is None or claim.cluster not in self._planes:
            return _Verdict(claim.endpoint, conflict="the endpoint was removed")
        try:
            node, fresh = self._find(claim, endpoint)
        except ConflictError as verdict:
            return self._refuse(endpoint, verdict)
        changed = self._facts(node, claim)
        self._accept(endpoint, node)
        return _Verdict(endpoint.pk, node, fresh=fresh or changed)

    def _find(self, claim: Claim, endpoint: Endpoint) -> tuple[Node, bool]:
        """The node of a claim, and whether the lists changed. Raises ConflictError."""
        name, uid = claim.exporter.node, claim.uid
        named = self._named.get((claim.cluster, name))
        twins = self._of_uid.get((claim.cluster, uid), []) if uid else []
        twin = next((node for node in twins if node.name != name), None)
        if named is not None:
            self._unclaimed(named, endpoint, failures.CLAIMED)
        if endpoint.origin == Endpoint.Origin.POD and endpoint.name != name:
            raise ConflictError(failures.ELSEWHERE, f"its pod runs on {endpoint.name} and speaks for {name}")
        if named is not None and named.pk in self._of_api:
            return named, named.topology is None
        if claim.cluster in self._whole:
            raise ConflictError(failures.STRANGER, f"the API server of this cluster has no node {name}")
        if twin is not None:
            self._unclaimed(twin, endpoint, failures.CLONE)
            self._leave(twin, Code.GONE, {"renamed": name})
        if named is not None and uid and not named.uid:
            self._changes.update(named, uid=uid)
            self._of_uid[claim.cluster, uid].append(named)
        elif named is not None and uid and named.uid != uid:
            self._leave(named, Code.REPLACED, {"uid": uid})
            named = None
        return (named, twin is not None) if named is not None else (self._arrive(claim), True)

    def _unclaimed(self, node: Node, endpoint: Endpoint, remedy: str) -> None:
        """Raises if another exporter that answers has the node."""
        for other in self._voices[_key(node)].values():
            if other.pk != endpoint.pk and other.enabled and not other.conflict and other.state == OK:
                cause = f"{other.url} speaks for node {node.name} already"
                if remedy == failures.CLONE:
                    cause = f"{other.url} speaks for node {node.name}, which has the same machine-id already"
                raise ConflictError(remedy, cause)

    def _refuse(self, endpoint: Endpoint, verdict: ConflictError) -> _Verdict:
        text = str(verdict)[:500]
        if endpoint.conflict != text:
            self._silence(endpoint)
            endpoint.conflict, endpoint.remedy = text, verdict.remedy
            endpoint.node, endpoint.last_try = None, self.now
            self._changes.refuse(endpoint)
        return _Verdict(endpoint.pk, conflict=text)

    def _accept(self, endpoint: Endpoint, node: Node) -> None:
        same = endpoint.node_id is not None and endpoint.node_id == node.pk
        if endpoint.state == Endpoint.State.FAILING and same:
            self._changes.note(node, Code.OK, {})
        if endpoint.conflict or not same or endpoint.state != OK:
            endpoint.conflict, endpoint.state = "", OK
            self._silence(endpoint)
            self._speak(endpoint, node)
            self._changes.accept(endpoint, node)

    def _speak(self, endpoint: Endpoint, node: Node) -> None:
        self._speaks_for[endpoint.pk] = _key(node)
        self._voices[_key(node)][endpoint.pk] = endpoint

    def _silence(self, endpoint: Endpoint) -> None:
        if (before := self._speaks_for.pop(endpoint.pk, None)) is not None:
            del self._voices[before][endpoint.pk]

    def _arrive(self, claim: Claim) -> Node:
        """A node that is new, or that was gone and returned."""
        name, topology = claim.exporter.node, self._topology(claim.machine.topology)
        node = self._gone_nodes().get((claim.cluster, name, claim.uid))
        code = Code.FIRST_SEEN if node is None else Code.RETURNED
        if node is None:
            node = Node(cluster_id=claim.cluster, name=name, uid=claim.uid, first_seen=self.now)
            node.boot_id = claim.exporter.boot_id or ""
            node.attributes = topologies.attributes(claim.machine)
            self._changes.add(node)
        slot = self._planes[claim.cluster].place(topology.numa_nodes)
        self._changes.update(node, last_seen=self.now, gone_at=None, slot=slot, **_of_topology(topology))
        self._enter(node)
        self._changes.note(node, code, {"version": claim.exporter.version})
        return node

    def _leave(self, node: Node, code: str, values: dict[str, Any]) -> None:
        self._changes.leave(node)
        del self._named[_key(node)]
        if node.uid:
            self._of_uid[node.cluster_id, node.uid].remove(node)
        self._gone_nodes()[node.cluster_id, node.name, node.uid] = node
        self._changes.note(node, code, values)

    def _facts(self, node: Node, claim: Claim) -> bool:
        """Notes what of a known node changed: boot, topology, attributes. Whether the lists changed."""
        changes: dict[str, Any] = {}
        boot = claim.exporter.boot_id or ""
        if boot and boot != node.boot_id:
            if node.boot_id:
                self._changes.note(node, Code.REBOOTED, {})
            changes["boot_id"] = boot
        if node.topology_id != claim.machine.topology.hash:
            changes |= self._new_topology(node, claim)
        if (beside := topologies.attributes(claim.machine)) != node.attributes:
            changes["attributes"] = beside
        if changes:
            self._changes.update(node, **changes)
        return "topology" in changes

    def _new_topology(self, node: Node, claim: Claim) -> dict[str, Any]:
        topology = self._topology(claim.machine.topology)
        changes = _of_topology(topology)
        if node.topology is None:
            self._changes.note(node, Code.HEARD, {"version": claim.exporter.version})
        else:
            self._changes.note(node, Code.TOPOLOGY, {"before": node.topology_id, "after": topology.hash})
        if node.topology is None or topology.numa_nodes != node.topology.numa_nodes:
            changes["slot"] = self._planes[claim.cluster].place(topology.numa_nodes)
        return changes

    def _topology(self, topology: core.Topology) -> Topology:
        if not self._topologies:
            self._topologies = topologies.store(claim.machine.topology for claim in self._claims)
        return self._topologies[topology.hash]

    def _gone_nodes(self) -> dict[tuple[int, str, str], Node]:
        """Nodes that are gone, of the names that somebody claims."""
        if self._gone is None:
            names = {claim.exporter.node for claim in self._claims}
            gone = Node.objects.filter(name__in=names, cluster__in=list(self._planes), gone_at__isnull=False)
            self._gone = {
                (node.cluster_id, node.name, node.uid): node
                for node in gone.select_related("topology").only(*KNOWN)
            }
        return self._gone

    def write(self) -> None:
        """All decisions."""
        for cluster in self._planes.values():
            cluster.write()
        self._changes.write()


def _key(node: Node) -> Key:
    return (node.cluster_id, node.name)


def _of_topology(row: Topology) -> dict[str, Any]:
    return {"topology": row, "numa_nodes": row.numa_nodes, "cpus": row.cpus, "sockets": row.sockets}


def event(node: int, at: datetime, code: str, values: dict[str, Any]) -> None:
    """Notes what happened to a node."""
    NodeEvent.objects.create(node_id=node, at=at, code=code, values=values)
