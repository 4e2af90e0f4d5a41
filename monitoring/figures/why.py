"""A reason as programs get it: its code, and in the language of whoever asks the sentence and the remedy."""

from __future__ import annotations

import msgspec


class Why(msgspec.Struct):
    """A code and its sentence, with the remedy where there is one."""

    code: str
    text: str
    remedy: str | None
