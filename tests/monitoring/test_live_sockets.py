"""The WebSockets as a browser meets them: who may look, what it gets, and what it may not do."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as project
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django.fixtures import Settings

from monitoring import hot, live
from monitoring.live.hub import Hub
from monitoring.models import Cluster, Node, Topology
from numaweb.asgi import application
from tests.monitoring import hot_contract
from tests.monitoring.browser import Page, Socket

pytestmark = pytest.mark.django_db(transaction=True)
START = datetime(2026, 1, 1, tzinfo=UTC)
OVERVIEW = "/ws/c/lab/overview/"
NODE = "/ws/c/lab/nodes/n1/"


@pytest.fixture
def cluster(settings: Settings) -> Cluster:
    settings.NUMAWEB_LIVE_TICK = 0.05
    settings.NUMAWEB_LIVE_WATCH = 0.2
    settings.NUMAWEB_LIVE_SESSIONS = 0.1
    settings.NUMAWEB_LIVE_RECHECK = 0.1
    cluster = Cluster.objects.create(slug="lab", name="Lab", cells=4)
    topology = Topology.objects.create(hash="t", document=b"{}", cpus=4, numa_nodes=2, sockets=1)
    Node.objects.create(
        cluster=cluster, name="n1", topology=topology, slot=0, first_seen=START, last_seen=START
    )
    return cluster


@pytest.fixture
async def hub(cluster: Cluster) -> AsyncIterator[Hub]:
    await live.hub.start()
    yield live.hub
    await live.hub.stop()


def socket(client: Client | None, path: str, origin: str = "http://testserver") -> Socket:
    headers = [(b"host", b"testserver"), (b"origin", origin.encode())]
    if client is not None:
        cookie = client.cookies[project.SESSION_COOKIE_NAME].value
        headers.append((b"cookie", f"{project.SESSION_COOKIE_NAME}={cookie}".encode()))
    return Socket(application, path, headers=headers)


async def opened(client: Client | None, path: str) -> Socket:
    made = socket(client, path)
    assert await made.connect()
    return made


async def text(browser: Socket, kind: str) -> dict[str, Any]:
    """The next text frame of a kind; others are skipped."""
    while True:
        found = await browser.receive_output(5)
        if found["type"] == "websocket.send" and found.get("text"):
            message: dict[str, Any] = msgspec.json.decode(found["text"])
            if message["type"] == kind:
                return message
        assert found["type"] == "websocket.send", found


async def frame(browser: Socket, page: Page) -> None:
    """The next binary frame; texts are skipped."""
    while True:
        found = await browser.receive_output(5)
        assert found["type"] == "websocket.send", found
        if found.get("bytes"):
            page.hear(found["bytes"])
            return


async def closed(browser: Socket) -> int:
    while True:
        found = await browser.receive_output(5)
        if found["type"] == "websocket.close":
            return int(found["code"])


def news(cluster: Cluster, slots: list[int], busy: bytes) -> hot.Cells:
    block = hot_contract.block(slots, busy, taken=time.time())
    hot.store().put_cells(cluster.pk, 0, block)
    live.bus().publish(live.CellsNews(cluster.pk, block))
    return block


async def test_it_sends_the_whole_state_and_then_changes(
    hub: Hub, cluster: Cluster, as_viewer: Client
) -> None:
    news(cluster, [0], b"\x01\x02")
    browser, page = await opened(as_viewer, OVERVIEW), Page()
    hello = await text(browser, "hello")
    assert (hello["unit"], hello["unknown"], hello["topic"]) == (200, 255, "overview")
    await frame(browser, page)
    assert page.busy.tolist() == [1, 2]
    await asyncio.to_thread(news, cluster, [0], b"\x09\x02")
    await frame(browser, page)
    assert page.busy.tolist() == [9, 2]
    await asyncio.to_thread(news, cluster, [2], b"\x07\x07")
    await frame(browser, page)
    assert page.busy.tolist() == [9, 2, 7, 7]
    assert not page.gap
    await browser.leave()


async def test_it_encodes_once_for_all(hub: Hub, cluster: Cluster, as_viewer: Client) -> None:
    news(cluster, [0], b"\x01\x02")
    browsers = [await opened(as_viewer, OVERVIEW) for _ in range(3)]
    pages = [Page() for _ in browsers]
    for browser, page in zip(browsers, pages, strict=True):
        await frame(browser, page)
    await asyncio.to_thread(news, cluster, [0], b"\x05\x05")
    for browser, page in zip(browsers, pages, strict=True):
        await frame(browser, page)
        assert page.busy.tolist() == [5, 5]
    assert len({page.sequence for page in pages}) == 1
    for browser in browsers:
        await browser.leave()


async def test_it_is_silent_while_a_page_is_in_the_background(
    hub: Hub, cluster: Cluster, as_viewer: Client
) -> None:
    news(cluster, [0], b"\x01\x02")
    browser, page = await opened(as_viewer, OVERVIEW), Page()
    await frame(browser, page)
    await browser.say('{"type":"pause"}')
    await asyncio.sleep(0.1)
    await asyncio.to_thread(news, cluster, [0], b"\x05\x05")
    await asyncio.sleep(0.15)
    await asyncio.to_thread(news, cluster, [0], b"\x06\x06")
    await browser.say('{"type":"resume"}')
    await frame(browser, page)
    while page.busy.tolist() != [6, 6]:
        assert not page.gap
        await frame(browser, page)
    assert not page.gap
    await browser.leave()


async def test_it_sends_everything_again_when_a_page_asks(
    hub: Hub, cluster: Cluster, as_viewer: Client
) -> None:
    news(cluster, [0], b"\x01\x02")
    browser, page = await opened(as_viewer, OVERVIEW), Page()
    await frame(browser, page)
    page.busy[:] = 0
    await browser.say('{"type":"resync"}')
    await frame(browser, page)
    assert page.busy.tolist() == [1, 2]
    await browser.leave()


@pytest.mark.parametrize("path", [OVERVIEW, NODE])
async def test_it_refuses_who_is_not_signed_in(hub: Hub, cluster: Cluster, path: str) -> None:
    browser = await opened(None, path)
    assert (await text(browser, "refused"))["code"] == "signed-out"
    assert await closed(browser) == 4401


async def test_it_refuses_who_has_no_role(hub: Hub, cluster: Cluster, as_stranger: Client) -> None:
    browser = await opened(as_stranger, OVERVIEW)
    assert (await text(browser, "refused"))["code"] == "forbidden"
    assert await closed(browser) == 4403


@pytest.mark.parametrize("path", ["/ws/c/other/overview/", "/ws/c/lab/nodes/n9/", "/ws/c/other/nodes/n1/"])
async def test_it_refuses_what_does_not_exist(
    hub: Hub, cluster: Cluster, as_viewer: Client, path: str
) -> None:
    browser = await opened(as_viewer, path)
    assert (await text(browser, "refused"))["code"] == "unknown"
    assert await closed(browser) == 4404


async def test_it_refuses_another_origin_before_it_says_a_word(
    hub: Hub, cluster: Cluster, as_viewer: Client
) -> None:
    assert not await socket(as_viewer, OVERVIEW, "http://evil.example").connect()


async def test_it_bounds_the_sockets_of_one_user(
    hub: Hub, cluster: Cluster, as_viewer: Client, settings: Settings
) -> None:
    settings.NUMAWEB_LIVE_PER_USER = 2
    kept = [await opened(as_viewer, OVERVIEW) for _ in range(2)]
    for browser in kept:
        await text(browser, "hello")
    third = await opened(as_viewer, OVERVIEW)
    assert (await text(third, "refused"))["code"] == "too-many"
    await kept[0].leave()
    fourth = await opened(as_viewer, OVERVIEW)
    await text(fourth, "hello")
    for browser in (kept[1], fourth):
        await browser.leave()


async def test_it_bounds_sockets_that_come_at_once(
    hub: Hub, cluster: Cluster, as_viewer: Client, settings: Settings
) -> None:
    settings.NUMAWEB_LIVE_PER_USER = 3
    browsers = await asyncio.gather(*(opened(as_viewer, OVERVIEW) for _ in range(8)))
    first = [msgspec.json.decode((await browser.receive_output(5))["text"])["type"] for browser in browsers]
    assert sorted(first) == ["hello"] * 3 + ["refused"] * 5
    for browser, kind in zip(browsers, first, strict=True):
        if kind == "hello":
            await browser.leave()


@pytest.mark.parametrize(
    "said", ['{"type":"resync"', '{"type":"delete"}', '{"type":"pause","x":"' + "y" * 2000 + '"}']
)
async def test_it_closes_who_talks_nonsense(hub: Hub, cluster: Cluster, as_viewer: Client, said: str) -> None:
    browser = await opened(as_viewer, OVERVIEW)
    await browser.say(said)
    assert await closed(browser) == 1008


async def test_it_closes_who_sends_bytes(hub: Hub, cluster: Cluster, as_viewer: Client) -> None:
    browser = await opened(as_viewer, OVERVIEW)
    await browser.say(data=b"\0")
    assert await closed(browser) == 1008


async def test_it_closes_who_talks_too_much(hub: Hub, cluster: Cluster, as_viewer: Client) -> None:
    browser = await opened(as_viewer, OVERVIEW)
    for _ in range(30):
        await browser.say('{"type":"resync"}')
    assert await closed(browser) == 1008


async def test_it_closes_on_sign_out(hub: Hub, cluster: Cluster, as_viewer: Client) -> None:
    browser = await opened(as_viewer, OVERVIEW)
    await text(browser, "hello")
    await sync_to_async(Session.objects.all().delete)()
    assert (await text(browser, "closing"))["reason"] == "signed-out"
    assert await closed(browser) == 4401


async def test_it_closes_when_the_role_is_taken(
    hub: Hub, cluster: Cluster, as_viewer: Client, viewer: User
) -> None:
    browser = await opened(as_viewer, NODE)
    await text(browser, "hello")
    await sync_to_async(viewer.groups.clear)()
    assert await closed(browser) == 4403


async def test_it_closes_when_the_user_is_switched_off(
    hub: Hub, cluster: Cluster, as_viewer: Client, viewer: User
) -> None:
    browser = await opened(as_viewer, OVERVIEW)
    await text(browser, "hello")
    await sync_to_async(User.objects.filter(pk=viewer.pk).update)(is_active=False)
    assert await closed(browser) in (4401, 4403)


async def test_it_says_that_the_server_goes_away(hub: Hub, cluster: Cluster, as_viewer: Client) -> None:
    browser = await opened(as_viewer, OVERVIEW)
    await text(browser, "hello")
    hub.goodbye()
    assert await closed(browser) == 1001


async def test_the_server_ends_when_all_open_pages_heard_that_it_goes(
    hub: Hub, cluster: Cluster, as_viewer: Client
) -> None:
    browsers = [await opened(as_viewer, OVERVIEW) for _ in range(5)]
    for browser in browsers:
        await text(browser, "hello")
    left: list[int] = []
    await hub._leave(lambda: left.append(len(hub._runners)))
    assert left == [0]
    assert [await closed(browser) for browser in browsers] == [1001] * 5


async def test_it_gives_a_sign_of_life(hub: Hub, cluster: Cluster, as_viewer: Client) -> None:
    browser = await opened(as_viewer, OVERVIEW)
    assert abs((await text(browser, "beat"))["at"] - time.time()) < 5
    await browser.leave()


async def test_it_says_when_nobody_collects_and_when_it_goes_on(
    hub: Hub, cluster: Cluster, as_viewer: Client, settings: Settings
) -> None:
    settings.NUMAWEB_COLLECT_PERIOD = settings.NUMAWEB_COLLECT_TIMEOUT = 0.1
    browser = await opened(as_viewer, OVERVIEW)
    assert (await text(browser, "state"))["source"] == "silent"
    later = await opened(as_viewer, OVERVIEW)
    assert (await text(later, "state"))["source"] == "silent"
    await later.leave()
    await asyncio.to_thread(news, cluster, [0], b"\x05\x05")
    assert (await text(browser, "state"))["source"] == "ok"
    await browser.leave()


async def test_it_tells_that_the_way_from_the_collectors_broke(
    hub: Hub, cluster: Cluster, as_viewer: Client
) -> None:
    news(cluster, [0], b"\x01\x02")
    browser, page = await opened(as_viewer, OVERVIEW), Page()
    await frame(browser, page)
    hub.connected(False)
    assert (await text(browser, "state"))["source"] == "lost"
    hot.store().put_cells(cluster.pk, 0, hot_contract.block([0], b"\x08\x08", taken=time.time()))
    hub.connected(True)
    hub.missed()
    await frame(browser, page)
    assert page.busy.tolist() == [8, 8]
    await browser.leave()


async def test_it_tells_when_the_list_of_nodes_changed(hub: Hub, cluster: Cluster, as_viewer: Client) -> None:
    browser = await opened(as_viewer, OVERVIEW)
    await text(browser, "hello")
    live.bus().publish(live.InventoryNews(cluster.pk))
    await text(browser, "inventory-changed")
    await browser.leave()


@pytest.mark.parametrize(
    "path", ["/", "/ws/", "/ws/c/lab/", "/ws/c/lab/nodes/a/b/", "/ws/c/lab/overview", "/\0"]
)
async def test_no_other_address_opens_or_fails(client: Client, path: str) -> None:
    stranger = socket(None, path)
    assert await stranger.connect() is False
