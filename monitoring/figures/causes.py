"""Causes in the reader's language. Processes without a reader write them down in English, with the values in them; so do exporters of
neighbouring versions. What is recognised here is said anew; anything else stays as it is, in the words of whoever said it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from django.utils.translation import gettext

from monitoring.figures import causetexts

_PLACE = re.compile(r"%\((\w+)\)[sd]")
_NUMBER = re.compile(r"%\((\w+)\)d")
NESTED = "cause"
"""The value that is a cause itself."""
DEEPEST = 5


def said(text: str, depth: int = 0) -> str:
    """A cause in the reader's language; the same text where it is unknown. A host or field may stand before it ("field: cause")."""
    if not text or depth > DEEPEST:
        return text
    if (known := gettext(text)) != text:
        return known
    found = _recognised(text)
    if found is not None:
        form, values = found
        spoken = {key: said(value, depth + 1) if key == NESTED else value for key, value in values}
        return _NUMBER.sub(r"%(\1)s", gettext(form)) % spoken
    field, colon, rest = text.partition(": ")
    return field + colon + said(rest, depth + 1) if rest else text


def kind(text: str) -> str:
    """What kind of cause a reader of an exporter named (a key of `causetexts.READING`); "" = an unknown one."""
    found = _recognised(text)
    return _kinds().get(found[0], "") if found else ""


@lru_cache(maxsize=4096)
def _recognised(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """The form that a text was made of, and its values."""
    for form, pattern in _patterns():
        if (match := pattern.fullmatch(text)) is not None:
            return form, tuple(match.groupdict().items())
    return None


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Forms that say most themselves come first: a general one must not take their texts."""
    every = (*causetexts.GENERAL, *(form for forms in causetexts.READING.values() for form in forms))
    ordered: Iterable[str] = sorted(every, key=lambda form: -len(_PLACE.sub("", form)))
    return tuple((form, _pattern(form)) for form in ordered)


def _pattern(form: str) -> re.Pattern[str]:
    fixed = _PLACE.split(form)  # text, name, text, name, ..., text
    parts = [re.escape(part) if i % 2 == 0 else f"(?P<{part}>.*?)" for i, part in enumerate(fixed)]
    return re.compile("".join(parts), re.DOTALL)


@cache
def _kinds() -> dict[str, str]:
    return {form: kind for kind, forms in causetexts.READING.items() for form in forms}
