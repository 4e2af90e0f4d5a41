"""Many rows in one statement each, without making a model instance of any: a sixth of the time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Model

from monitoring.models import Container, Pod


def containers(node: int, updated: datetime, rows: Sequence[dict[str, Any]]) -> None:
    """Inserts or updates the rows of a node. Every row has the same columns."""
    _upsert(Container, {"node_id": node, "updated": updated}, ("node_id", "container_id"), rows)


def pods(cluster: int, rows: Sequence[dict[str, Any]]) -> None:
    """Inserts or updates the rows of a cluster. Every row has the same columns."""
    _upsert(Pod, {"cluster_id": cluster}, ("cluster_id", "uid"), rows)


def _upsert(
    model: type[Model], shared: dict[str, Any], key: tuple[str, ...], rows: Sequence[dict[str, Any]]
) -> None:
    """`shared`: columns that have the same value in every row; `key`: those by which a row that is there already is known."""
    if not rows:
        return
    columns = tuple(rows[0])
    same = tuple(map(_plain, shared.values()))
    values = [(*same, *(_plain(row[name]) for name in columns)) for row in rows]
    with connection.cursor() as cursor:
        cursor.executemany(_statement(model, key, (*shared, *columns)), values)


@cache
def _statement(model: type[Model], key: tuple[str, ...], columns: tuple[str, ...]) -> str:
    quote = connection.ops.quote_name
    changes = ", ".join(f"{quote(name)} = excluded.{quote(name)}" for name in columns if name not in key)
    marks = ", ".join(["%s"] * len(columns))
    return (
        f"INSERT INTO {quote(model._meta.db_table)} ({', '.join(map(quote, columns))}) VALUES ({marks}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(map(quote, key))}) DO UPDATE SET {changes}"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return json.dumps(value)
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value
