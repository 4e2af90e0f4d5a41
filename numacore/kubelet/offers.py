"""What a manager offers for a request, with the amounts behind it: the evidence of a verdict."""

from __future__ import annotations

import msgspec

from numacore.hints import Hints


class Offer(msgspec.Struct, frozen=True):
    """One resource's hints. `hints` None = no preference.

    Amounts are CPUs, bytes or devices. `free` and `total` by NUMA node tell what there is for a new request and what an empty
    machine would have; both are empty where the manager never looked.
    """

    resource: str
    requested: int
    hints: Hints | None
    free: dict[int, int] = {}
    total: dict[int, int] = {}
