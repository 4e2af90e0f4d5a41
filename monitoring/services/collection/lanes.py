"""Who may ask now. Slow and failing exporters must not take the places of the others.

Three lanes: an exporter that is expected to answer gets a place in the fast one, and loses it to the next after a
moment without an answer, while its question goes on. One that failed before waits for the slow lane. One that is asked
for the first time tells everything, which takes time to read: a few of them at a time, or they would make each other
and all others late.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, Protocol

PATIENCE = 0.25
"""Seconds after which a question no longer takes a place of the fast lane."""


FIRST_PLACES = 4
Lane = Literal["fast", "slow", "first"]


class Asking(Protocol):
    """What lanes let go."""

    @property
    def lane(self) -> Lane:
        """Which one it belongs into now."""

    def go(self) -> None:
        """Its turn has come."""

    def broke(self, error: Exception) -> None:
        """`go` raised this. It has no place any more."""


class Lanes:
    """Used in the event loop. `enter` one that is due, `leave` when its question ended, `sweep` now and then."""

    def __init__(self, places: int) -> None:
        self._places: dict[Lane, int] = {"fast": places, "slow": places, "first": FIRST_PLACES}
        self._waiting: dict[Lane, deque[Asking]] = {lane: deque() for lane in self._places}
        self._asked: dict[Asking, tuple[Lane, float]] = {}
        """Who has a place: in which lane, since when."""

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return sum(map(len, self._waiting.values()))

    def enter(self, one: Asking, now: float) -> None:
        """Lets it go now or when a place becomes free."""
        if self._places[one.lane] > 0:
            self._let_go(one, one.lane, now)
        else:
            self._waiting[one.lane].append(one)

    def leave(self, one: Asking, now: float) -> None:
        """Its question has ended."""
        place = self._asked.pop(one, None)
        if place is not None:
            self._free(place[0], now)

    def drop(self, one: Asking, now: float) -> None:
        """It is not asked any more at all."""
        for line in self._waiting.values():
            if one in line:
                line.remove(one)
        self.leave(one, now)

    def sweep(self, now: float) -> None:
        """Takes the places of those that let others of the fast lane wait."""
        late = [
            one for one, (lane, since) in self._asked.items() if lane == "fast" and now - since > PATIENCE
        ]
        for one in late:
            self.leave(one, now)

    def _let_go(self, one: Asking, lane: Lane, now: float) -> None:
        """What goes wrong with it is its own affair: whoever made room for it goes on."""
        self._places[lane] -= 1
        self._asked[one] = (lane, now)
        try:
            one.go()
        except Exception as error:  # noqa: BLE001 - it is told, and nobody else
            if self._asked.pop(one, None) is not None:
                self._places[lane] += 1
            one.broke(error)

    def _free(self, lane: Lane, now: float) -> None:
        self._places[lane] += 1
        while self._places[lane] > 0 and self._waiting[lane]:
            self._let_go(self._waiting[lane].popleft(), lane, now)
