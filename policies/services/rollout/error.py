"""Why a rollout cannot be planned, confirmed or steered."""

from __future__ import annotations

from typing import Literal

Obstacle = Literal[
    "off",
    "no-connection",
    "access",
    "unreachable",
    "missing-right",
    "no-key",
    "nothing",
    "nothing-changed",
    "busy",
    "old",
    "stale",
    "hash",
    "altered",
    "count",
    "not-planned",
    "not-active",
    "not-paused",
    "not-stopped",
    "not-failed",
    "option",
    "frozen",
    "no-policy",
    "wish",
]


class RolloutError(Exception):
    """A code for which pages have a sentence, the field at fault, and the cause: others' words, or names of nodes or rights."""

    def __init__(self, code: Obstacle, field: str = "", cause: str = "") -> None:
        super().__init__(f"{code}: {cause}" if cause else code)
        self.code: Obstacle = code
        self.field = field
        self.cause = cause
