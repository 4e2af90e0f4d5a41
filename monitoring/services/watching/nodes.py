"""Nodes as the API server has them. A Node object that was made anew under the same name is another node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial

from django.db import transaction

from monitoring.kube import objects
from monitoring.models import Endpoint, KubernetesNode, Node, NodeEvent
from monitoring.services import retiring, upsert
from monitoring.services.changes import Changes
from monitoring.services.watching import rows
from monitoring.services.watching.keeper import Keeper
from monitoring.services.watching.rows import Columns

Code = NodeEvent.Code


def _nobody(_names: Collection[str], _now: datetime) -> None:
    """Nobody waits for nodes."""


class NodeKeeper(Keeper[objects.Node]):
    """The nodes of one cluster. `_written` spares rows that did not change, which is what most heartbeats bring."""

    def __init__(self, cluster: int, arrived: Callable[[Collection[str], datetime], None] = _nobody) -> None:
        """`arrived` is told the names of nodes that are new, or others than before, once they have rows."""
        self._cluster, self._arrived = cluster, arrived
        self._written: dict[str, tuple[str, Columns]] = {}
        self._listed: set[str] = set()

    def begin(self) -> None:
        self._listed = set()

    def put(self, found: Sequence[objects.Node]) -> None:
        self._listed |= {each.metadata.name for each in found}
        told = {each.metadata.name: (each.metadata.uid, rows.node(each)) for each in found}
        changed = {name: each for name, each in told.items() if self._written.get(name) != each}
        if changed:
            self._write(changed, self.now)
            self._written |= changed

    def drop(self, found: Sequence[objects.Node]) -> None:
        uids = [each.metadata.uid for each in found]
        self._leave(Node.objects.filter(cluster=self._cluster, gone_at=None, uid__in=uids), self.now)

    def end(self) -> None:
        """Also nodes leave that only an exporter told of: the API server knows all that there are."""
        current = Node.objects.filter(cluster=self._cluster, gone_at=None)
        others = [node for node in current if node.name not in self._listed]
        self._leave(others, self.now)

    def known(self) -> int:
        return len(self._written)

    # ----------------------------------------------------------------------------------------------------------

    def _leave(self, nodes: Iterable[Node], now: datetime) -> None:
        changes = Changes(now)
        left = list(nodes)
        for node in left:
            changes.leave(node)
            changes.note(node, Code.GONE, {})
            self._written.pop(node.name, None)
        self._silence([node.pk for node in left])
        changes.write()

    def _silence(self, left: Sequence[int]) -> None:
        """Whoever spoke for these nodes is asked anew who it is, and what they told last is nobody's any more."""
        if left:
            transaction.on_commit(partial(retiring.forget_states, left))
            KubernetesNode.objects.filter(node__in=left).delete()
            Endpoint.objects.filter(node__in=left).update(node=None)

    def _write(self, told: dict[str, tuple[str, Columns]], now: datetime) -> None:
        changes = Changes(now)
        register = _Register(self._cluster, told, changes)
        nodes = register.settle()
        self._silence(changes.leaving())
        changes.write()
        upsert.kubernetes_nodes(now, [{"node_id": node.pk, **told[name][1]} for name, node in nodes.items()])
        self._arrived(register.arrived, now)


class _Register:
    """The rows of the names that were told, and which node each name is."""

    def __init__(self, cluster: int, told: dict[str, tuple[str, Columns]], changes: Changes) -> None:
        self._cluster, self._told, self._changes = cluster, told, changes
        self.arrived: list[str] = []
        named = Node.objects.filter(cluster=cluster, name__in=list(told))
        current = named.filter(gone_at=None).select_related("kubernetes")
        self._current = {node.name: node for node in current}
        self._gone = {(node.name, node.uid): node for node in named.filter(gone_at__isnull=False)}

    def settle(self) -> dict[str, Node]:
        """The node of each name; those that are new are told to `changes` and have a number after they were written."""
        return {name: self._one(name, uid) for name, (uid, _columns) in self._told.items()}

    def _one(self, name: str, uid: str) -> Node:
        node = self._current.get(name)
        before = self._gone.get((name, uid))
        if node is not None and node.uid == uid:
            return node
        if node is not None and before is None and not _of_api(node):
            self._changes.update(node, uid=uid)  # an exporter told of it first, by the machine-id
            return node
        if node is not None:
            self._changes.leave(node)
            self._changes.note(node, Code.REPLACED, {"uid": uid})
        return self._arrive(name, uid, before)

    def _arrive(self, name: str, uid: str, before: Node | None) -> Node:
        now = self._changes.now
        self.arrived.append(name)
        if before is not None:
            # Its place in the planes is perhaps another one's by now; its exporter gives it a new one.
            self._changes.update(before, gone_at=None, slot=None, topology=None)
            self._changes.note(before, Code.RETURNED, {})
            return before
        node = Node(cluster_id=self._cluster, name=name, uid=uid, first_seen=now)
        self._changes.add(node)
        self._changes.note(node, Code.FIRST_SEEN, {})
        return node


def _of_api(node: Node) -> bool:
    return hasattr(node, "kubernetes")
