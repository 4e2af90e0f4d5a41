"""The whole list of a cluster's nodes as bytes, made at most once a round of collection, however many ask for it."""

from __future__ import annotations

import threading
import time
from functools import lru_cache

import msgspec
from django.conf import settings
from django.utils import timezone

from monitoring import selectors
from monitoring.api import base, rows
from monitoring.api.explicit import encode
from monitoring.models import Cluster

CLUSTERS = 64
"""Whose lists this process keeps."""


class Held(msgspec.Struct, frozen=True):
    """The answer and its ETag, and when they were made by the monotonic clock."""

    body: bytes
    tag: str
    made: float


class Keeper:
    """Keeps the answer for one cluster. One caller makes a new one; meanwhile the others get what there is."""

    def __init__(self) -> None:
        self.held: Held | None = None
        self.making = threading.Lock()

    def get(self, cluster: Cluster) -> Held:
        held = self.held
        if held is not None and time.monotonic() - held.made < settings.NUMAWEB_COLLECT_PERIOD:
            return held
        if not self.making.acquire(blocking=held is None):
            assert held is not None
            return held
        try:
            newest = self.held
            if newest is None or newest is held:
                newest = self.held = make(cluster)
            return newest
        finally:
            self.making.release()


@lru_cache(CLUSTERS)
def keeper(cluster: int) -> Keeper:  # noqa: ARG001 - the key
    return Keeper()


def of(cluster: Cluster) -> Held:
    return keeper(cluster.pk).get(cluster)


def make(cluster: Cluster) -> Held:
    made, now = time.monotonic(), timezone.now()
    found = list(selectors.nodes(cluster).order_by("name").values_list(*rows.NODES.expressions()))
    seen = rows.moment(now, [cluster.pk])
    results = rows.NODES.rows(found, seen)
    tag = base.tag_of(encode([found, seen.heard, [row["state"] for row in results]]))
    head = encode({"cluster": cluster.slug, "taken": now})
    return Held(b"".join((head[:-1], b',"results":', encode(results), b"}")), tag, made)
