"""The parts in the order in which one stands on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from django.db import DatabaseError
from django.utils.translation import gettext as _

from numaweb.doctor import around, own, stores
from numaweb.doctor.finding import Finding

Part = Callable[[], Iterable[Finding]]
PARTS: dict[str, Part] = {
    "versions": own.versions,
    "settings": own.settings_fit,
    "database": stores.database,
    "redis": stores.broker,
    "secrets": own.secrets,
    "work": stores.work,
    "clusters": around.clusters,
    "exporters": around.exporters,
    "prometheus": around.prometheus,
    "node": around.node,
}


def examine() -> Iterator[Finding]:
    """Part by part, as each is done."""
    for name, part in PARTS.items():
        try:
            yield from part()
        except DatabaseError as error:
            text = _("Could not be looked at, because the database fails: %(cause)s") % {
                "cause": type(error).__name__
            }
            yield Finding(name, "unchecked", text, _("See to the database first."))
