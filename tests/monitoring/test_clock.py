"""The collector's own wall clock jumps, forward and back: leases and rates go by monotonic clocks, and nobody works twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import time_machine
from django.db import connections
from pytest_django.fixtures import Settings

from monitoring import hot, selectors, services
from monitoring.models import Lease, Node
from monitoring.services import leases
from tests.monitoring import exporters
from tests.monitoring.exporters import until, working

pytestmark = pytest.mark.django_db(transaction=True)
MINUTES = (10, -10, -20, 10)
"""From one jump to the next: ahead, right again, behind, right again."""


@pytest.fixture
def lab(quick: Settings) -> Iterator[None]:
    started, real = time.time(), time.monotonic()
    # The nodes' clocks are their own.
    with exporters.fleet(2, clock=lambda: started + time.monotonic() - real) as fleet:
        services.ensure_cluster("lab", "Lab", "simulated", fleet.urls)
        yield


def received(node: int) -> float:
    state = hot.store().get(node)
    return state.received if state else 0.0


def between(node: int) -> float | None:
    """Seconds between the two readings that rates are made of."""
    state = hot.store().get(node)
    return state.seconds if state else None


def test_a_jump_of_ten_minutes_stops_no_round_and_makes_no_rate_wrong(lab: None) -> None:
    ahead = 0.0
    with time_machine.travel(datetime.now(UTC), tick=True) as clock, working():
        until(lambda: Node.objects.filter(containers__isnull=False).count() == 2)
        cluster = Node.objects.earliest("pk").cluster
        node = Node.objects.earliest("pk").pk
        until(lambda: between(node) is not None)
        token = Lease.objects.get(name="collect-0").token
        for minutes in MINUTES:
            clock.shift(minutes * 60)
            ahead += minutes * 60
            jumped = time.time()
            # Answers come on, by the clock as it is now.
            until(lambda at=jumped: at <= received(node) < at + 60)  # type: ignore[misc]
            for _ in range(5):
                seconds = between(node)
                assert seconds is not None
                assert 0 < seconds < 30  # by the node's monotonic clock
                planes = selectors.overview(cluster, datetime.now(UTC)).planes
                known = [each for each in planes.busy.tolist() if each != hot.UNKNOWN]
                assert known
                assert max(known) < hot.UNIT  # an interval that is wrong would fill every cell
                time.sleep(0.1)
            assert Lease.objects.get(name="collect-0").token == token
        assert ahead == -600
        assert {node.name: node.gone_at for node in Node.objects.all()} == {
            "node-00000": None,
            "node-00001": None,
        }


def another(told: list[str]) -> None:
    told.append(str(leases.take("collect-0", 1.0)))
    connections.close_all()


def test_nobody_takes_a_shard_from_a_collector_because_a_clock_jumped(lab: None) -> None:
    told: list[str] = []
    with time_machine.travel(datetime.now(UTC), tick=True) as clock, working():
        until(lambda: Node.objects.filter(containers__isnull=False).count() == 2)
        for minutes in MINUTES:
            clock.shift(minutes * 60)
            other = threading.Thread(target=another, args=(told,))
            other.start()
            other.join(20)
    assert told == ["None"] * len(MINUTES)


@pytest.mark.parametrize("minutes", [10, -10])
def test_a_dead_holder_is_followed_in_its_time_though_the_clock_jumps_meanwhile(minutes: int) -> None:
    Lease.objects.create(name="work", token="theirs", holder="elsewhere/boot/1", beats=7, seen=7)
    told: list[object] = []
    with time_machine.travel(datetime.now(UTC), tick=True) as clock:

        def take() -> None:
            told.append(leases.take("work", 0.5))
            connections.close_all()

        started = time.monotonic()
        other = threading.Thread(target=take)
        other.start()
        time.sleep(0.2)
        clock.shift(minutes * 60)
        other.join(10)
        assert not other.is_alive()
        spent = time.monotonic() - started
    assert told != [None]
    assert 0.5 <= spent < 8
