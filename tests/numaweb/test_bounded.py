"""Questions with one time for all: whoever hangs or raises costs the others nothing."""

from __future__ import annotations

import threading

import pytest
from structlog.testing import capture_logs

from numaweb.bounded import Asker


@pytest.mark.django_db
def test_one_that_raises_is_told_and_has_no_answer() -> None:
    with capture_logs() as logs:
        assert Asker[int]().ask({"broken": lambda: 1 // 0, "well": lambda: 7}, 5.0) == {
            "broken": None,
            "well": 7,
        }
    assert [(each["event"], each["part"]) for each in logs] == [("question", "broken")]


@pytest.mark.django_db
def test_one_that_hangs_is_asked_once() -> None:
    go, asked = threading.Event(), []

    def hang() -> int:
        asked.append(1)
        go.wait(30)
        return 3

    asker: Asker[int] = Asker()
    try:
        assert [asker.ask({"slow": hang}, 0.05) for _ in range(3)] == [{"slow": None}] * 3
        assert asked == [1]
    finally:
        go.set()
    assert asker.ask({"slow": hang}, 30) == {"slow": 3}
