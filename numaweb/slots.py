"""Where rooms plug into the pages: menu entries, cards of the overview and actions of pages, gathered from each room's `slots.SLOTS`.

A room lists its entries as plain structs; a template never links to a room above its own.
"""

from collections.abc import Iterable
from typing import Any

from monitoring import slots as monitoring_slots
from policies import slots as policies_slots

GATHERED: list[Any] = sorted([*monitoring_slots.SLOTS, *policies_slots.SLOTS], key=lambda slot: slot.order)


def menu(user: Any) -> list[Any]:
    return list(allowed("menu", user))


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
