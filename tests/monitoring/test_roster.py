"""Whose use of every CPU is asked for and kept, when there are too many nodes for all at each round."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from monitoring.services.collection import roster
from monitoring.services.collection.poller import Poller
from monitoring.services.collection.roster import Roster
from monitoring.services.collection.writing import Target


@pytest.fixture
def two(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Roster]:
    """Two nodes, rounds of a second, and time for the whole state of each every four seconds."""
    settings.NUMAWEB_COLLECT_PERIOD = 1.0
    monkeypatch.setattr(roster, "ALL_FRESH", 1)
    monkeypatch.setattr(roster, "WHOLE_RATE", 0.5)
    loop = asyncio.new_event_loop()
    made = Roster({}, loop)
    made.update([Target(number, 1, f"http://127.0.0.1:{9000 + number}", "") for number in (1, 2)])
    for number, poller in made.pollers.items():
        poller.node = number
    yield made
    made.stop()
    loop.close()


def heard(poller: Poller, ago: float) -> Poller:
    poller.known.whole_received = time.time() - ago
    return poller


def test_a_node_is_asked_for_everything_in_turn_and_while_somebody_looks_at_it(two: Roster) -> None:
    poller = two.pollers[1]
    assert not two.summed(poller)  # nothing is known yet
    assert two.summed(heard(poller, 2.0))
    assert not two.summed(heard(poller, 3.9))
    assert not two.summed(heard(poller, -3600.0))  # the clock was set back
    two.wanted([], {1})
    assert not two.summed(heard(poller, 0.5))
    assert two.summed(heard(two.pollers[2], 0.5))


def test_few_nodes_are_asked_for_everything_always(two: Roster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "ALL_FRESH", 2)
    assert not two.summed(heard(two.pollers[1], 0.0))


def test_a_state_is_kept_once_and_at_its_turn_though_an_older_exporter_tells_it_always(two: Roster) -> None:
    poller = two.pollers[1]

    def kept(at: float, watched: set[int]) -> bool:
        poller.known.whole_received = at
        return two.wanted([poller], watched) == [poller]

    assert kept(1000.0, set())
    assert not kept(1000.0, {1})
    assert [kept(at, set()) for at in (1001.0, 1002.0, 1003.0, 1004.0)] == [False, False, True, False]
    assert kept(1005.0, {1})
