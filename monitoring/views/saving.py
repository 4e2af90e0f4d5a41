"""Tables of pages as files. The page's own address with `save=NAME.csv` or `save=NAME.json` answers with one of its tables: whole, behind
the page's filter and in its order, however much of it the page shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponseBase, QueryDict
from django.utils.text import slugify
from django.utils.translation import gettext as _

from monitoring.views import exports

ASKED = "save"
"""Parameter of the address."""
NOT_OF_A_FILE = (ASKED, "page", "per_page", "part", "refresh", "container", "cpu", "numa")
"""Parameters that say what of a table is looked at, and not which rows it has."""


class Table(NamedTuple):
    """A table: what each column takes from one of its items, and the items, which are looked up when somebody saves them."""

    columns: Mapping[str, Callable[[Any], Any]]
    items: Callable[[], Iterable[Any]]

    def lines(self) -> Iterator[exports.Row]:
        for item in self.items():
            yield [take(item) for take in self.columns.values()]


def answer(request: HttpRequest, tables: Mapping[str, Table], of: Iterable[str]) -> HttpResponseBase:
    """The asked table as a file, named after what the page is of. Raises Http404."""
    name, _dot, form = request.GET[ASKED].rpartition(".")
    if name not in tables or form not in exports.WRITERS:
        known = ", ".join(f"{table}.{each}" for table in tables for each in exports.WRITERS)
        raise Http404(_("This page saves: %(names)s.") % {"names": known or "–"})
    stem = "-".join(slugify(part.replace(".", "-")) for part in (*of, name))
    table = tables[name]
    return exports.answer(request, form, stem, tuple(table.columns), table.lines())


def addresses(query: QueryDict, name: str) -> list[tuple[str, str]]:
    """The forms of a table's file as people call them, each with its address, from the query of its page."""
    kept = [(key, value) for key, values in query.lists() if key not in NOT_OF_A_FILE for value in values]
    return [(form.upper(), "?" + urlencode([*kept, (ASKED, f"{name}.{form}")])) for form in exports.WRITERS]
