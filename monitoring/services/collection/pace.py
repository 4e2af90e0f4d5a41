"""How much of the time reports may take: what the rounds leave.

Rounds are what people watch, and a report is late by seconds without anybody noticing. Both need the same processor, so
reports step back as soon as the event loop is late.
"""

from __future__ import annotations

SHARE, FIRST_SHARE, LEAST_SHARE = 0.3, 0.6, 0.1
"""Of the time, at most, that goes into reports; while nodes wait for their first one; and when rounds are late."""
BEARABLE = 0.1
"""Seconds by which the event loop may be late before reports have to step back as far as they go."""
MEMORY = 0.9
"""Of a delay that counts at the next look."""


class Pace:
    """`late` says how late the event loop was at a look, `pause` how long to wait after some reports."""

    def __init__(self) -> None:
        self._late = 0.0

    def late(self, seconds: float) -> None:
        """The delay of something that was due."""
        self._late = max(seconds, self._late * MEMORY)

    def share(self, first: bool) -> float:
        """Of the time that may go into reports now."""
        most = FIRST_SHARE if first else SHARE
        return max(LEAST_SHARE, most * max(0.0, 1.0 - self._late / BEARABLE))

    def pause(self, spent: float, first: bool) -> float:
        """Seconds until the next reports, after some that took `spent` seconds."""
        share = self.share(first)
        return spent * (1 - share) / share
