"""The live data of one node: everything first, then what moved, and which part of the page must be fetched anew."""

from typing import Any

import msgspec

from monitoring.live.mailbox import Mailbox
from monitoring.live.payloads import ContainerTick, NodeTick, NumaTick
from monitoring.live.topics import NodeTopic


def tick(received: float, cpu: float = 0.5, hashes: dict[str, str] | None = None) -> NodeTick:
    return NodeTick(
        node=1,
        received=received,
        taken=received,
        hashes=hashes or {"machine": "m", "containers": "c"},
        busy=(0.125, None),
        numa={"0": NumaTick(0.125, 5, 6, None)},
        containers={
            "a": ContainerTick(cpu, 10, {"0": 10}, 1.0, 1.0),
            "b": ContainerTick(None, None, None, None, None),
        },
    )


class Listener:
    """A mailbox whose messages are read at once."""

    def __init__(self, topic: NodeTopic) -> None:
        self.heard: list[dict[str, Any]] = []
        self.topic = topic
        self.mailbox = Mailbox(self.send, topic, 1, "key")
        topic.add(self.mailbox)

    async def send(self, message: dict[str, Any]) -> None:
        raise AssertionError("nothing is sent here")

    def read(self) -> list[dict[str, Any]]:
        found = [*self.mailbox._controls]
        self.mailbox._controls.clear()
        message = self.mailbox._next()
        found += [message] if message else []
        return [msgspec.json.decode(each["text"]) for each in found]


def test_it_begins_with_everything_and_goes_on_with_what_moved() -> None:
    topic = NodeTopic(1)
    browser = Listener(topic)
    assert browser.read() == []
    topic.take(tick(100.0))
    (first,) = browser.read()
    assert set(first["containers"]) == {"a", "b"}
    assert first["busy"] == [0.125, None]
    assert first["numa"] == {"0": {"busy": 0.125, "used": 5, "free": 6, "file": None}}
    topic.take(tick(102.0, cpu=0.75))
    (second,) = browser.read()
    assert set(second["containers"]) == {"a"}
    assert second["seq"] == first["seq"] + 1
    assert second["epoch"] == first["epoch"]


def test_it_gives_everything_to_who_comes_later() -> None:
    topic = NodeTopic(1)
    topic.take(tick(100.0))
    topic.take(tick(102.0, cpu=0.75))
    (first,) = Listener(topic).read()
    assert set(first["containers"]) == {"a", "b"}
    assert first["seq"] == topic.sequence


def test_it_gives_everything_to_who_was_too_slow() -> None:
    topic = NodeTopic(1)
    browser = Listener(topic)
    topic.take(tick(100.0))
    browser.read()
    topic.take(tick(102.0, cpu=0.6))
    topic.take(tick(104.0, cpu=0.7))
    (late,) = browser.read()
    assert set(late["containers"]) == {"a", "b"}
    assert late["seq"] == topic.sequence


def test_it_ignores_what_is_older_than_what_it_has() -> None:
    topic = NodeTopic(1)
    topic.take(tick(100.0))
    before = topic.sequence
    topic.take(tick(99.0))
    assert topic.sequence == before


def test_it_goes_on_after_the_clock_was_set_back() -> None:
    topic = NodeTopic(1)
    topic.take(tick(10_000.0))
    before = topic.sequence
    topic.take(tick(9_400.0))
    assert topic.sequence == before + 1


def test_it_names_the_part_that_changed() -> None:
    topic = NodeTopic(1)
    browser = Listener(topic)
    topic.take(tick(100.0))
    browser.read()
    topic.take(tick(102.0, hashes={"machine": "m", "containers": "other"}))
    reload, message = browser.read()
    assert reload == {"type": "reload-part", "part": "containers"}
    assert message["containers_hash"] == "other"


def test_it_sends_at_most_two_kilobytes_a_tick_for_two_hundred_cpus() -> None:
    topic = NodeTopic(1)
    browser = Listener(topic)
    topic.take(tick(100.0))
    browser.read()
    numa = {str(i): NumaTick(0.123, 68_719_476_736, 68_719_476_736, 68_719_476_736) for i in range(8)}
    topic.take(msgspec.structs.replace(tick(102.0), busy=(0.123,) * 192, numa=numa))
    (message,) = browser.read()
    assert len(msgspec.json.encode(message)) < 2048
