"""Reports take the time that rounds leave."""

from monitoring.services.collection import pace
from monitoring.services.collection.pace import Pace


def test_reports_have_their_share_while_rounds_are_in_time() -> None:
    calm = Pace()
    assert calm.pause(0.3, first=False) == 0.3 * (1 - pace.SHARE) / pace.SHARE
    assert calm.pause(0.3, first=True) < calm.pause(0.3, first=False)


def test_reports_step_back_while_rounds_are_late_and_never_stop() -> None:
    pressed = Pace()
    pressed.late(0.05)
    assert pace.LEAST_SHARE < pressed.share(first=True) < pace.FIRST_SHARE
    pressed.late(2.0)
    assert pressed.share(first=True) == pressed.share(first=False) == pace.LEAST_SHARE


def test_reports_come_back_when_rounds_are_in_time_again() -> None:
    relieved = Pace()
    relieved.late(0.2)
    for _ in range(100):
        relieved.late(0.0)
    assert relieved.share(first=False) > 0.9 * pace.SHARE
