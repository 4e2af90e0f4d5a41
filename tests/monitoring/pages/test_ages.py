"""How old something is, in words: never below zero, unknown where nobody knows."""

import pytest

from monitoring.templatetags import numa


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "never heard"),
        (-86399.2, "0.0 s"),
        (2.34, "2.3 s"),
        (61.0, "61 s"),
        (600.0, "10 min"),
        (7200.0, "2 h"),
        (200000.0, "2 d"),
    ],
)
def test_an_age_is_said_in_the_largest_fitting_unit(seconds: float | None, said: str) -> None:
    assert numa.age(seconds) == said
