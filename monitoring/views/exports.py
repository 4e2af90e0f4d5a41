"""Lists as files: CSV that no spreadsheet takes for formulas, and JSON. Both with the filter and the order of the page.

A file begins to arrive while its rows are still being read: a list of some hundred thousand containers is nobody's to wait for, and no process has it as a whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from itertools import islice
from typing import Any

import msgspec
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db.models import QuerySet
from django.forms import Form
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from monitoring import selectors

AT_ONCE = 2_000
"""Rows that are read together, and sent."""
# A spreadsheet would run a cell that begins with one of these.
FORMULA_STARTS = frozenset("=+-@\t\r\n")
Row = Sequence[Any]


def rows(ordered: QuerySet[Any], columns: Sequence[str]) -> Iterator[Row]:
    """Values of a list in its order, which is found at once and by keys alone. A row that is gone when its turn comes is left out."""
    return selectors.values_in_order(ordered, columns, AT_ONCE)


def as_csv(columns: Sequence[str], lines: Iterator[Row]) -> Iterator[bytes]:
    """A text that looks like a formula gets an apostrophe, a document is JSON, unknown is empty."""
    yield _csv([columns])
    while some := list(islice(lines, AT_ONCE)):
        yield _csv(some)


def _csv(lines: Sequence[Row]) -> bytes:
    """As `csv.writer` has it, which looks at one character after the other: column by column, what needs no care is seen at once."""
    written = zip(*map(_fields, zip(*lines, strict=True)), strict=True)
    # A line of one field that is empty would be no line.
    return "".join([f"{','.join(fields) or EMPTY}\r\n" for fields in written]).encode()


def _fields(column: Sequence[Any]) -> Sequence[str]:
    """The values of one column as fields."""
    kinds = set(map(type, column))
    if str in kinds and not FORMULA_STARTS.isdisjoint(
        {value[:1] for value in column if value.__class__ is str}
    ):
        column = [
            f"'{value}" if value.__class__ is str and value[:1] in FORMULA_STARTS else value
            for value in column
        ]
    texts = column if kinds == {str} else _texts(column, kinds)
    if _needs_quotes("".join(texts)):
        return [_quoted(text) if _needs_quotes(text) else text for text in texts]
    return texts


def _texts(column: Sequence[Any], kinds: set[type]) -> Sequence[str]:
    known = kinds - {type(None)}
    if len(known) > 1:
        return [WRITTEN.get(value.__class__, str)(value) for value in column]
    write = WRITTEN.get(next(iter(known), str), str)
    if len(kinds) == len(known):
        return list(map(write, column))
    return ["" if value is None else write(value) for value in column]


def _needs_quotes(text: str) -> bool:
    return "," in text or '"' in text or "\n" in text or "\r" in text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _document(value: object) -> str:
    return msgspec.json.encode(value).decode()


WRITTEN: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "",
    dict: _document,
    list: _document,
    datetime: lru_cache(16_384)(str),  # containers of one report have one
}
EMPTY = '""'


def as_json(columns: Sequence[str], lines: Iterator[Row]) -> Iterator[bytes]:
    """One list, an object on each line."""
    before = b"[\n"
    while some := list(islice(lines, AT_ONCE)):
        yield before + b",\n".join(msgspec.json.encode(dict(zip(columns, row, strict=True))) for row in some)
        before = b",\n"
    yield b"[]\n" if before == b"[\n" else b"\n]\n"


Writer = Callable[[Sequence[str], Iterator[Row]], Iterator[bytes]]
WRITERS: dict[str, tuple[str, Writer]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "json": ("application/json", as_json),
}


def refusal(form: Form) -> HttpResponse:
    """A filter that cannot be read is refused: a file of everything would pass for a file of what was asked."""
    lines = [f"{field.label}: {error}" for field in form for error in field.errors]
    return HttpResponse(
        "\n".join(lines), status=HTTPStatus.BAD_REQUEST, content_type="text/plain; charset=utf-8"
    )


def answer(
    request: HttpRequest, form: str, name: str, columns: Sequence[str], lines: Iterator[Row]
) -> StreamingHttpResponse:
    """The rows as a file to keep."""
    content_type, write = WRITERS[form]
    pieces = write(columns, lines)
    response = StreamingHttpResponse(
        in_turns(pieces) if isinstance(request, ASGIRequest) else pieces, content_type=content_type
    )
    response["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return response


async def in_turns(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each made in the request's own thread, which has its connection to the database; other requests go on meanwhile."""
    while piece := await sync_to_async(_next)(pieces):
        yield piece


def _next(pieces: Iterator[bytes]) -> bytes:
    return next(pieces, b"")
