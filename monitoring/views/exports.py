"""Lists as files: CSV that no spreadsheet takes for formulas, and JSON. Both with the filter of the page."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.forms import Form
from django.http import HttpResponse

MOST_ROWS = 200_000
# A spreadsheet would run a cell that begins with one of these.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
Row = dict[str, Any]


def cell(value: object) -> str:
    """One value as CSV text; unknown is empty, a text that looks like a formula gets an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return str(value)
    return f"'{value}" if value.startswith(FORMULA_STARTS) else value


def write_csv(response: HttpResponse, columns: Sequence[str], rows: Iterable[Row]) -> None:
    writer = csv.writer(response)
    writer.writerow(columns)
    writer.writerows([cell(row[name]) for name in columns] for row in rows)


def write_json(response: HttpResponse, _columns: Sequence[str], rows: Iterable[Row]) -> None:
    json.dump(list(rows), response, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1)


Writer = Callable[[HttpResponse, Sequence[str], Iterable[Row]], None]
WRITERS: dict[str, tuple[str, Writer]] = {
    "csv": ("text/csv; charset=utf-8", write_csv),
    "json": ("application/json", write_json),
}


def refusal(form: Form) -> HttpResponse:
    """A filter that cannot be read is refused: a file of everything would pass for a file of what was asked."""
    lines = [f"{field.label}: {error}" for field in form for error in field.errors]
    return HttpResponse(
        "\n".join(lines), status=HTTPStatus.BAD_REQUEST, content_type="text/plain; charset=utf-8"
    )


def answer(form: str, name: str, columns: Sequence[str], rows: Iterable[Row]) -> HttpResponse:
    """The rows as a file to keep."""
    content_type, write = WRITERS[form]
    response = HttpResponse(content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    write(response, columns, rows)
    return response
