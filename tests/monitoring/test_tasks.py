"""Who offers the next shift, and what happens while the broker is away."""

import pytest
from kombu.exceptions import OperationalError
from pytest_django.fixtures import Settings

from monitoring import services, tasks


@pytest.fixture
def shifts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The shards that were worked on; every shift is worked to its end."""
    worked: list[int] = []

    def work(shard: int) -> str:
        worked.append(shard)
        return "worked"

    monkeypatch.setattr(services, "collect", work)
    return worked


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The shards that were offered."""
    made: list[int] = []
    monkeypatch.setattr(tasks, "offer", made.append)
    return made


def test_it_offers_the_next_shift_when_one_is_over(shifts: list[int], offers: list[int]) -> None:
    assert tasks.collect(3) == "worked"
    assert (shifts, offers) == ([3], [3])


def test_it_goes_on_itself_while_the_broker_is_away(
    shifts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def offer(shard: int) -> None:
        if len(shifts) < 3:
            raise OperationalError("connection refused")

    monkeypatch.setattr(tasks, "offer", offer)
    assert tasks.collect(3) == "worked"
    assert shifts == [3, 3, 3]


@pytest.mark.parametrize("result", ["busy", "lost"])
def test_it_offers_nothing_when_somebody_else_works(
    result: str, offers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "collect", lambda shard: result)
    assert tasks.collect(3) == result
    assert offers == []


def test_it_offers_only_shards_that_nobody_seems_to_collect(
    offers: list[int], monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.NUMAWEB_COLLECT_SHARDS = 4
    monkeypatch.setattr(services, "shift_wanted", lambda shard: shard % 2 == 1)
    tasks.start_shifts()
    assert offers == [1, 3]
