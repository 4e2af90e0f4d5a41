"""Why something is not done, or did not work: for a page a code with values, for a person the field, the cause and the remedy."""

from __future__ import annotations

from numacore.diagnosis import Reason


class RefusedError(Exception):
    """An order that is not carried out; nothing was touched."""

    def __init__(self, code: str, words: str, **values: str | int | float) -> None:
        super().__init__(words)
        self.reason = Reason(code, values)
        self.words = words


class FailedError(Exception):
    """A step that did not work; what was changed has to be taken back."""

    def __init__(self, code: str, words: str, **values: str | int | float) -> None:
        super().__init__(words)
        self.reason = Reason(code, values)
        self.words = words
