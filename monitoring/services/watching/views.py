"""What others than our exporter say of a node's NUMA nodes: Volcano's Numatopology and NodeResourceTopology.

Objects are named after their nodes. The values are facts in our names (`numacore.sources`), so that they can be laid beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from monitoring.kube.objects import KubeObject
from monitoring.models import Node, SourceView
from monitoring.services.changes import BATCH
from monitoring.services.watching.keeper import Keeper

T = TypeVar("T", bound=KubeObject)


class ViewKeeper(Keeper[T], Generic[T]):
    """One source's view of all nodes of a cluster."""

    def __init__(self, cluster: int, source: str, version: str, read: Callable[[T], dict[str, Any]]) -> None:
        self._cluster, self._source, self._version, self._read = cluster, source, version, read
        self._told: dict[str, dict[str, Any]] = {}
        self._waiting: dict[str, dict[str, Any]] = {}
        """Of nodes that are not known yet; tried again with what comes next, and when they arrive."""
        self._listed: set[str] = set()

    def begin(self) -> None:
        self._listed = set()

    def put(self, found: Sequence[T]) -> None:
        self._listed |= {each.metadata.name for each in found}
        told = self._waiting | {each.metadata.name: self._read(each) for each in found}
        self._write({name: values for name, values in told.items() if self._told.get(name) != values})

    def arrived(self, names: Collection[str], now: datetime) -> None:
        """These nodes are new, or others than before: what was told under their names is of them now."""
        self.now = now
        told = self._told | self._waiting
        self._write({name: told[name] for name in names if name in told})

    def _write(self, changed: dict[str, dict[str, Any]]) -> None:
        if not changed:
            return
        nodes = Node.objects.filter(cluster=self._cluster, gone_at=None, name__in=list(changed))
        known = dict(nodes.values_list("name", "pk"))
        SourceView.objects.bulk_create(
            [self._view(known[name], values) for name, values in changed.items() if name in known],
            update_conflicts=True,
            unique_fields=["node", "source"],
            update_fields=["version", "changed", "values"],
            batch_size=BATCH,
        )
        for name, values in changed.items():
            kept, other = (self._told, self._waiting) if name in known else (self._waiting, self._told)
            kept[name] = values
            other.pop(name, None)

    def _view(self, node: int, values: dict[str, Any]) -> SourceView:
        return SourceView(
            node_id=node, source=self._source, version=self._version, changed=self.now, values=values
        )

    def drop(self, found: Sequence[T]) -> None:
        self._forget([each.metadata.name for each in found])

    def end(self) -> None:
        views = SourceView.objects.filter(
            node__cluster=self._cluster, node__gone_at=None, source=self._source
        )
        stored = set(views.values_list("node__name", flat=True))
        self._forget(
            [name for name in stored | set(self._told) | set(self._waiting) if name not in self._listed]
        )

    def known(self) -> int:
        return len(self._told)

    def _forget(self, names: Sequence[str]) -> None:
        for start in range(0, len(names), BATCH):
            some = names[start : start + BATCH]
            SourceView.objects.filter(
                node__cluster=self._cluster, node__name__in=some, source=self._source
            ).delete()
        for name in names:
            self._told.pop(name, None)
            self._waiting.pop(name, None)
