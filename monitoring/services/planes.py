"""Where the nodes of a cluster have their cells in its live planes."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

from monitoring.models import Cluster, Node

REUSE_AFTER = timedelta(hours=1)
"""A gone node's place is given to another one after this: open pages and stores have forgotten it by then."""


class Planes:
    """The places of one cluster, within a transaction that holds the cluster's row. `write` keeps what was given."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self._cluster, self._now = cluster, now
        self._cells = cluster.cells
        self._free: dict[int, list[int]] | None = None

    def place(self, width: int) -> int:
        """So many cells: those of a node of the same width that is long gone, or new ones. Their first one's index."""
        if self._free is None:
            self._free = self._abandoned()
        if self._free.get(width):
            return self._free[width].pop()
        self._cells += width
        return self._cells - width

    def write(self) -> None:
        """Keeps the length of the planes."""
        if self._cells != self._cluster.cells:
            Cluster.objects.filter(pk=self._cluster.pk).update(cells=self._cells)

    def _abandoned(self) -> dict[int, list[int]]:
        """Places by their width, those at the front last."""
        nodes = Node.objects.filter(cluster=self._cluster)
        gone = nodes.filter(gone_at__lt=self._now - REUSE_AFTER)
        taken = nodes.exclude(gone_at__lt=self._now - REUSE_AFTER).values("slot")
        placed = gone.filter(slot__isnull=False).exclude(slot__in=taken.filter(slot__isnull=False))
        found: defaultdict[int, list[int]] = defaultdict(list)
        for slot, width in placed.order_by("-slot").values_list("slot", "topology__numa_nodes").distinct():
            assert slot is not None
            found[width].append(slot)
        return dict(found)
