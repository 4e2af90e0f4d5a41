"""Those who write all the time note when the database refuses: a page that can be read shows nothing of it by itself."""

from __future__ import annotations

import contextlib
import time
from typing import Literal

from django.db import DatabaseError, InterfaceError, OperationalError

from monitoring import hot
from monitoring.selectors.storing import PREFIX

Kind = Literal["full", "locked", "read-only", "damaged", "away", "refused"]

STATES: dict[str, Kind] = {
    "53100": "full",
    "55P03": "locked",
    "57014": "locked",
    "40P01": "locked",
    "25006": "read-only",
}
"""PostgreSQL, appendix A: disk_full, lock_not_available, query_canceled, deadlock_detected, read_only_sql_transaction."""
WORDS: dict[Kind, tuple[str, ...]] = {
    "full": ("disk is full", "no space left", "could not extend file", "quota exceeded"),
    "locked": ("locked",),
    "read-only": ("readonly database", "read-only"),
    "damaged": ("disk i/o error", "malformed"),
}
"""What SQLite says (sqlite3_errstr), and PostgreSQL where the state is lost on the way."""


def kind_of(error: DatabaseError) -> Kind:
    """Why the database refused."""
    state = STATES.get(str(getattr(error.__cause__, "sqlstate", "")))
    if state is not None:
        return state
    text = str(error).lower()
    for kind, words in WORDS.items():
        if any(each in text for each in words):
            return kind
    return "away" if isinstance(error, OperationalError | InterfaceError) else "refused"


def refused(writer: str, error: DatabaseError) -> None:
    """Counts a write that the database refused, and notes it for the overview. Its words stay in the log: they hold addresses."""
    with contextlib.suppress(hot.StoreError):
        hot.store().count("database_errors", 1)
        hot.store().note(PREFIX + writer, hot.Note(time.time(), False, kind_of(error)))
