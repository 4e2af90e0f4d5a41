"""Many values of a list, in its order: what files are made of.

A value costs a database adapter little where it stays what the database sent, and most of a row's time where it becomes a moment or a document. Both are
taken as texts here and read in one go; moments that many rows share are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
from django.core.exceptions import FieldDoesNotExist
from django.db import connections
from django.db.models import (
    DateTimeField,
    ExpressionWrapper,
    F,
    Field,
    Func,
    JSONField,
    Lookup,
    QuerySet,
    TextField,
)

from monitoring.selectors.ordering import field_of

Row = Sequence[Any]


def values_in_order(ordered: QuerySet[Any], columns: Sequence[str], at_once: int) -> Iterator[Row]:
    """Values of the columns, row by row; `at_once` rows are read together. The order is found when this is called and by keys alone; a row that is
    gone when its turn comes is left out."""
    return _in_turn(list(ordered.values_list("pk", flat=True)), ordered.order_by(), columns, at_once)


def _in_turn(
    keys: Sequence[Any], found: QuerySet[Any], columns: Sequence[str], at_once: int
) -> Iterator[Row]:
    fields = [_field(found, name) for name in columns]
    wanted = [_text(name, field) for name, field in zip(columns, fields, strict=True)]
    readers = [
        (at, READERS[kind])
        for at, field in enumerate(fields, 1)
        for kind in READERS
        if isinstance(field, kind)
    ]
    waiting = iter(keys)
    while some := list(islice(waiting, at_once)):
        values = {}
        for row in _those(found, some).values_list("pk", *wanted):
            cells = list(row)
            for at, read in readers:
                if cells[at] is not None:
                    cells[at] = read(cells[at])
            values[cells[0]] = cells[1:]
        yield from (values[key] for key in some if key in values)


def _field(found: QuerySet[Any], name: str) -> Field[Any, Any] | None:
    """None: a column that the query makes itself."""
    try:
        return field_of(found.model, name)
    except FieldDoesNotExist:
        return None


def _text(name: str, field: Field[Any, Any] | None) -> Any:
    if isinstance(field, DateTimeField):
        return _Moment(name)
    if isinstance(field, JSONField):
        # Django has every database send the text of a document, and reads it where a column says that it is one.
        return ExpressionWrapper(F(name), output_field=TextField())
    return name


class _Moment(Func):
    """A moment as text in UTC, which is what SQLite keeps and only its adapter takes for more."""

    template = "CAST(%(expressions)s AS text)"
    output_field = TextField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
        return self.as_sql(compiler, connection, template=template, **context)


@lru_cache(16_384)
def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


READERS: dict[type[Field[Any, Any]], Callable[[str], Any]] = {
    DateTimeField: _moment,
    JSONField: msgspec.json.decode,
}
"""What makes a value of what `_text` asks for."""


def _those(found: QuerySet[Any], keys: Sequence[Any]) -> QuerySet[Any]:
    if connections[found.db].vendor == "postgresql":
        return found.filter(_Among(F("pk"), keys))
    return found.filter(pk__in=keys)


class _Among(Lookup[Any]):
    """`pk IN (...)` with one parameter instead of one for each key: a thousand are written into a query as slowly as a thousand rows are read."""

    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        column, parameters = self.process_lhs(compiler, connection)
        return f"{column} = ANY(%s)", [*parameters, list(self.rhs)]
