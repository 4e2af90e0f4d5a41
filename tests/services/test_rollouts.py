"""Rollouts over the real servers: workers that really run at once, a database and a Redis that go away midway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import TypeVar

import psycopg
import pytest
from django.db import Error, IntegrityError, connection, connections, transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring import hot
from policies import tasks
from policies.models import Rollout
from policies.services.rollout import control, reach, work
from policies.services.rollout.error import RolloutError
from tests import stack
from tests.monitoring.pages import refusals, seeds
from tests.policies import driving
from tests.policies.driving import ADA
from tests.policies.playedcluster import PlayedCluster

T = TypeVar("T")
ROUNDS = 200
AHEAD = timedelta(minutes=15)
"""Of our clock, so that what exporters told is new however slow the machine is."""
PATIENCE = 300.0
"""Seconds for one round on a machine that does much else."""


@pytest.fixture
def played(on_postgres: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedCluster]:
    """Two nodes with a pod each; rollouts are switched on and their waits are short."""
    settings.NUMAWEB_ROLLOUTS = True
    settings.NUMAWEB_ROLLOUT_READY, settings.NUMAWEB_ROLLOUT_GATE = 4, 20
    hot.stores.store.cache_clear()
    cluster = seeds.cluster("west", "West")
    refusals.connected(cluster, source="token", server="https://192.0.2.1:6443", token="t")
    made = PlayedCluster(cluster, timezone.now() + AHEAD)
    monkeypatch.setattr(reach, "enter", made.enter)
    for name in ("n0", "n1"):
        made.add(name)
        made.run(f"web-{name}", name)
    yield made
    hot.stores.store.cache_clear()


class Two:
    """Two workers, each with a connection of its own, that begin in the same moment."""

    def __init__(self) -> None:
        self._threads, self._start = ThreadPoolExecutor(2), Barrier(2)

    def both(self, one: Callable[[], T], other: Callable[[], T]) -> list[T | Exception]:
        """What each came to."""

        def begin(what: Callable[[], T]) -> T | Exception:
            self._start.wait(PATIENCE)
            try:
                return what()
            except (RolloutError, Error) as error:
                return error

        return [
            each.result(PATIENCE) for each in [self._threads.submit(begin, what) for what in (one, other)]
        ]

    def close(self) -> None:
        self.both(connections.close_all, connections.close_all)
        self._threads.shutdown()


@pytest.fixture
def two(played: PlayedCluster) -> Iterator[Two]:
    found = Two()
    yield found
    found.close()


def test_two_workers_at_once_do_each_act_once(played: PlayedCluster, two: Two, settings: Settings) -> None:
    settings.NUMAWEB_ROLLOUT_LEASE = 5.0  # who finds it taken looks again after a tenth of that
    rollout = driving.confirmed(played)

    def one_round() -> float | None:
        return work.work(rollout.pk, lambda: played.now)

    for _ in range(ROUNDS):
        if not rollout.is_active:
            break
        played.pass_time()
        found = two.both(one_round, one_round)
        assert not [each for each in found if isinstance(each, Exception)], found
        rollout.refresh_from_db()
    assert (rollout.state, set(driving.outcomes(rollout).values())) == ("done", {"changed"})
    driving.check(played, rollout)


def test_two_beats_make_one_round_of_each_period(
    played: PlayedCluster, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: list[int] = []
    monkeypatch.setattr(tasks, "offer_rollout", lambda number, _seconds=0.0: offered.append(number))
    rollout = driving.confirmed(played)
    two.both(tasks.resume_rollouts, tasks.resume_rollouts)
    assert offered == [rollout.pk, rollout.pk]

    def one_round() -> float | None:
        return work.work(rollout.pk, lambda: played.now)

    found = two.both(one_round, one_round)
    assert sorted(each is None for each in found) == [False, True], found
    assert played.count("cordon").total() == 1
    driving.through(played, rollout)
    driving.check(played, rollout)


def test_of_two_that_are_confirmed_at_once_one_runs(played: PlayedCluster, two: Two) -> None:
    one, other = driving.planned(played), driving.planned(played)

    def confirm(of: Rollout) -> Callable[[], None]:
        return lambda: control.confirm(of, of.plan_hash, 2, ADA, timezone.now())

    found = two.both(confirm(one), confirm(other))
    assert sorted(getattr(each, "code", "") for each in found) == ["", "busy"]
    states = sorted(Rollout.objects.values_list("state", flat=True))
    assert states == ["planned", "running"]
    with pytest.raises(IntegrityError, match="one_active_rollout"), transaction.atomic():
        Rollout.objects.filter(state="planned").update(state="running")


@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_database_that_goes_away_midway_leaves_nothing_half_done(
    played: PlayedCluster, postgres: stack.Part, at: int
) -> None:
    """After the cordon, the order, the applier's work: every connection breaks and none is taken on."""
    rollout = driving.confirmed(played)
    gone: list[bool] = []

    def go_away() -> None:
        gone.append(True)
        server.execute("ALTER DATABASE models ALLOW_CONNECTIONS false")
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'models'")

    with psycopg.connect(postgres.url, autocommit=True) as server:
        played.seize(at, go_away)
        try:
            with pytest.raises(Error):
                driving.through(played, rollout)
        finally:
            server.execute("ALTER DATABASE models ALLOW_CONNECTIONS true")
    assert gone
    rollout = came_back(lambda: Rollout.objects.get(pk=rollout.pk))
    assert rollout.is_active
    driving.through(played, rollout)
    assert set(driving.outcomes(rollout).values()) == {"changed"}
    driving.check(played, rollout)


def came_back(ask: Callable[[], T]) -> T:
    """What a database answers that is there again; the pool of connections tries at growing distances."""
    for _ in range(12):
        connection.close()  # as a task's end does
        try:
            return ask()
        except Error:
            continue
    raise AssertionError("the database did not come back")


def test_without_redis_nothing_is_begun_and_afterwards_it_goes_on(
    played: PlayedCluster, settings: Settings, tmp_path: Path
) -> None:
    """It comes back empty, and until the exporters have told again nothing counts as well."""
    with stack.redis(tmp_path) as redis:
        settings.NUMAWEB_REDIS_LIVE_URL = redis.url
        hot.stores.store.cache_clear()
        played.pass_time()
        rollout = driving.confirmed(played)
        driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "verify")
        redis.server.kill()
        before = list(played.events)
        for machine in played.machines.values():
            machine.reports = False
        for _ in range(3):
            driving.look(played, rollout)
        rollout.refresh_from_db()
        assert (rollout.state, (rollout.waits_for or {}).get("code")) == ("running", "store")
        assert played.events == before
        redis.server.start()
        driving.look(played, rollout)
        assert driving.stands(rollout)["n0"][0] == "verify"
        for machine in played.machines.values():
            machine.reports = True
        driving.through(played, rollout)
        assert set(driving.outcomes(rollout).values()) == {"changed"}
        driving.check(played, rollout)
