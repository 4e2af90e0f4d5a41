"""What the doctor says of one thing."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["ok", "warning", "failed", "unchecked"]


class Finding(msgspec.Struct, frozen=True):
    """`text` says what is the case and `remedy` what to do ("" = nothing), both in the reader's language and without secrets."""

    part: str
    state: State
    text: str
    remedy: str = ""
