"""Quantities as the kubelet counts with them: rounding up, and amounts that it cannot hold as an int64.

Rules: apimachinery pkg/api/resource/quantity.go, pkg/apis/core/v1/helper/helpers.go.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Literal

import msgspec

from numacore import quantity

CPU = "cpu"
MEMORY = "memory"
HUGE_PAGES = "hugepages-"
UINT64 = (1 << 64) - 1

Format = Literal["binary", "decimal", "exponent"]
_SUFFIXES: dict[str, tuple[tuple[int, str], ...]] = {
    "decimal": tuple(zip((18, 15, 12, 9, 6, 3, 0, -3, -6, -9), ("E", "P", "T", "G", "M", "k", "", "m", "u", "n"), strict=True)),
    "exponent": tuple((power, f"e{power}" if power else "") for power in range(18, -12, -3)),
}  # fmt: skip
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class Quantity(msgspec.Struct, frozen=True):
    """An amount, the way it prints, and whether Go holds it as an int64 (else as a decimal of any length)."""

    amount: Fraction
    format: Format = "decimal"
    fits: bool = True

    @property
    def value(self) -> int:
        """Whole units, rounded up."""
        return -(-self.amount.numerator // self.amount.denominator)

    @property
    def milli(self) -> int:
        """Thousandths, rounded up."""
        return -(-self.amount.numerator * 1000 // self.amount.denominator)

    @property
    def whole(self) -> bool:
        """kubelet, cm/cpumanager/policy_static.go `isIntegralCPUAmount`."""
        return self.value * 1000 == self.milli

    @property
    def int64(self) -> int | None:
        """`AsInt64`; None = it says that it cannot, also for some whole amounts: "100Ti" and "1.5Gi" are kept as decimals."""
        return int(self.amount) if self.fits and self.amount.denominator == 1 else None

    def __add__(self, other: Quantity) -> Quantity:
        """The sum; it prints in the first format that is not zero's."""
        kept = self.format if self.amount else other.format
        return Quantity(self.amount + other.amount, kept, self.fits and other.fits)

    def __str__(self) -> str:
        """The canonical text (`CanonicalizeBytes`)."""
        if not self.amount:
            return "0"
        if self.format == "binary" and self.amount.denominator == 1 and abs(self.amount) >= 1024:
            return _binary_text(int(self.amount))
        return _decimal_text(self.amount, "exponent" if self.format == "exponent" else "decimal")


ZERO = Quantity(Fraction(0))


@lru_cache(maxsize=4096)
def parse(text: str) -> Quantity:
    """Raises quantity.QuantityError for what is no quantity."""
    amount = quantity.parse(text)
    number = text.rstrip("KMGTPEkinum")
    suffix = text[len(number) :]
    if "e" in number or "E" in number:
        return Quantity(amount, "exponent", _digits(number.lower().partition("e")[0]) <= 18)
    if suffix.endswith("i"):
        return Quantity(amount, "binary", _binary_fits(number, _BINARY.index(suffix)))
    return Quantity(amount, "decimal", _digits(number) <= 18)


def huge_page_resource(size: int) -> str:
    """`HugePageResourceName`: the resource of huge pages of `size` bytes."""
    return HUGE_PAGES + str(Quantity(Fraction(size), "binary"))


def is_memory(resource: str) -> bool:
    """Whether the memory manager counts this resource."""
    return resource == MEMORY or resource.startswith(HUGE_PAGES)


def _digits(number: str) -> int:
    return sum(each.isdigit() for each in number)


def _binary_fits(number: str, power: int) -> bool:
    """The fast path of ParseQuantity: no decimal point, and few enough digits for this suffix."""
    return "." not in number and _digits(number) + power * 3 + 1 <= 15


def _binary_text(amount: int) -> str:
    power = 0
    while amount % 1024 == 0 and power < len(_BINARY) - 1:
        amount, power = amount // 1024, power + 1
    return f"{amount}{_BINARY[power]}"


def _decimal_text(amount: Fraction, style: str) -> str:
    for power, suffix in _SUFFIXES[style]:
        scaled = amount / Fraction(10) ** power
        if scaled.denominator == 1:
            return f"{scaled.numerator}{suffix}"
    return f"{-(-amount.numerator * 10**9 // amount.denominator)}n"
