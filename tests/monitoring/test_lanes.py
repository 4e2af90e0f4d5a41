"""Whose turn it is: slow and failing exporters take no places from the others."""

from monitoring.services.collection.lanes import FIRST_PLACES, PATIENCE, Lane, Lanes


class One:
    def __init__(self, lane: Lane = "fast") -> None:
        self.lane = lane
        self.gone = 0
        self.errors: list[Exception] = []

    def go(self) -> None:
        self.gone += 1

    def broke(self, error: Exception) -> None:
        self.errors.append(error)


class Broken(One):
    def go(self) -> None:
        raise KeyError("a defect")


def test_it_lets_so_many_go_and_the_others_in_order() -> None:
    lanes = Lanes(2)
    ones = [One() for _ in range(4)]
    for one in ones:
        lanes.enter(one, 0.0)
    assert [one.gone for one in ones] == [1, 1, 0, 0]
    lanes.leave(ones[0], 0.1)
    assert [one.gone for one in ones] == [1, 1, 1, 0]
    assert lanes.waiting == 1


def test_it_gives_the_places_of_slow_ones_away() -> None:
    lanes = Lanes(1)
    slow, next_ = One(), One()
    lanes.enter(slow, 0.0)
    lanes.enter(next_, 0.0)
    lanes.sweep(PATIENCE / 2)
    assert next_.gone == 0
    lanes.sweep(PATIENCE * 1.1)
    assert next_.gone == 1
    lanes.leave(slow, 1.0)  # takes back no place that it does not have any more
    third, fourth = One(), One()
    lanes.enter(third, 1.0)
    lanes.leave(next_, 1.0)
    lanes.enter(fourth, 1.0)
    assert (third.gone, fourth.gone) == (1, 0)


def test_it_keeps_failing_ones_in_a_lane_of_their_own() -> None:
    lanes = Lanes(1)
    sick, sicker, sound = One("slow"), One("slow"), One()
    for one in (sick, sicker, sound):
        lanes.enter(one, 0.0)
    assert (sick.gone, sicker.gone, sound.gone) == (1, 0, 1)
    lanes.leave(sick, 1.0)
    assert sicker.gone == 1


def test_it_forgets_who_is_not_asked_any_more() -> None:
    lanes = Lanes(1)
    asked, waiting, last = One(), One(), One()
    for one in (asked, waiting, last):
        lanes.enter(one, 0.0)
    lanes.drop(waiting, 0.0)
    lanes.drop(asked, 0.0)
    assert (waiting.gone, last.gone, lanes.waiting) == (0, 1, 0)


def test_it_asks_a_few_new_ones_at_a_time() -> None:
    lanes = Lanes(100)
    new = [One("first") for _ in range(FIRST_PLACES + 2)]
    for one in new:
        lanes.enter(one, 0.0)
    assert sum(one.gone for one in new) == FIRST_PLACES
    lanes.sweep(PATIENCE * 2)
    assert sum(one.gone for one in new) == FIRST_PLACES
    lanes.leave(new[0], 1.0)
    assert sum(one.gone for one in new) == FIRST_PLACES + 1


def test_one_that_breaks_when_its_turn_comes_hears_of_it_and_nobody_else() -> None:
    lanes = Lanes(1)
    first, broken, last = One(), [Broken() for _ in range(3000)], One()
    for one in (first, *broken, last):
        lanes.enter(one, 0.0)
    lanes.leave(first, 0.1)
    assert all(isinstance(one.errors[0], KeyError) and len(one.errors) == 1 for one in broken)
    assert (first.errors, last.errors, last.gone, lanes.waiting) == ([], [], 1, 0)


def test_one_that_breaks_at_once_takes_no_place() -> None:
    lanes = Lanes(1)
    broken, next_ = Broken(), One()
    lanes.enter(broken, 0.0)
    lanes.enter(next_, 0.0)
    assert (len(broken.errors), next_.gone) == (1, 1)
