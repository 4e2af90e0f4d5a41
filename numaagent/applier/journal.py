"""What is being done, written down before it is done: the next run reads where the last one stopped."""

from __future__ import annotations

import contextlib
import os
from typing import Literal

import msgspec

from numaagent.applier import writing

Step = Literal[
    "check", "keep", "arm", "stop", "take", "write", "clear", "start", "health", "in-force", "commit", "back"
]
"""In this order; `back` may follow on any."""
RUNNING: frozenset[Step] = frozenset(("health", "in-force", "commit"))
"""From here on the kubelet runs with the new settings: a run that goes on does not stop it again."""


class Entry(msgspec.Struct, frozen=True):
    """A step that was begun, and when (seconds since 1970)."""

    step: Step
    at: float


_decoder = msgspec.json.Decoder(Entry)


class Journal:
    """Of one change."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._last: Step | None = None

    @property
    def last(self) -> Step:
        """The step begun last, by this run or by those before it."""
        return self._last or (self.steps() or ["check"])[-1]

    def note(self, step: Step, at: float) -> None:
        """A step begins now."""
        # The line break before it closes a line that a failure cut short.
        writing.append(self._path, b"\n" + msgspec.json.encode(Entry(step, at)) + b"\n")
        self._last = step

    def steps(self) -> list[Step]:
        """Steps begun so far. A line that a failure cut short is a step that was not begun."""
        if not os.path.exists(self._path):
            return []
        found: list[Step] = []
        with open(self._path, "rb") as file:
            for line in file:
                with contextlib.suppress(msgspec.DecodeError):
                    found.append(_decoder.decode(line).step)
        return found
