"""For all tests of this room: nothing is remembered from the test before, and waits are short."""

from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from monitoring import hot, live
from monitoring.services.collection import shift


@pytest.fixture(autouse=True)
def _fresh_memory() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    hot.stores.store.cache_clear()
    live.bus.cache_clear()
    shift._known.clear()
    shift._backlogs.clear()
    shift._end.clear()


@pytest.fixture
def quick(settings: Settings) -> Settings:
    """Rounds of a tenth of a second."""
    settings.NUMAWEB_COLLECT_PERIOD = 0.1
    settings.NUMAWEB_COLLECT_SHIFT = 60.0
    settings.NUMAWEB_COLLECT_TIMEOUT = 0.5
    settings.NUMAWEB_COLLECT_BACKOFF = 0.2
    settings.NUMAWEB_COLLECT_LEASE = 2.0
    settings.NUMAWEB_COLLECT_REFRESH = 0.5
    settings.NUMAWEB_HISTORY_STEP = 1
    return settings
