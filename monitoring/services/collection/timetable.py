"""When what is due: thousands of endpoints have a rhythm of their own, and few timers serve them all."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

GRAIN = 0.01
"""Seconds by which something may be late."""


class Timetable:
    """Calls at a time of the event loop; what is due within the same `GRAIN` shares a timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[int, list[Callable[[], None]]] = {}

    def at(self, when: float, work: Callable[[], None]) -> None:
        """Calls `work` at `when` or a little later. This cannot be taken back."""
        grain = math.ceil(when / GRAIN)
        together = self._due.get(grain)
        if together is None:
            together = self._due[grain] = []
            self._loop.call_at(grain * GRAIN, self._ring, grain)
        together.append(work)

    def _ring(self, grain: int) -> None:
        for work in self._due.pop(grain):
            try:
                work()
            except Exception as error:  # noqa: BLE001 - one must not keep the others from their turn
                self._loop.call_exception_handler({"message": "something due failed", "exception": error})
