"""The compact table of all pods of a cluster, and what of it is news: refused pods, and pods that are exporters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitoring.kube import objects
from monitoring.models import Pod
from monitoring.services import upsert
from monitoring.services.changes import BATCH
from monitoring.services.watching import rows
from monitoring.services.watching.exporters import Exporters
from monitoring.services.watching.failures import Failures, Refused, refused
from monitoring.services.watching.keeper import Keeper

REMOVED_AT_ONCE = 5_000


class PodKeeper(Keeper[objects.Pod]):
    """The pods of one cluster. Of each it remembers a hash of its row, so that an unchanged one costs no write."""

    def __init__(self, cluster: int, failures: Failures, exporters: Exporters) -> None:
        self._cluster = cluster
        self._failures, self._exporters = failures, exporters
        self._written: dict[str, int | None] = {}
        """Hash of the row by uid; None = a row of an earlier watcher."""
        self._refused: set[str] = set()
        self._listed: set[str] = set()
        self._read = False

    def begin(self) -> None:
        self._listed = set()
        self._exporters.begin()

    def put(self, found: Sequence[objects.Pod]) -> None:
        self._remember()
        self._listed |= {each.metadata.uid for each in found}
        self._exporters.put(found)
        changed: list[rows.Columns] = []
        news: list[Refused] = []
        for each in found:
            uid, columns = each.metadata.uid, rows.pod(each)
            digest = hash(repr(columns))
            if self._written.get(uid) == digest:
                continue
            self._written[uid] = digest
            changed.append({"uid": uid, **columns})
            if refused(columns) and uid not in self._refused:
                self._refused.add(uid)
                news.append(Refused(uid, columns, rows.wish(each.metadata)))
        upsert.pods(self._cluster, changed)
        self._failures.note(news, self.now)
        self._exporters.write()

    def drop(self, found: Sequence[objects.Pod]) -> None:
        self._remember()
        self._exporters.drop(found)
        self._remove([each.metadata.uid for each in found])
        self._exporters.write()

    def end(self) -> None:
        self._remember()
        self._remove([uid for uid in self._written if uid not in self._listed])
        self._exporters.end()

    def known(self) -> int:
        return len(self._written)

    def _remember(self) -> None:
        """What an earlier watcher wrote: a pod that it saw refused is not counted again."""
        if self._read:
            return
        self._read = True
        before = Pod.objects.filter(cluster=self._cluster).values_list("uid", "phase", "reason")
        for uid, phase, reason in before.iterator(chunk_size=REMOVED_AT_ONCE):
            self._written[uid] = None
            if refused({"phase": phase, "reason": reason}):
                self._refused.add(uid)

    def _remove(self, uids: Sequence[str]) -> None:
        for start in range(0, len(uids), BATCH):
            some: Any = uids[start : start + BATCH]
            Pod.objects.filter(cluster=self._cluster, uid__in=some).delete()
        for uid in uids:
            self._written.pop(uid, None)
            self._refused.discard(uid)
