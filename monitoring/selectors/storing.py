"""Whether the database takes what is written into it all the time, by the notes of those who write (`services.storing`)."""

from __future__ import annotations

from collections.abc import Mapping

from monitoring import hot

PREFIX = "database/"
"""Of the notes' names; then the writer's."""
SECONDS = 45.0
"""A refusal counts for so long. Who writes tries again earlier, so a note that is older is of somebody who writes again, or ended."""


def refusal(notes: Mapping[str, hot.Note], now: float) -> hot.Note | None:
    """The newest refusal of any writer that still counts; None = all writing goes well."""
    found = [note for name, note in notes.items() if name.startswith(PREFIX) and abs(now - note.at) < SECONDS]
    return max(found, key=lambda note: note.at, default=None)
