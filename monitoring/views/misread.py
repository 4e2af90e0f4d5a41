"""What of an address was not understood: the page is shown as without it, and says so. Pages use it, nobody else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.core.paginator import Page
from django.utils.translation import gettext as _

LONGEST = 40
"""Characters of a value that are shown."""


class Misread(NamedTuple):
    """A parameter of the address, and what was made of it."""

    name: str
    text: str


def choice(name: str, given: str | None, choices: Iterable[str], shown: str) -> list[Misread]:
    """A value that is none of the choices; without one nothing is wrong."""
    known = list(choices)
    if not given or given in known:
        return []
    words = {"value": _short(given), "choices": ", ".join(known), "shown": shown}
    return [Misread(name, _("“%(value)s” is none of: %(choices)s. Shown instead: %(shown)s.") % words)]


def page(given: str | None, shown: Page[Any]) -> list[Misread]:
    """A number that the list has no page for."""
    if not given or given == str(shown.number):
        return []
    words = {"value": _short(given), "last": shown.paginator.num_pages, "shown": shown.number}
    return [
        Misread(
            "page",
            _("“%(value)s” is no page of this list, which has 1 to %(last)s. Shown instead: %(shown)s.")
            % words,
        )
    ]


def _short(value: str) -> str:
    return value[:LONGEST].replace("\0", "\ufffd")
