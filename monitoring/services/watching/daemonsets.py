"""The DaemonSets that run exporters: on how many nodes they should be, and on how many they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitoring.kube import objects
from monitoring.models import Connection
from monitoring.services.watching.exporters import LABEL, VALUE
from monitoring.services.watching.keeper import Keeper


class DaemonSetKeeper(Keeper[objects.DaemonSet]):
    """Of one cluster; a handful, kept in the row of its connection."""

    def __init__(self, connection: int) -> None:
        self._connection = connection
        self._found: dict[str, dict[str, Any]] = {}
        self._listed: set[str] = set()

    def begin(self) -> None:
        self._listed = set()

    def put(self, found: Sequence[objects.DaemonSet]) -> None:
        self._listed |= {each.metadata.uid for each in found}
        exporters = {each.metadata.uid: _summary(each) for each in found if _runs_exporters(each)}
        if any(self._found.get(uid) != summary for uid, summary in exporters.items()):
            self._found |= exporters
            self._write()

    def drop(self, found: Sequence[objects.DaemonSet]) -> None:
        self._forget({each.metadata.uid for each in found})

    def end(self) -> None:
        self._forget(set(self._found) - self._listed)
        self._write()

    def known(self) -> int:
        return len(self._found)

    def _forget(self, uids: set[str]) -> None:
        if gone := uids & set(self._found):
            for uid in gone:
                del self._found[uid]
            self._write()

    def _write(self) -> None:
        told = sorted(self._found.values(), key=lambda each: (each["namespace"], each["name"]))
        Connection.objects.filter(pk=self._connection).update(daemonsets=told)


def _runs_exporters(told: objects.DaemonSet) -> bool:
    return told.spec.template.metadata.labels.get(LABEL) == VALUE


def _summary(told: objects.DaemonSet) -> dict[str, Any]:
    status = told.status
    return {
        "namespace": told.metadata.namespace,
        "name": told.metadata.name,
        "desired": status.desired_number_scheduled,
        "ready": status.number_ready,
        "misscheduled": status.number_misscheduled,
    }
