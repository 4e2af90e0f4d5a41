"""Many rows in one statement, without making a model instance of any: a tenth of the time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from django.db import connection
from django.db.models import Model

from monitoring.models import Container, KubernetesNode, Pod

Row = dict[str, Any]


def containers(node: int, updated: datetime, rows: Sequence[Row]) -> None:
    """Inserts or updates the rows of a node. Every row has the same columns."""
    _upsert(Container, {"node_id": node, "updated": updated}, ("node_id", "container_id"), rows)


def pods(cluster: int, rows: Sequence[Row]) -> None:
    """Inserts or updates the rows of a cluster. Every row has the same columns."""
    _upsert(Pod, {"cluster_id": cluster}, ("cluster_id", "uid"), rows)


def kubernetes_nodes(updated: datetime, rows: Sequence[Row]) -> None:
    """Inserts or updates what the API server says of nodes. Every row has the same columns."""
    _upsert(KubernetesNode, {"updated": updated}, ("node_id",), rows)


def _upsert(model: type[Model], shared: Row, key: tuple[str, ...], rows: Sequence[Row]) -> None:
    """`shared`: columns that have the same value in every row; `key`: those by which a row that is there already is known."""
    if not rows:
        return
    columns = (*shared, *rows[0])
    whole = [{**shared, **row} for row in rows]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # One value for all rows: PostgreSQL reads JSON several times faster than it takes a statement for each.
            cursor.execute(_of_json(model, key, columns), [msgspec.json.encode(whole).decode()])
        else:
            plain = [tuple(_plain(row[name]) for name in columns) for row in whole]
            cursor.executemany(_of_values(model, key, columns), plain)


@cache
def _of_json(model: type[Model], key: tuple[str, ...], columns: tuple[str, ...]) -> str:
    table = connection.ops.quote_name(model._meta.db_table)
    return _statement(
        model,
        key,
        columns,
        f"SELECT {_names(columns)} FROM json_populate_recordset(NULL::{table}, %s)",  # noqa: S608
    )


@cache
def _of_values(model: type[Model], key: tuple[str, ...], columns: tuple[str, ...]) -> str:
    return _statement(model, key, columns, f"VALUES ({', '.join(['%s'] * len(columns))})")


def _statement(model: type[Model], key: tuple[str, ...], columns: tuple[str, ...], rows: str) -> str:
    quote = connection.ops.quote_name
    changes = ", ".join(f"{quote(name)} = excluded.{quote(name)}" for name in columns if name not in key)
    return (
        f"INSERT INTO {quote(model._meta.db_table)} ({_names(columns)}) {rows} "
        f"ON CONFLICT ({_names(key)}) DO UPDATE SET {changes}"
    )


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(connection.ops.quote_name, columns))


def _plain(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value)
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value
