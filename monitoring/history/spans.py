"""The three resolutions, and how long a chunk of each is. All spans begin at multiples of their length since 1970."""

from __future__ import annotations

import msgspec
from django.conf import settings


class Span(msgspec.Struct, frozen=True):
    """`step`: seconds between two samples; `length`: seconds of one chunk."""

    step: int
    length: int

    @property
    def points(self) -> int:
        return self.length // self.step

    def start(self, at: int) -> int:
        """Where the chunk begins that a moment falls into."""
        return at - at % self.length


MINUTES = Span(60, 3600)
QUARTERS = Span(900, 86400)


def detail() -> Span:
    """Full resolution: 10 minutes by default, always a whole number of samples that make up minutes."""
    step = settings.NUMAWEB_HISTORY_STEP
    return Span(step, 600) if 60 % step == 0 else Span(10, 600)


def all_spans() -> tuple[Span, Span, Span]:
    """From the finest to the coarsest."""
    return detail(), MINUTES, QUARTERS
