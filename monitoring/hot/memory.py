"""The newest state in this process's memory: for an installation that is one process."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable

from monitoring.hot.state import Cells, HotNode, Note


class MemoryStore:
    """Dictionaries under a lock: the worker's threads write while the web's threads read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[int, HotNode] = {}
        self._cells: dict[int, dict[int, Cells]] = {}
        self._watched: dict[int, float] = {}
        self._counts: Counter[str] = Counter()
        self._notes: dict[str, Note] = {}

    def begin(self) -> None:
        """Nothing to do: this memory is the only one."""

    def put(self, states: Iterable[HotNode]) -> None:
        with self._lock:
            self._nodes.update((state.node, state) for state in states)

    def get(self, node: int) -> HotNode | None:
        with self._lock:
            return self._nodes.get(node)

    def get_many(self, nodes: Iterable[int]) -> dict[int, HotNode]:
        with self._lock:
            return {node: self._nodes[node] for node in nodes if node in self._nodes}

    def sections(self, nodes: Iterable[int], name: str) -> dict[int, bytes]:
        with self._lock:
            found = ((node, self._nodes[node].sections.get(name)) for node in nodes if node in self._nodes)
            return {node: data for node, data in found if data is not None}

    def forget(self, nodes: Collection[int]) -> None:
        with self._lock:
            for node in nodes:
                self._nodes.pop(node, None)
                self._watched.pop(node, None)

    def put_cells(self, cluster: int, shard: int, block: Cells) -> None:
        with self._lock:
            self._cells.setdefault(cluster, {})[shard] = block

    def cells(self, cluster: int) -> list[Cells]:
        with self._lock:
            return list(self._cells.get(cluster, {}).values())

    def watch(self, node: int, seconds: float) -> None:
        with self._lock:
            self._watched[node] = time.monotonic() + seconds

    def watched(self) -> set[int]:
        now = time.monotonic()
        with self._lock:
            self._watched = {node: until for node, until in self._watched.items() if until > now}
            return set(self._watched)

    def count(self, name: str, amount: int) -> None:
        with self._lock:
            self._counts[name] += amount

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)

    def note(self, name: str, note: Note) -> None:
        with self._lock:
            self._notes[name] = note

    def notes(self) -> dict[str, Note]:
        with self._lock:
            return dict(self._notes)
