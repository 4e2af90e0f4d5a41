"""Who may ask now. Slow and failing exporters must not take the places of the others.

Two lanes: an exporter that is expected to answer gets a place in the fast one, and loses it to the next after a moment
without an answer, while its question goes on. One that failed before waits for the slow lane.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

PATIENCE = 0.25
"""Seconds after which a question no longer takes a place of the fast lane."""


class Asking(Protocol):
    """What lanes let go."""

    failing: bool

    def go(self) -> None:
        """Its turn has come."""


class Lanes:
    """Used in the event loop. `enter` one that is due, `leave` when its question ended, `sweep` now and then."""

    def __init__(self, places: int) -> None:
        self._places = {False: places, True: places}
        self._waiting: dict[bool, deque[Asking]] = {False: deque(), True: deque()}
        self._fast: dict[Asking, float] = {}
        self._slow: set[Asking] = set()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting[False]) + len(self._waiting[True])

    def enter(self, one: Asking, now: float) -> None:
        """Lets it go now or when a place becomes free."""
        if self._places[one.failing] > 0:
            self._let_go(one, one.failing, now)
        else:
            self._waiting[one.failing].append(one)

    def leave(self, one: Asking, now: float) -> None:
        """Its question has ended."""
        if self._fast.pop(one, None) is not None:
            self._free(False, now)
        elif one in self._slow:
            self._slow.remove(one)
            self._free(True, now)

    def drop(self, one: Asking, now: float) -> None:
        """It is not asked any more at all."""
        for line in self._waiting.values():
            if one in line:
                line.remove(one)
        self.leave(one, now)

    def sweep(self, now: float) -> None:
        """Takes the places of those that let others wait."""
        late = [one for one, since in self._fast.items() if now - since > PATIENCE]
        for one in late:
            del self._fast[one]
            self._free(False, now)

    def _let_go(self, one: Asking, slow: bool, now: float) -> None:
        self._places[slow] -= 1
        if slow:
            self._slow.add(one)
        else:
            self._fast[one] = now
        one.go()

    def _free(self, slow: bool, now: float) -> None:
        self._places[slow] += 1
        while self._places[slow] > 0 and self._waiting[slow]:
            self._let_go(self._waiting[slow].popleft(), slow, now)
