"""The interface of the two stores, and which one this installation has."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from typing import Protocol

from django.conf import settings

from monitoring.hot.memory import MemoryStore
from monitoring.hot.redisstore import RedisStore
from monitoring.hot.state import Cells, HotNode, Note


class Store(Protocol):
    """The newest state. Every method may be called from any thread and may raise `StoreError`."""

    def begin(self) -> None:
        """A new tenure of collection starts: what this process remembers of its own writes no longer counts."""

    def put(self, states: Iterable[HotNode]) -> None:
        """Keeps these as the newest of their nodes."""

    def get(self, node: int) -> HotNode | None:
        """A node's newest answer."""

    def get_many(self, nodes: Iterable[int]) -> dict[int, HotNode]:
        """The newest answers of these nodes, as far as there are any."""

    def sections(self, nodes: Iterable[int], name: str) -> dict[int, bytes]:
        """One section of these nodes' newest answers, as far as there is one; not that of usage, which `get_many` puts together."""

    def forget(self, nodes: Collection[int]) -> None:
        """Drops these nodes."""

    def put_cells(self, cluster: int, shard: int, block: Cells) -> None:
        """Replaces what a shard of collection knows of a cluster's cells."""

    def cells(self, cluster: int) -> list[Cells]:
        """The blocks of all shards."""

    def watch(self, node: int, seconds: float) -> None:
        """Says that somebody looks at this node: it is wanted fresh at every round for the next `seconds`."""

    def watched(self) -> set[int]:
        """Nodes that somebody looks at."""

    def count(self, name: str, amount: int) -> None:
        """Adds to a counter that all processes share."""

    def counts(self) -> dict[str, int]:
        """The counters."""

    def note(self, name: str, note: Note) -> None:
        """Notes how a part of the service did."""

    def notes(self) -> dict[str, Note]:
        """The newest note of each part."""


@cache
def store() -> Store:
    """This installation's store."""
    url = settings.NUMAWEB_REDIS_LIVE_URL
    return RedisStore(url) if url else MemoryStore()
