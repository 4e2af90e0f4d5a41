"""Open pages over a real Redis: news arrives from another process's bus, and everything comes back after an outage."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from monitoring import hot, live
from monitoring.hot.redisstore import RedisStore
from monitoring.live.bus import RedisBus
from monitoring.live.hub import Hub
from monitoring.live.mailbox import Mailbox
from tests import stack
from tests.monitoring import hot_contract
from tests.monitoring.browser import Page

CLUSTER = 1
SECONDS = 20.0
OUTAGE = 30.0
"""So long that whoever tries again less and less would come late."""


@pytest.fixture
def own_redis(tmp_path: Path, settings: Settings) -> Iterator[stack.Part]:
    with stack.redis(tmp_path) as part:
        settings.NUMAWEB_REDIS_LIVE_URL = part.url
        settings.NUMAWEB_LIVE_TICK = 0.05
        settings.NUMAWEB_LIVE_WATCH = settings.NUMAWEB_LIVE_SESSIONS = settings.NUMAWEB_LIVE_RECHECK = 1000.0
        hot.stores.store.cache_clear()
        live.bus.cache_clear()
        yield part
    hot.stores.store.cache_clear()
    live.bus.cache_clear()


@pytest.fixture
async def hub(own_redis: stack.Part) -> AsyncIterator[Hub]:
    hub = Hub()
    await hub.start()
    yield hub
    await hub.stop()


class Browser:
    """A page without a socket: what the hub sends is read at once."""

    def __init__(self) -> None:
        self.page = Page()
        self.states: list[str] = []

    async def send(self, message: dict[str, Any]) -> None:
        if message.get("bytes"):
            self.page.hear(message["bytes"])
        elif message.get("text"):
            told = json.loads(message["text"])
            if told["type"] == "state":
                self.states.append(told["source"])

    async def sees(self, reached: Callable[[], bool]) -> float:
        """Seconds until something is so."""
        started = time.monotonic()
        async with asyncio.timeout(SECONDS):
            while not reached():  # noqa: ASYNC110 - what is waited for is on no event
                await asyncio.sleep(0.02)
        return time.monotonic() - started


async def looking(hub: Hub) -> tuple[Browser, asyncio.Task[None]]:
    browser = Browser()
    topic = await hub.overview(CLUSTER)
    mailbox = Mailbox(browser.send, topic, 1, "key")
    return browser, asyncio.ensure_future(hub.run(topic, mailbox))


class Collector:
    """Another process: a store and a bus of its own."""

    def __init__(self, url: str) -> None:
        self.store, self.bus = RedisStore(url), RedisBus(url)

    def tell(self, busy: bytes) -> None:
        block = hot_contract.block([0], busy, taken=time.time())
        try:
            self.store.put_cells(CLUSTER, 0, block)
        except hot.StoreError:
            return
        self.bus.publish(live.CellsNews(CLUSTER, block))


async def test_it_hears_what_another_process_tells(hub: Hub, own_redis: stack.Part) -> None:
    collector = Collector(own_redis.url)
    await asyncio.to_thread(collector.tell, b"\x01\x02")
    browser, task = await looking(hub)
    await browser.sees(lambda: browser.page.busy.tolist() == [1, 2])
    await asyncio.to_thread(collector.tell, b"\x08\x09")
    await browser.sees(lambda: browser.page.busy.tolist() == [8, 9])
    task.cancel()


async def test_it_reads_everything_again_where_news_was_lost(hub: Hub, own_redis: stack.Part) -> None:
    collector = Collector(own_redis.url)
    browser, task = await looking(hub)
    await asyncio.to_thread(collector.tell, b"\x01\x02")
    await browser.sees(lambda: browser.page.busy.tolist() == [1, 2])
    before = browser.page.sequence
    collector.bus._number += 5  # five messages that nobody got
    await asyncio.to_thread(collector.tell, b"\x08\x09")
    await browser.sees(lambda: browser.page.busy.tolist() == [8, 9] and browser.page.sequence > before)
    assert not browser.page.gap
    task.cancel()


async def test_it_is_live_within_seconds_after_redis_came_back_empty(hub: Hub, own_redis: stack.Part) -> None:
    collector = Collector(own_redis.url)
    browser, task = await looking(hub)
    await asyncio.to_thread(collector.tell, b"\x01\x02")
    await browser.sees(lambda: browser.page.busy.tolist() == [1, 2])
    own_redis.server.kill()
    await browser.sees(lambda: browser.states[-1:] == ["lost"])
    await asyncio.to_thread(collector.tell, b"\x03\x04")
    await asyncio.sleep(OUTAGE)
    own_redis.server.start()  # not in a thread: the program would end with it
    took = await browser.sees(lambda: browser.states[-1] == "ok")
    await asyncio.to_thread(collector.tell, b"\x05\x06")
    took += await browser.sees(lambda: browser.page.busy.tolist() == [5, 6])
    assert took <= 5
    assert not browser.page.gap
    task.cancel()
