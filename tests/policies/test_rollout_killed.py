"""The worker dies, is slow, or is there twice, at every single place: each node is changed once, and nothing is left behind."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction
from pytest_django.fixtures import Settings

from monitoring.services import leases
from policies.models import Rollout
from policies.services.rollout import control, work
from policies.services.rollout.desk import Desk
from tests.policies import driving
from tests.policies.driving import ADA
from tests.policies.playedcluster import TEXT, KilledError, PlayedCluster

pytestmark = pytest.mark.timeout(400)  # some of these make a rollout thirty times
WRITES = ("begin", "finish", "start", "move", "settle", "go_back", "end", "close")
"""Of a desk: after each of them a worker may die, and after everything that it does in the cluster. Before an act is after its `begin`."""


@pytest.fixture
def boundaries(played: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> PlayedCluster:
    """One node; a worker that dies gives nothing up."""
    for name in ("n1", "n2"):
        row = played.machines.pop(name).row
        assert row is not None
        row.delete()
    dead: list[bool] = []
    real = leases.give_up

    def give_up(tenure: leases.Tenure) -> None:
        if dead:
            dead.clear()
            with leases._lock:
                leases._mine.discard(tenure.token)  # as after the end of a process
        else:
            real(tenure)

    def die() -> None:
        dead.append(True)
        raise KilledError

    def around(name: str) -> Callable[..., Any]:
        method = getattr(Desk, name)

        def bounded(self: Desk, *args: Any, **rest: Any) -> Any:
            found = method(self, *args, **rest)
            played.boundary()
            return found

        return bounded

    monkeypatch.setattr(leases, "give_up", give_up)
    for name in WRITES:
        monkeypatch.setattr(Desk, name, around(name))
    played.do = die
    return played


def tries(played: PlayedCluster, do: Callable[[], None] | None = None) -> Iterator[int]:
    """Boundary by boundary, each from the same beginning, until one lies behind the end."""
    machine = played.machines["n0"]
    kept = [(thing, copy.copy(vars(thing))) for thing in (machine, machine.applier)]
    held: list[dict[str, Any]] = [played.made, played.messages, played.pods]
    copies, began, at = [dict(each) for each in held], played.now, 0
    while True:
        at += 1
        written = transaction.savepoint()
        played.seize(at, do or played.do)
        played.events, played.peak, machine.applier.changes = [], 0, []
        yield at
        transaction.savepoint_rollback(written)
        if played.boundaries < at:
            return
        for thing, values in kept:
            vars(thing).update(values)
        for each, values in zip(held, copies, strict=True):
            each.clear()
            each.update(values)
        played.now = began
        played.tell(machine)


def to_its_end(played: PlayedCluster, rollout: Rollout) -> None:
    """Whoever dies, another worker goes on."""
    for _ in range(80):
        rollout.refresh_from_db()
        if not rollout.is_active:
            return
        try:
            driving.look(played, rollout)
        except KilledError:
            continue
    raise AssertionError(f"{driving.stands(rollout)} {rollout.waits_for} {rollout.state}")


def test_killed_anywhere_on_its_way_forward(boundaries: PlayedCluster) -> None:
    rollout = driving.confirmed(boundaries)
    often = 0
    for often in tries(boundaries):
        to_its_end(boundaries, rollout)
        assert rollout.state == "done", (often, driving.stands(rollout), rollout.cause)
        assert driving.outcomes(rollout) == {"n0": "changed"}
        assert len(boundaries.machines["n0"].applier.changes) == 1
        driving.check(boundaries, rollout)
    assert often > 20


def test_killed_anywhere_on_its_way_back(boundaries: PlayedCluster) -> None:
    rollout = driving.confirmed(boundaries)
    to_its_end(boundaries, rollout)
    control.roll_back(rollout, ADA, boundaries.now)
    often = 0
    for often in tries(boundaries):
        to_its_end(boundaries, rollout)
        assert rollout.state == "returned", (often, driving.stands(rollout), rollout.cause)
        assert boundaries.machines["n0"].applier.text == TEXT
        assert [act for _epoch, act in boundaries.machines["n0"].applier.changes] == ["restore"]
        driving.check(boundaries, rollout)
    assert often > 20


def test_killed_anywhere_while_a_change_is_taken_back(boundaries: PlayedCluster) -> None:
    boundaries.machines["n0"].settings = {"cpuManagerPolicy": "none", "systemReserved": {"cpu": "1"}}
    rollout = driving.confirmed(boundaries)
    for _ in range(80):
        if rollout.nodes.get().step == "undo":
            break
        driving.look(boundaries, rollout)
    machine = boundaries.machines["n0"]
    assert len(machine.applier.changes) == 1
    for often in tries(boundaries):
        to_its_end(boundaries, rollout)
        assert rollout.state == "stopped", (often, driving.stands(rollout))
        assert driving.outcomes(rollout) == {"n0": "failed"}
        assert machine.applier.text == TEXT
        driving.check(boundaries, rollout)


def test_paused_anywhere_nothing_is_begun_until_somebody_resumes(boundaries: PlayedCluster) -> None:
    rollout = driving.confirmed(boundaries)
    seen: list[int] = []

    def pause() -> None:
        held = Rollout.objects.get(pk=rollout.pk)
        if held.state == "running":
            control.pause(held, ADA, boundaries.now)
            seen.append(len(boundaries.events))

    for _ in tries(boundaries, pause):
        seen.clear()
        to_its_rest(boundaries, rollout)
        if rollout.state == "paused":
            for _ in range(3):
                driving.look(boundaries, rollout)
            done = [what for what, _who in boundaries.events[seen[0] :] if not what.startswith("applier")]
            assert len(done) <= 1, done  # what was begun before
            control.resume(rollout, ADA, boundaries.now)
            to_its_end(boundaries, rollout)
        assert (rollout.state, driving.outcomes(rollout)) == ("done", {"n0": "changed"})
        driving.check(boundaries, rollout)


def to_its_rest(played: PlayedCluster, rollout: Rollout) -> None:
    for _ in range(80):
        rollout.refresh_from_db()
        if not rollout.is_active or rollout.state == "paused":
            return
        driving.look(played, rollout)


def test_stopped_anywhere_the_node_is_wholly_changed_or_not_at_all(boundaries: PlayedCluster) -> None:
    rollout = driving.confirmed(boundaries)
    ends = set()

    def stop() -> None:
        held = Rollout.objects.get(pk=rollout.pk)
        if held.state == "running":
            control.stop(held, ADA, boundaries.now)

    for _ in tries(boundaries, stop):
        to_its_end(boundaries, rollout)
        text, outcome = boundaries.machines["n0"].applier.text or "", driving.outcomes(rollout)["n0"]
        assert (outcome == "changed") == ("single-numa-node" in text), outcome
        assert outcome in ("changed", "skipped", "")
        ends.add((rollout.state, outcome))
        driving.check(boundaries, rollout)
    assert ends >= {("stopped", "skipped"), ("stopped", "changed"), ("done", "changed")}


# ---------------------------------------------------------------- two at once


def test_a_second_worker_does_nothing_while_the_first_one_works(
    played: PlayedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = driving.confirmed(played)
    monkeypatch.setattr(leases, "_stands_still", lambda *_: False)  # the first one moves
    found: list[float | None] = []
    played.seize(1, lambda: found.append(work.work(rollout.pk, lambda: played.now)))
    driving.through(played, rollout)
    assert found == [None]
    assert rollout.state == "done"
    driving.check(played, rollout)


def test_whoever_was_thought_dead_and_was_only_slow_writes_nothing(
    played: PlayedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wakes right before it would cordon the node, when another one has gone on for long."""
    rollout = driving.confirmed(played)
    monkeypatch.setattr(leases, "_stands_still", lambda *_: True)

    def sleep() -> None:
        played.before = lambda: None
        for _ in range(4):
            driving.look(played, rollout)

    played.before = sleep
    driving.look(played, rollout)
    assert played.count("cordon").total() == 1
    driving.through(played, rollout)
    assert rollout.state == "done"
    driving.check(played, rollout)


def test_every_task_delivered_twice_comes_to_the_same(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    for _ in range(100):
        if not rollout.is_active:
            break
        played.pass_time()
        work.work(rollout.pk, lambda: played.now)
        assert work.work(rollout.pk, lambda: played.now) is None
        rollout.refresh_from_db()
    assert rollout.state == "done"
    driving.check(played, rollout)


def test_a_rollout_that_nobody_looks_at_is_offered_again(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    assert work.unfinished(played.now) == [rollout.pk]
    driving.look(played, rollout)
    assert work.unfinished(played.now) == []
    played.pass_time(60)
    assert work.unfinished(played.now) == [rollout.pk]
    control.pause(rollout, ADA, played.now)
    assert work.unfinished(played.now) == []


# ---------------------------------------------------------------- clocks and backups


@pytest.mark.parametrize("jump", [600.0, -600.0])
def test_a_clock_that_jumps_proves_nothing(played: PlayedCluster, settings: Settings, jump: float) -> None:
    """What has to hold for a while is counted by looks."""
    settings.NUMAWEB_ROLLOUT_READY = 10
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "verify")
    played.pass_time(jump)
    work.work(rollout.pk, lambda: played.now)
    assert driving.stands(rollout)["n0"][0] == "verify"
    assert rollout.nodes.get(name="n0").steady < 10
    driving.through(played, rollout)
    assert rollout.state == "done"
    driving.check(played, rollout)


def test_a_database_from_a_backup_is_held_against_the_nodes(played: PlayedCluster) -> None:
    """What was done since is seen, and not done again."""
    rollout = driving.confirmed(played)
    backup = transaction.savepoint()
    driving.through(played, rollout, lambda: driving.stands(rollout)["n1"][0] == "verify")
    transaction.savepoint_rollback(backup)
    assert [len(each.applier.changes) for each in played.machines.values()] == [1, 1, 0]
    assert played.ours() == ["n1"]
    driving.through(played, Rollout.objects.get(pk=rollout.pk))
    assert driving.outcomes(rollout) == {"n0": "unchanged", "n1": "unchanged", "n2": "changed"}
    assert [len(each.applier.changes) for each in played.machines.values()] == [1, 1, 1]
    assert played.ours() == []
