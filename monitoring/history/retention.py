"""What is too old goes, a bounded number of rows at a time, so that nobody waits for a long delete."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import models

from monitoring.models import HistoryChunk, HistoryJournal

BATCH = 2000
BATCHES = 50
"""Of one run; what is left goes with the next one."""


def forget(now: int, keep: Mapping[int, int]) -> int:
    """Removes chunks older than `keep` says (seconds by resolution), and journal rows of the same age."""
    gone = sum(
        in_batches(HistoryChunk.objects.filter(resolution=step, start__lt=now - age))
        for step, age in keep.items()
    )
    return gone + in_batches(HistoryJournal.objects.filter(at__lt=now - max(keep.values())))


def in_batches(rows: models.QuerySet[models.Model]) -> int:
    """Deletes rows, `BATCH` in one statement and at most `BATCHES` times; how many went."""
    gone = 0
    for _ in range(BATCHES):
        keys = list(rows.order_by().values_list("pk", flat=True)[:BATCH])
        if keys:
            gone += rows.model._base_manager.filter(pk__in=keys).delete()[0]
        if len(keys) < BATCH:
            break
    return gone
