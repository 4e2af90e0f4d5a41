"""Collection by real Celery workers into a real PostgreSQL and Redis: together, killed, doubled, and without one of them."""

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
import websockets
from redis import Redis

from tests import servers, stack
from tests.monitoring import exporters
from tests.monitoring.browser import Page

PASSWORD = "a-password-for-tests-only"
SECONDS = 60.0
PAGES = 40
"""As many as one person may have open, nearly."""
pytestmark = pytest.mark.timeout(300)


class Installation(NamedTuple):
    """Everything but the workers, which each test starts as it needs them."""

    postgres: stack.Part
    redis: stack.Part
    surroundings: dict[str, str]
    folder: Path
    fleet: exporters.Running

    def ask(self, question: str) -> Any:
        """The first value of the first row."""
        with psycopg.connect(self.postgres.url, connect_timeout=5) as connection:
            row = connection.execute(question).fetchone()
        return row[0] if row else None

    def counts(self) -> dict[bytes, bytes]:
        with Redis.from_url(self.redis.url.replace("/0", "/2")) as client:
            return client.hgetall("numaweb:hot:counts")

    def rounds(self) -> int:
        return int(self.counts().get(b"collections_ok", b"0"))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("collection")
    with contextlib.ExitStack() as parts:
        postgres = parts.enter_context(stack.postgres())
        redis = parts.enter_context(stack.redis(folder))
        fleet = parts.enter_context(exporters.fleet(6))
        surroundings = stack.environment(
            NUMAWEB_DATABASE_URL=postgres.url,
            NUMAWEB_REDIS_URL=redis.url,
            NUMAWEB_SECRET_KEY="only-for-tests-" * 5,
            NUMAWEB_STATE_DIR=str(folder),
            NUMAWEB_ADMIN_PASSWORD=PASSWORD,
            NUMAWEB_COLLECT_PERIOD="0.5",
            NUMAWEB_COLLECT_SHIFT="5",
            NUMAWEB_COLLECT_LEASE="3",
            NUMAWEB_HISTORY_STEP="1",
            NUMAWEB_LIVE_TICK="0.3",
            NUMAWEB_LIVE_WATCH="1",
        )
        stack.manage(surroundings, "migrate", "--verbosity=0")
        stack.manage(surroundings, "bootstrap")
        urls = [word for url in fleet.urls for word in ("--url", url)]
        stack.manage(surroundings, "cluster", "lab", "--kind", "simulated", *urls)
        yield Installation(postgres, redis, surroundings, folder, fleet)


def wait_for(reached: Callable[[], bool], seconds: float = SECONDS, what: str = "") -> float:
    """How long it took."""
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        with contextlib.suppress(psycopg.OperationalError, OSError):
            if reached():
                return time.monotonic() - started
        time.sleep(0.1)
    pytest.fail(f"not within {seconds:.0f} s: {what}")


def goes_on(here: Installation) -> float:
    """Waits until exporters are asked again; how long it took."""
    before = here.rounds()
    return wait_for(lambda: here.rounds() > before, what="nobody collects")


@contextlib.contextmanager
def working(here: Installation) -> Iterator[servers.Server]:
    with stack.worker(here.folder, here.surroundings, beat=True) as server:
        goes_on(here)
        yield server


def test_it_collects_into_postgresql_and_redis(here: Installation) -> None:
    with working(here):
        wait_for(lambda: here.ask("select count(*) from monitoring_node where containers is not null") == 6)
        wait_for(lambda: here.ask("select count(*) from monitoring_historyjournal") > 2)
    assert here.ask("select count(*) from monitoring_endpoint where state = 'ok'") == 6
    assert here.ask("select count(*) from monitoring_container") == 36


def test_it_collects_once_with_two_workers_and_two_schedules(here: Installation) -> None:
    with working(here) as first, stack.worker(here.folder, here.surroundings, beat=True):
        time.sleep(6)
        started, before = time.monotonic(), here.rounds()
        time.sleep(6)
        asked, spent = here.rounds() - before, time.monotonic() - started
        assert first.process is not None
    # Six exporters each half second: twice as many answers would mean two shifts at once.
    assert asked <= 6 * (spent / 0.5) * 1.3
    assert (
        here.ask("select count(*) - count(distinct (bucket, at, shard)) from monitoring_historyjournal") == 0
    )


def test_it_goes_on_after_a_worker_was_killed_in_the_middle(here: Installation) -> None:
    with working(here) as doomed, stack.worker(here.folder, here.surroundings, beat=True):
        doomed.kill()
        assert goes_on(here) < 15


def test_it_goes_on_after_a_worker_was_frozen_and_woke_up(here: Installation) -> None:
    with working(here) as sleeper:
        assert sleeper.process is not None
        group = os.getpgid(sleeper.process.pid)
        os.killpg(group, signal.SIGSTOP)
        try:
            with stack.worker(here.folder, here.surroundings, beat=True):
                assert goes_on(here) < 25
                os.killpg(group, signal.SIGCONT)
                goes_on(here)
        finally:
            os.killpg(group, signal.SIGCONT)


def test_it_keeps_samples_while_postgresql_is_away_and_writes_them_after(here: Installation) -> None:
    with working(here):
        wait_for(lambda: here.ask("select count(*) from monitoring_historyjournal") > 0)
        here.postgres.server.stop()
        away = time.time()
        before = here.rounds()
        wait_for(lambda: here.rounds() > before + 12, what="collection stopped with the database")
        here.postgres.server.start()
        question = f"select count(distinct at) from monitoring_historyjournal where at between {away:.0f} and {away + 4:.0f}"
        wait_for(lambda: here.ask(question) >= 2, what="samples of the outage were lost")
    assert here.ask("select count(*) from monitoring_node where gone_at is not null") == 0


def test_it_is_live_again_within_seconds_after_redis_came_back_empty(here: Installation) -> None:
    with working(here), stack.web(here.folder, here.surroundings) as web:
        took, page = asyncio.run(outage_of_redis(here, web))
    assert took <= 5
    assert len(page.busy) >= 48
    assert not page.gap


def test_a_restarted_server_says_goodbye_and_has_all_its_pages_back_within_seconds(
    here: Installation,
) -> None:
    with working(here), stack.web(here.folder, here.surroundings) as web:
        asyncio.run(restart(web))


async def restart(web: stack.Part) -> None:
    cookie = await asyncio.to_thread(sign_in, web.url)
    address = web.url.replace("http", "ws") + "/ws/c/lab/overview/"
    options: dict[str, Any] = {"additional_headers": {"Cookie": cookie}, "origin": web.url}
    process = web.server.process
    assert process is not None
    async with contextlib.AsyncExitStack() as pages:
        opened = [
            await pages.enter_async_context(websockets.connect(address, **options)) for _ in range(PAGES)
        ]
        assert all([await whole(each) for each in opened])
        process.terminate()
        async with asyncio.timeout(10):
            await asyncio.gather(*(to_the_end(each) for each in opened))
        assert {each.close_code for each in opened} == {1001}
    assert await asyncio.to_thread(process.wait, 10) in {0, -15}
    web.server.start()  # not in a thread: the program would end with it
    started = time.monotonic()
    async with contextlib.AsyncExitStack() as pages:
        again = await asyncio.gather(*(websockets.connect(address, **options) for _ in range(PAGES)))
        for each in again:
            pages.push_async_callback(each.close)
        told = await asyncio.gather(*(whole(each) for each in again))
        assert time.monotonic() - started <= 3
    assert all(told)


async def to_the_end(socket: Any) -> None:
    """Reads as a browser does, until the connection ends."""
    with contextlib.suppress(websockets.ConnectionClosed):
        while True:
            await socket.recv()


async def whole(socket: Any) -> bool:
    """Whether a page got its whole state."""
    page = Page()
    await until(socket, page, lambda _: len(page.busy) >= 48)
    return not page.gap


async def outage_of_redis(here: Installation, web: stack.Part) -> tuple[float, Page]:
    """Seconds from Redis' return to the next whole state in a page that stayed open."""
    address = web.url.replace("http", "ws") + "/ws/c/lab/overview/"
    cookie = await asyncio.to_thread(sign_in, web.url)
    headers = {"Cookie": cookie}
    async with websockets.connect(address, additional_headers=headers, origin=web.url) as socket:  # type: ignore[arg-type]
        page = Page()
        await until(socket, page, lambda _: len(page.busy) >= 48)
        await asyncio.to_thread(here.redis.server.kill)
        try:
            await until(socket, page, lambda message: message.get("source") == "lost")
            await asyncio.sleep(3)
        finally:
            here.redis.server.start()  # not in a thread: the program would end with it
        started, epoch = time.monotonic(), page.taken
        await until(socket, page, lambda message: message.get("source") == "ok")
        await until(socket, page, lambda _: page.taken > epoch and len(page.busy) >= 48)
        return time.monotonic() - started, page


async def until(socket: Any, page: Page, reached: Callable[[dict[str, Any]], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            frame = await socket.recv()
            message = {}
            if isinstance(frame, bytes):
                page.hear(frame)
            else:
                message = json.loads(frame)
            if reached(message):
                return


def sign_in(url: str) -> str:
    """The session's cookie of the administrator."""
    jar = CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    page = browser.open(f"{url}/accounts/login/", timeout=20).read().decode()
    [token] = set(re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page))
    form = {"username": "admin", "password": PASSWORD, "csrfmiddlewaretoken": token}
    request = urllib.request.Request(
        f"{url}/accounts/login/", urllib.parse.urlencode(form).encode(), {"Referer": url}
    )
    browser.open(request, timeout=20).read()
    [session] = [f"{cookie.name}={cookie.value}" for cookie in jar if cookie.name == "numaweb_session"]
    return session


def test_it_behaves_on_postgresql_as_on_sqlite(here: Installation) -> None:
    """The tests of everything that speaks SQL of its own, once more on PostgreSQL."""
    names = ("identity", "recording", "history", "leases", "housekeeping", "overview")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--reuse-db"]
    command += [f"tests/monitoring/test_{name}.py" for name in names]
    surroundings = stack.environment(
        NUMAWEB_DATABASE_URL=here.postgres.url,
        NUMAWEB_SECRET_KEY=here.surroundings["NUMAWEB_SECRET_KEY"],
        NUMAWEB_STATE_DIR=str(here.folder),
    )
    done = subprocess.run(command, cwd=servers.ROOT, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
