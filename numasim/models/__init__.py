"""Named server models. Each stands for a kind of machine that a page or a rule must get right."""

from __future__ import annotations

from collections.abc import Callable

from numasim.machine import Machine
from numasim.models import others, x86

MODELS: dict[str, Callable[[], Machine]] = {
    "xeon-snc": x86.xeon_snc,
    "epyc-nps4": x86.epyc_nps4,
    "kunpeng-920": others.kunpeng_920,
    "grace": others.grace,
    "laptop": x86.laptop,
    "power-smt8": others.power,
    "half-dark": x86.half_dark,
    "cxl": x86.cxl,
    "superdome": x86.thousand,
    "high-ids": x86.high_ids,
    "edge": others.edge,
}


class UnknownModelError(ValueError):
    """A name that is no model."""


def model(name: str) -> Machine:
    """The model of that name.

    Raises:
        UnknownModelError: naming the models that there are.
    """
    if name not in MODELS:
        raise UnknownModelError(f"no server model is named {name!r}; there are: {', '.join(MODELS)}")
    return MODELS[name]()
