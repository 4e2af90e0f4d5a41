"""Indexes for filters and searches by text: found by their trigrams, hundreds of thousands of rows need not be read.

Only PostgreSQL has them, with its extension pg_trgm. It is trusted: whoever may create in the database may add it. Without it
everything is found as well, only later; so it is no part of the migrations, and `manage.py bootstrap` tries again each time.
"""

from __future__ import annotations

from django.db import DatabaseError, connection, transaction

EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_trgm"
TRIGRAMS = {
    "container_by_text": r"monitoring_container USING gin (UPPER(namespace || E'\n' || pod || E'\n' || name) gin_trgm_ops)",
    "pod_by_text": r"monitoring_pod USING gin (UPPER(name || E'\n' || owner_name) gin_trgm_ops)",
}
"""By name: the same expressions as `monitoring.filters` asks for, or they serve nobody."""
BEGINNINGS = {"container_by_beginning": "monitoring_container (container_id varchar_pattern_ops)"}
"""For beginnings of ids, which need no extension."""


def index_texts() -> str:
    """Makes those indexes that are missing. Why some could not be made; "" = all are there, or the database has none of the kind."""
    if connection.vendor != "postgresql":
        return ""
    _make(BEGINNINGS)
    try:
        with transaction.atomic():
            _run(EXTENSION)
            _make(TRIGRAMS)
    except DatabaseError as error:
        return str(error).strip().splitlines()[0]
    return ""


def _make(indexes: dict[str, str]) -> None:
    for name, what in indexes.items():
        _run(f"CREATE INDEX IF NOT EXISTS {name} ON {what}")


def _run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
