"""How fast a rollout goes: canary, batches, how many nodes may be away, pauses, windows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitoring import hot
from policies.plan import Window
from policies.services.rollout import pacing
from tests.policies import driving
from tests.policies.playedcluster import PlayedCluster


def test_after_the_canary_as_many_as_may_be_away(played: PlayedCluster) -> None:
    for number in range(3, 6):
        played.add(f"n{number}")
    rollout = driving.confirmed(played, canary=1, batch="5", max_unavailable="2")
    driving.through(played, rollout, lambda: bool(played.count("uncordon")))
    assert played.peak == 1
    driving.through(played, rollout)
    assert rollout.state == "done"
    assert played.peak == 2
    driving.check(played, rollout, most=2)


def test_nodes_that_are_down_count(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played, max_unavailable="2", canary=0, batch="3")
    played.machines["n1"].ready = played.machines["n2"].ready = False
    for _ in range(4):
        assert driving.look(played, rollout) == 10
    rollout.refresh_from_db()
    assert rollout.waits_for == {"code": "nodes-down", "values": {"nodes": "n1, n2", "most": 2}}
    assert played.events == []
    played.machines["n1"].ready = played.machines["n2"].ready = True
    driving.through(played, rollout)
    assert rollout.state == "done"
    driving.check(played, rollout, most=2)


def test_nodes_that_are_down_already_when_it_is_planned_count_too(played: PlayedCluster) -> None:
    """The plan leaves them out, since nobody tells of them."""
    for name in ("n1", "n2"):
        machine = played.machines[name]
        machine.ready = machine.reports = False
        assert machine.row is not None
        hot.store().forget([machine.row.pk])
    rollout = driving.confirmed(played, max_unavailable="2", canary=0, batch="3")
    assert driving.stands(rollout) == {"n0": ("waiting", "")}
    for _ in range(4):
        driving.look(played, rollout)
    rollout.refresh_from_db()
    assert rollout.waits_for == {"code": "nodes-down", "values": {"nodes": "n1, n2", "most": 2}}
    assert played.events == []
    played.machines["n1"].ready = True
    driving.through(played, rollout)
    assert rollout.state == "done"


def test_the_next_batch_waits_for_the_last_node_of_this_one_and_the_pause(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played, canary=1, batch="1", pause_between=600)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "ended")
    driving.look(played, rollout)
    rollout.refresh_from_db()
    assert rollout.waits_for["code"] == "pause"
    assert driving.stands(rollout)["n1"][0] == "waiting"
    played.pass_time(610)
    driving.look(played, rollout)
    assert driving.stands(rollout)["n1"][0] != "waiting"


def test_a_skipped_canary_proves_nothing(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played, canary=1, batch="2", max_unavailable="3")
    played.machines["n0"].cordoned = True
    driving.through(played, rollout, lambda: bool(played.count("job")))
    assert [step for step, _outcome in driving.stands(rollout).values()].count("waiting") == 1
    driving.through(played, rollout)
    assert driving.outcomes(rollout) == {"n0": "skipped", "n1": "changed", "n2": "changed"}


def test_outside_its_window_no_node_is_begun_and_one_that_is_under_way_goes_on(played: PlayedCluster) -> None:
    start = played.now.replace(second=0, microsecond=0)
    minute = f"{start.hour:02}:{start.minute:02}"
    later = (
        f"{start.hour:02}:{(start.minute + 1) % 60:02}"
        if start.minute < 59
        else f"{(start.hour + 1) % 24:02}:00"
    )
    rollout = driving.confirmed(played, window=Window(start=minute, end=later))
    driving.look(played, rollout)
    assert played.count("cordon").total() == 1
    played.pass_time(120)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "ended")
    driving.look(played, rollout)
    rollout.refresh_from_db()
    assert rollout.waits_for["code"] == "window"
    assert played.count("cordon").total() == 1


@pytest.mark.parametrize(
    ("at", "is_open"),
    [
        ("2026-12-04T21:59", False),  # Friday
        ("2026-12-04T22:00", True),
        ("2026-12-05T03:59", True),  # Saturday, in Friday's window
        ("2026-12-05T04:00", False),
        ("2026-12-05T22:30", False),
        ("2026-12-04T03:00", False),  # Thursday's would have been
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_on_which_it_began(at: str, is_open: bool) -> None:
    window = Window(start="22:00", end="04:00", days=("fri",))
    assert pacing.is_open(window, datetime.fromisoformat(at).replace(tzinfo=UTC)) is is_open


def test_a_window_stands_in_its_zone() -> None:
    window = Window(start="01:00", end="05:00", zone="Asia/Shanghai")
    now = datetime(2026, 12, 4, 18, 0, tzinfo=UTC)
    assert pacing.is_open(window, now)
    assert pacing.opens(window, now) == datetime(2026, 12, 5, 17, 0, tzinfo=UTC)
