"""The journal: what comes from the collectors, in the order of time."""

from __future__ import annotations

from collections.abc import Sequence

from monitoring.history.samples import NodeSample, pack_many
from monitoring.models import HistoryJournal

BUCKET = 64
"""Nodes of one row: few rows to write for many nodes, little to read for one node."""


def bucket(node: int) -> int:
    """Where a node's samples are."""
    return node // BUCKET


def write(shard: int, at: int, samples: Sequence[NodeSample]) -> None:
    """Keeps the samples of one interval. Doing it again replaces what a shard wrote for the same interval."""
    groups: dict[int, list[NodeSample]] = {}
    for sample in samples:
        groups.setdefault(bucket(sample.node), []).append(sample)
    rows = [
        HistoryJournal(bucket=number, at=at, shard=shard, data=pack_many(group))
        for number, group in groups.items()
    ]
    HistoryJournal.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["bucket", "at", "shard"], update_fields=["data"]
    )
