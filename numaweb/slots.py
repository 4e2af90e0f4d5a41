"""Where rooms plug into the pages: menu entries, cards of the overview and actions of pages, gathered from each room's `slots.SLOTS`.

A room lists its entries as plain structs; a template never links to a room above its own.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from monitoring import slots as monitoring_slots
from policies import slots as policies_slots

GATHERED: list[Any] = sorted([*monitoring_slots.SLOTS, *policies_slots.SLOTS], key=lambda slot: slot.order)


NEEDS: dict[str, Promise] = {
    "viewer": _("needs the role viewer"),
    "operator": _("needs the role operator"),
    "administrator": _("needs the role administrator"),
}


class Entry(NamedTuple):
    """An entry of the menu. `needs`: why this person cannot open it, "" = they can."""

    slot: Any
    needs: str | Promise


def menu(user: Any) -> list[Entry]:
    """Every entry, also those that somebody may not open."""
    found = (slot for slot in GATHERED if slot.kind == "menu")
    return [Entry(slot, "" if user.has_perm(slot.permission) else NEEDS[slot.role]) for slot in found]


def entries(user: Any) -> list[Any]:
    """Quick entries of the overview."""
    return list(allowed("entry", user))


def cards(user: Any) -> list[Any]:
    return list(allowed("card", user))


def actions(user: Any) -> dict[str, list[Any]]:
    """What can be done on a page, by the name of its address."""
    found: dict[str, list[Any]] = {}
    for slot in allowed("action", user):
        found.setdefault(slot.url_name, []).append(slot)
    return found


def allowed(kind: str, user: Any) -> Iterable[Any]:
    return (slot for slot in GATHERED if slot.kind == kind and user.has_perm(slot.permission))
