"""A mailbox holds the newest state for one browser and never a queue of old ones."""

import asyncio
from typing import Any

import pytest

from monitoring import metrics
from monitoring.live.mailbox import CONTROLS, Mailbox


class Source:
    def __init__(self) -> None:
        self.sent = metrics.SENT.labels("test")
        self.state = "state 0"

    def whole(self) -> dict[str, Any] | None:
        return {"type": "websocket.send", "text": self.state}


class Browser:
    """What was sent; while `stuck` it takes nothing."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.closed: int | None = None
        self.free = asyncio.Event()
        self.free.set()

    async def send(self, message: dict[str, Any]) -> None:
        await self.free.wait()
        if message["type"] == "websocket.close":
            self.closed = message["code"]
        else:
            self.heard.append(message["text"])


def tick(text: str) -> dict[str, Any]:
    return {"type": "websocket.send", "text": text}


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


@pytest.fixture
async def parts() -> Any:
    source, browser = Source(), Browser()
    mailbox = Mailbox(browser.send, source, 1, "key")
    task = asyncio.ensure_future(mailbox.run())
    yield source, browser, mailbox
    task.cancel()


async def test_it_begins_with_the_whole_state_and_goes_on_with_ticks(parts: Any) -> None:
    _, browser, mailbox = parts
    mailbox.renew()
    await settle()
    for text in ("tick 1", "tick 2"):
        mailbox.tick(tick(text))
        await settle()
    assert browser.heard == ["state 0", "tick 1", "tick 2"]


async def test_it_gives_a_slow_browser_the_newest_state_and_nothing_in_between(parts: Any) -> None:
    source, browser, mailbox = parts
    mailbox.renew()
    await settle()
    browser.free.clear()
    for number in range(1, 1000):
        mailbox.tick(tick(f"tick {number}"))
        source.state = f"state {number}"
        await settle() if number < 3 else None
    browser.free.set()
    await settle()
    assert browser.heard == ["state 0", "tick 1", "state 999"]


async def test_it_sends_nothing_to_a_page_in_the_background(parts: Any) -> None:
    source, browser, mailbox = parts
    mailbox.renew()
    await settle()
    mailbox.pause(True)
    for number in range(20):
        mailbox.tick(tick(f"tick {number}"))
        await settle()
    assert browser.heard == ["state 0"]
    source.state = "state 20"
    mailbox.pause(False)
    await settle()
    assert browser.heard == ["state 0", "state 20"]


async def test_it_says_what_waits_before_it_closes(parts: Any) -> None:
    _, browser, mailbox = parts
    mailbox.control("goodbye")
    mailbox.close(1001, "restart")
    mailbox.close(1008, "too late")
    await settle()
    assert browser.heard == ["goodbye"]
    assert browser.closed == 1001


async def test_it_closes_a_browser_that_takes_no_control_messages(parts: Any) -> None:
    _, browser, mailbox = parts
    browser.free.clear()
    for number in range(CONTROLS + 2):
        mailbox.control(str(number))
    browser.free.set()
    await settle()
    for _ in range(4):
        await settle()
    assert browser.closed == 1013


async def test_it_knows_how_long_a_message_has_been_on_its_way(parts: Any) -> None:
    _, browser, mailbox = parts
    browser.free.clear()
    mailbox.renew()
    await settle()
    assert not mailbox.stalled(60)
    assert mailbox.stalled(-1)
    browser.free.set()
    await settle()
    assert not mailbox.stalled(-1)
