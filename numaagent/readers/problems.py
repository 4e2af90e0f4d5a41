"""Failed reads: counted since the start, listed while they last."""

from __future__ import annotations

from numacore import wire

MAX_PROBLEMS = 500
"""Different problems that are kept apart; further ones are counted together."""


class Problems:
    """Counts failed reads. What a reader met in its newest attempt is listed, with how often it was met so far."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}
        self._current: dict[str, dict[tuple[str, str, str], None]] = {}
        self._totals: dict[str, int] = {}

    def begin(self, reader: str) -> None:
        """A reader tries anew: what it met before and does not meet again is solved."""
        self._current[reader] = {}

    def note(self, reader: str, what: str, cause: str) -> None:
        """Counts one failed read."""
        key = (reader, _printable(what), _printable(cause))
        if key not in self._counts and len(self._counts) >= MAX_PROBLEMS:
            key = (reader, "further files", "more different problems than are kept apart")
        self._counts[key] = self._counts.get(key, 0) + 1
        self._totals[reader] = self._totals.get(reader, 0) + 1
        self._current.setdefault(reader, {})[key] = None

    def listed(self) -> tuple[wire.Problem, ...]:
        """The problems of every reader's newest attempt. Copies first: the survey's thread may note one meanwhile."""
        keys = [key for current in list(self._current.values()) for key in list(current)]
        return tuple(
            wire.Problem(reader=key[0], what=key[1], cause=key[2], count=self._counts[key]) for key in keys
        )

    def met(self, reader: str) -> bool:
        """Whether a reader met a problem in its newest attempt."""
        return bool(self._current.get(reader))

    def totals(self) -> dict[str, int]:
        """Failed reads of each reader that ever tried, since the start."""
        return {reader: self._totals.get(reader, 0) for reader in list(self._current)}


def _printable(text: str) -> str:
    """Causes quote what stands in files; nobody is to be sent control characters."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)
