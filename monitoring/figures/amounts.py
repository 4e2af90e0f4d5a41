"""Amounts of resources in words: CPUs as numbers, memory and huge pages in binary units. Unknown is shown as unknown."""

from __future__ import annotations

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
HUGE_PAGES = "hugepages-"


def size(value: float | None) -> str:
    """Bytes in binary units."""
    if value is None:
        return _("unknown")
    scaled, unit = float(value), 0
    while abs(scaled) >= 1024 and unit < len(UNITS) - 1:
        scaled, unit = scaled / 1024, unit + 1
    return f"{number_format(scaled, 1 if unit and scaled < 100 else 0)} {UNITS[unit]}"


def of(resource: str, value: float) -> str:
    """An amount of a resource, without its name."""
    if resource == "memory" or resource.startswith(HUGE_PAGES):
        return size(value)
    return number_format(value, 0 if value == int(value) else 2, force_grouping=True)


def name(resource: str, count: int = 2) -> str:
    """How people call a resource, after a number of them (sentences.grammatical)."""
    if resource == "cpu":
        return ngettext("CPU", "CPUs", count)
    if resource == "memory":
        return _("memory")
    if resource.startswith(HUGE_PAGES):
        return _("huge pages of %(size)s") % {"size": resource.removeprefix(HUGE_PAGES)}
    return resource
