"""Where rooms plug into the pages: menu entries and cards of the overview, gathered from each room's `slots.SLOTS`.

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


def allowed(kind: str, user: Any) -> Iterable[Any]:
    return (slot for slot in GATHERED if slot.kind == kind and user.has_perm(slot.permission))
