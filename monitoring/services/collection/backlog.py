"""Samples that the database did not take yet: those of the last minute are kept, older ones are dropped and counted."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from monitoring.history import NodeSample

SECONDS = 60

Entry = tuple[int, Sequence[NodeSample]]


class Backlog:
    """Outlives a shift: the next one of the same process writes what the one before could not."""

    def __init__(self, step: int) -> None:
        self._entries: deque[Entry] = deque()
        self._most = max(1, SECONDS // step)
        self._lock = threading.Lock()

    def add(self, at: int, samples: Sequence[NodeSample]) -> int:
        """Keeps the samples of one interval; how many older samples had to go."""
        dropped = 0
        with self._lock:
            self._entries.append((at, samples))
            while len(self._entries) > self._most:
                dropped += len(self._entries.popleft()[1])
        return dropped

    def drain(self, write: Callable[[int, Sequence[NodeSample]], None]) -> int:
        """Writes, oldest first, as long as `write` does not raise; how many samples were written."""
        written = 0
        while True:
            with self._lock:
                if not self._entries:
                    return written
                entry = self._entries[0]
            write(*entry)
            written += len(entry[1])
            with self._lock:
                if self._entries and self._entries[0] is entry:
                    self._entries.popleft()
