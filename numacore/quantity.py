"""Kubernetes quantities ("500m", "4Gi", "1e3") as exact numbers.

Rules: apimachinery pkg/api/resource/quantity.go. A quantity is a decimal number with a binary suffix (Ki..Ei), a
decimal one (n, u, m, k, M, G, T, P, E) or a decimal exponent.
"""

from __future__ import annotations

import re
from fractions import Fraction

_FORM = re.compile(
    r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,2})?", re.ASCII
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: dict[str, int] = {
    suffix: 1024**power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)
}


class QuantityError(ValueError):
    """A text that is no quantity."""


def parse(text: str | int | float) -> Fraction:
    """The exact value of a quantity, in its unit (CPUs, bytes).

    Raises:
        QuantityError: the text is no quantity.
    """
    match = _FORM.fullmatch(str(text))
    if match is None:
        raise QuantityError(f"{str(text)[:40]!r} is not a quantity such as 500m, 4Gi or 2")
    number, suffix = match.groups()
    if suffix is None:
        return Fraction(number)
    if suffix in _BINARY:
        return Fraction(number) * _BINARY[suffix]
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    scale = Fraction(10 ** abs(exponent))
    return Fraction(number) * scale if exponent >= 0 else Fraction(number) / scale
