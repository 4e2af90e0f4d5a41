"""The cells of a cluster at the hub: what is loaded and what is told go together in whatever order they come."""

from monitoring import hot
from monitoring.live.topics import OverviewTopic
from tests.monitoring.browser import Page
from tests.monitoring.hot_contract import block


def seen(topic: OverviewTopic) -> list[int]:
    """What a page has that gets the whole state now."""
    message, page = topic.whole(), Page()
    assert message is not None
    page.hear(message["bytes"])
    return [int(cell) for cell in page.busy]


def test_it_has_what_the_store_had() -> None:
    topic = OverviewTopic(1)
    assert topic.whole() is None
    topic.load([block([0], b"\x01\x02", taken=5.0), block([4], b"\x05\x06", taken=6.0)], 8)
    assert seen(topic) == [1, 2, hot.UNKNOWN, hot.UNKNOWN, 5, 6, hot.UNKNOWN, hot.UNKNOWN]


def test_it_loses_nothing_when_the_store_came_back_empty() -> None:
    topic = OverviewTopic(1)
    topic.load([block([0], b"\x01\x02", taken=5.0)], 2)
    topic.load([], 0)
    assert seen(topic) == [1, 2]
    topic.take(block([2], b"\x03\x04", taken=6.0))
    topic.load([block([0], b"\x09\x09", taken=5.5)], 0)
    assert seen(topic) == [9, 9, 3, 4]


def test_it_believes_a_store_that_is_ahead() -> None:
    topic = OverviewTopic(1)
    topic.load([block([0], b"\x01\x02", taken=5.0)], 2)
    topic.load([block([0], b"\xff\x07", taken=9.0)], 2)
    assert seen(topic) == [hot.UNKNOWN, 7]


def test_it_grows_with_its_cluster() -> None:
    topic = OverviewTopic(1)
    topic.load([], 2)
    topic.take(block([4], b"\x05\x06", taken=6.0))
    assert seen(topic) == [hot.UNKNOWN] * 4 + [5, 6]
