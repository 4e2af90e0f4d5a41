"""Kubernetes quantities, exactly."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore import quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", Fraction(0)),
        ("2", Fraction(2)),
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
        ("500m", Fraction(1, 2)),
        ("100n", Fraction(1, 10_000_000)),
        ("250u", Fraction(1, 4000)),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("1.", Fraction(1)),
        ("+3", Fraction(3)),
        ("-1k", Fraction(-1000)),
        ("1Ki", Fraction(1024)),
        ("4Gi", Fraction(4_294_967_296)),
        ("1.5Gi", Fraction(1_610_612_736)),
        ("1G", Fraction(1_000_000_000)),
        ("1E", Fraction(10**18)),
        ("1Ei", Fraction(2**60)),
        ("1e3", Fraction(1000)),
        ("12E2", Fraction(1200)),
        ("5e-1", Fraction(1, 2)),
        ("0.1", Fraction(1, 10)),
    ],
)
def test_it_reads_a_quantity(text: str | int | float, value: Fraction) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "m", "1 ", " 1", "1kB", "1KI", "1K", "--1", "1..2", "1e", "1e999", "0x10", "10%", "None"),
        *("nan", "inf", "1_000", "１", "1Gi\n", "9" * 31, float("inf"), float("nan")),
    ],
)
def test_it_refuses_other_texts(text: str | float) -> None:
    with pytest.raises(quantity.QuantityError, match="is not a quantity such as 500m, 4Gi or 2"):
        quantity.parse(text)


@given(st.integers(-(10**20), 10**20), st.sampled_from(["", "n", "u", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_a_suffix_scales(number: int, suffix: str) -> None:
    scale = {
        "": Fraction(1),
        "n": Fraction(1, 10**9),
        "u": Fraction(1, 10**6),
        "m": Fraction(1, 1000),
        "k": Fraction(1000),
        "M": Fraction(10**6),
        "Ki": Fraction(2**10),
        "Mi": Fraction(2**20),
        "Gi": Fraction(2**30),
    }[suffix]
    assert quantity.parse(f"{number}{suffix}") == number * scale


@given(st.text())
def test_it_answers_hostile_texts_with_a_number_or_its_own_error(text: str) -> None:
    with suppress(quantity.QuantityError):
        assert isinstance(quantity.parse(text), Fraction)
