"""Pages of a list by cursor: what was on one page is not on the next, however the list changes meanwhile.

A cursor says where the last row stood (its sorted value and its key) and not how many rows were before it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from django.core.exceptions import ValidationError as FieldError
from django.db.models import Field, Model, Q, QuerySet
from django.utils.translation import gettext as _
from msgspec import Meta
from rest_framework.exceptions import ValidationError

from monitoring import selectors

M = TypeVar("M", bound=Model)

SIZE = 100
MOST = 1000
"""Rows of one page."""


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """Where a page begins: after (or before, if `back`) the row with this value of the sorted column and this key."""

    sort: Annotated[str, Meta(max_length=40)]
    back: bool
    value: str | float | int | bool | None
    key: Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Wish(NamedTuple):
    """What a caller wants to see of a list. `sort` is a name, with "-" before it for the largest first."""

    sort: str
    size: int
    cursor: Cursor | None


class Found(NamedTuple):
    """The rows of a page, and the cursors of its neighbours."""

    rows: list[tuple[Any, ...]]
    next: Cursor | None
    previous: Cursor | None


def page(found: QuerySet[M], columns: Sequence[Any], sorts: dict[str, str], wish: Wish) -> Found:
    """One page of a queryset as tuples of `columns`. `sorts`: column by the names that one may sort by."""
    column = sorts[wish.sort.removeprefix("-")]
    descending, back = wish.sort.startswith("-"), bool(wish.cursor and wish.cursor.back)
    if wish.cursor:
        found = found.filter(beyond(found.model, column, wish.cursor, descending=descending))
    ordered = found.order_by(*selectors.order(found.model, column, descending=descending, back=back))
    chosen = selectors.stretch(ordered, None, wish.size + 1)
    rows: list[tuple[Any, ...]] = list(chosen.values_list(*columns, column, "pk"))
    more, rows = len(rows) > wish.size, rows[: wish.size]
    if back:
        rows.reverse()
    before, after = (more, True) if back else (wish.cursor is not None, more)
    return Found(
        [row[:-2] for row in rows],
        at(wish.sort, rows[-1], back=False) if rows and after else None,
        at(wish.sort, rows[0], back=True) if rows and before else None,
    )


def beyond(model: type[Model], column: str, cursor: Cursor, *, descending: bool) -> Q:
    """The rows on the far side of a cursor."""
    field = selectors.field_of(model, column)
    down = cursor.back if field.null else descending != cursor.back
    key = Q(pk__lt=cursor.key) if down else Q(pk__gt=cursor.key)
    unknown = Q(**{f"{column}__isnull": True})
    if cursor.value is None:
        return (unknown & key) | (~unknown if cursor.back else Q(pk__in=()))
    value = typed(field, cursor.value)
    further = "lt" if descending != cursor.back else "gt"
    far = Q(**{f"{column}__{further}": value}) | (Q(**{column: value}) & key)
    if field.null and not cursor.back:
        return far | unknown
    return far & Q(**{f"{column}__{further}e": value})  # says nothing new, but lets an index begin here


def typed(field: Field[Any, Any], value: Any) -> Any:
    try:
        made = field.to_python(value)
        if isinstance(made, datetime):
            made = made.astimezone(UTC)
    except (FieldError, ValueError, TypeError, OverflowError):
        raise refused() from None
    if made is None or (isinstance(made, str) and "\0" in made):
        raise refused()
    return made


def at(sort: str, row: tuple[Any, ...], *, back: bool) -> Cursor:
    value = row[-2]
    plain = value if value is None or isinstance(value, str | int | float) else value.isoformat()
    return Cursor(sort, back, plain, row[-1])


def written(cursor: Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def read(text: str, sort: str) -> Cursor:
    """The cursor of a text. Raises ValidationError, also where it belongs to another order."""
    try:
        data = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        cursor = msgspec.json.decode(data, type=Cursor)
    except (ValueError, binascii.Error):
        raise refused() from None
    if cursor.sort != sort:
        raise refused()
    return cursor


def refused() -> ValidationError:
    return ValidationError(
        {"cursor": [_("This is no cursor of this list in this order. Begin without one, and follow “next”.")]}
    )
