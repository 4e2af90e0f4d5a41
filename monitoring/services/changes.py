"""What decisions about nodes and endpoints change, collected in memory and written with as many queries as kinds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from monitoring.models import Container, Endpoint, Node, NodeEvent

BATCH = 500
"""Rows of one statement."""
COLUMNS = (
    *("uid", "topology", "slot", "last_seen", "gone_at", "attributes", "boot_id"),
    *("sockets", "numa_nodes", "cpus"),
)
"""Of nodes, those that decisions change."""


class Changes:
    """Nodes may be new, without a number yet. Used within one transaction; `write` ends it."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._new: dict[int, Node] = {}
        self._changed: dict[int, Node] = {}
        self._left: dict[int, Node] = {}
        self._accepted: list[tuple[Endpoint, Node]] = []
        self._refused: list[Endpoint] = []
        self._events: list[tuple[Node, str, dict[str, Any]]] = []

    def add(self, node: Node) -> None:
        """A node that is new."""
        self._new[id(node)] = node

    def update(self, node: Node, **changes: Any) -> None:
        """Values of COLUMNS."""
        for name, value in changes.items():
            setattr(node, name, value)
        if id(node) not in self._new:
            self._changed[id(node)] = node

    def leave(self, node: Node) -> None:
        """A node that is gone, and its containers with it."""
        self.update(node, gone_at=self.now)
        if id(node) not in self._new:
            self._left[id(node)] = node

    def accept(self, endpoint: Endpoint, node: Node) -> None:
        """An endpoint that answers and speaks for this node."""
        self._accepted.append((endpoint, node))

    def refuse(self, endpoint: Endpoint) -> None:
        """An endpoint whose claim contradicts another one's."""
        self._refused.append(endpoint)

    def note(self, node: Node, code: str, values: dict[str, Any]) -> None:
        """What happened to a node."""
        self._events.append((node, code, values))

    def leaving(self) -> list[int]:
        """Known nodes that will be gone."""
        return [node.pk for node in self._left.values()]

    def write(self) -> None:
        """Everything. Who leaves goes first: its name is free for whoever comes."""
        self._write_left([node.pk for node in self._left.values()])
        Node.objects.bulk_create(self._new.values(), batch_size=BATCH)
        Node.objects.bulk_update(self._changed.values(), COLUMNS, batch_size=BATCH)
        self._write_endpoints()
        rows = (
            NodeEvent(node_id=node.pk, at=self.now, code=code, values=values)
            for node, code, values in self._events
        )
        NodeEvent.objects.bulk_create(rows, batch_size=BATCH)

    def _write_left(self, left: Sequence[int]) -> None:
        if left:
            Node.objects.filter(pk__in=left).update(gone_at=self.now)
            Container.objects.filter(node__in=left).delete()

    def _write_endpoints(self) -> None:
        speaking = [endpoint for endpoint, _ in self._accepted]
        if speaking:
            Endpoint.objects.filter(pk__in=[endpoint.pk for endpoint in speaking]).update(
                conflict="",
                state=Endpoint.State.OK,
                error="",
                remedy="",
                failures=0,
                last_ok=self.now,
                last_try=self.now,
            )
        for endpoint, node in self._accepted:
            endpoint.node = node
        Endpoint.objects.bulk_update(speaking, ["node"], batch_size=BATCH)
        Endpoint.objects.bulk_update(
            self._refused, ["conflict", "remedy", "node", "last_try"], batch_size=BATCH
        )
