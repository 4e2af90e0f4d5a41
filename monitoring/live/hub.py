"""One hub per web process: it receives what is collected, keeps the newest of what browsers look at, and tells them.

Used in the event loop of the web process only. A consumer calls `join` and then lets the mailbox run.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import structlog
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.conf import settings
from django.db import DatabaseError

from monitoring import hot
from monitoring.hot import StoreError
from monitoring.live import guard, payloads
from monitoring.live.bus import CellsNews, News, NodeNews, bus
from monitoring.live.mailbox import Mailbox
from monitoring.live.topics import NodeTopic, OverviewTopic, Topic
from numacore.wire import WireError

log = structlog.get_logger(__name__)

GOING_AWAY = 1001
STALLED = 1013
SIGNED_OUT = 4401
FORBIDDEN = 4403
GOODBYE_SECONDS = 1.0
"""For browsers that do not read."""


class Hub:
    """Topics by what they are about, and the tasks that keep them going."""

    def __init__(self) -> None:
        self._overviews: dict[int, OverviewTopic] = {}
        self._nodes: dict[int, NodeTopic] = {}
        self._users: Counter[int] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._runners: dict[Mailbox, asyncio.Task[None]] = {}
        self._connected = True
        self._silent: set[int] = set()
        self.ending = False

    async def start(self) -> None:
        """Begins to receive. Called once, when the server starts."""
        self.ending = False
        self._keep(bus().run(self))
        self._keep(self._every(lambda: float(settings.NUMAWEB_LIVE_TICK), self._beat))
        self._keep(self._every(lambda: float(settings.NUMAWEB_LIVE_WATCH), self._watch))
        self._keep(self._every(lambda: float(settings.NUMAWEB_LIVE_SESSIONS), self._end_sessions))
        self._keep(self._every(lambda: float(settings.NUMAWEB_LIVE_RECHECK), self._end_forbidden))
        self._wrap_signal(asyncio.get_running_loop())

    async def stop(self) -> None:
        """Tells every browser that the server goes away, and ends."""
        self.goodbye()
        runners = list(self._runners.values())
        if runners:
            await asyncio.wait(runners, timeout=2.0)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._overviews.clear()
        self._nodes.clear()
        self._silent.clear()

    def goodbye(self) -> None:
        """Closes every socket with 1001; browsers come back to whoever answers then."""
        self.ending = True
        for topic in self._topics():
            for mailbox in list(topic.mailboxes):
                mailbox.close(GOING_AWAY, "restart")

    def _wrap_signal(self, loop: asyncio.AbstractEventLoop) -> None:
        """The server closes sockets at SIGTERM before it tells us, with a code of its own; so we hear the signal first, and it when our
        browsers know. Told twice, it hears at once."""
        if threading.current_thread() is not threading.main_thread():
            return
        before = signal.getsignal(signal.SIGTERM)
        if not callable(before):
            return

        def handle(number: int, frame: Any) -> None:
            end = partial(before, number, frame)
            if self.ending:
                end()
            else:
                loop.call_soon_threadsafe(self._keep, self._leave(end))

        signal.signal(signal.SIGTERM, handle)

    async def _leave(self, end: Callable[[], object]) -> None:
        """Says goodbye, and ends when all heard it or those that do not read had their time."""
        self.goodbye()
        runners = list(self._runners.values())
        if runners:
            await asyncio.wait(runners, timeout=GOODBYE_SECONDS)
        end()

    # Browsers ------------------------------------------------------------------------------------------------

    def enter(self, user: int) -> bool:
        """Counts one more socket of this user, unless they are as many as one may have. Each ends with `leave`."""
        if self._users[user] >= settings.NUMAWEB_LIVE_PER_USER:
            return False
        self._users[user] += 1
        return True

    def leave(self, user: int) -> None:
        """A socket that was counted is gone."""
        self._users[user] -= 1

    async def overview(self, cluster: int) -> OverviewTopic:
        """The topic of a cluster's cells."""
        topic = self._overviews.get(cluster)
        if topic is None:
            topic = self._overviews[cluster] = OverviewTopic(cluster)
        if not topic.loaded:
            await self._load_overview(topic)
        return topic

    async def node(self, node: int) -> NodeTopic:
        """The topic of a node."""
        topic = self._nodes.get(node)
        if topic is None:
            topic = self._nodes[node] = NodeTopic(node)
            await self._load_node(topic)
        return topic

    async def run(self, topic: Topic, mailbox: Mailbox) -> None:
        """Serves one browser until its socket ends, this side closes it, or it does not read any more."""
        task = asyncio.ensure_future(mailbox.run())
        topic.add(mailbox)
        self._runners[mailbox] = task
        try:
            self._tell_state(topic, mailbox)
            mailbox.renew()
            await task
        finally:
            task.cancel()
            del self._runners[mailbox]
            topic.remove(mailbox)
            self._drop(topic)

    def _tell_state(self, topic: Topic, mailbox: Mailbox) -> None:
        """What the others were told when it became so."""
        if not self._connected:
            mailbox.control('{"type":"state","source":"lost"}')
        elif isinstance(topic, OverviewTopic) and topic.cluster in self._silent:
            mailbox.control(f'{{"type":"state","source":"silent","since":{topic.taken}}}')

    def _drop(self, topic: Topic) -> None:
        if topic.mailboxes:
            return
        if isinstance(topic, OverviewTopic):
            self._overviews.pop(topic.cluster, None)
            self._silent.discard(topic.cluster)
        elif isinstance(topic, NodeTopic):
            self._nodes.pop(topic.node, None)

    def _topics(self) -> list[Topic]:
        return [*self._overviews.values(), *self._nodes.values()]

    # News ----------------------------------------------------------------------------------------------------

    def heard(self, news: News) -> None:
        """Called by the bus."""
        if isinstance(news, CellsNews):
            if overview := self._overviews.get(news.cluster):
                overview.take(news.block)
        elif isinstance(news, NodeNews):
            if node := self._nodes.get(news.tick.node):
                node.take(news.tick)
        elif overview := self._overviews.get(news.cluster):
            overview.say(type="inventory-changed")

    def missed(self) -> None:
        """Called by the bus: read everything again."""
        self._keep(self._reload())

    def connected(self, state: bool) -> None:
        """Called by the bus: browsers are told when their data stops and when it goes on."""
        if state != self._connected:
            self._connected = state
            for topic in self._topics():
                topic.say(type="state", source="ok" if state else "lost")

    async def _reload(self) -> None:
        for overview in list(self._overviews.values()):
            await self._load_overview(overview)
        for node in list(self._nodes.values()):
            await self._load_node(node)

    async def _load_overview(self, topic: OverviewTopic) -> None:
        try:
            topic.load(await sync_to_async(hot.store().cells, thread_sensitive=False)(topic.cluster), 0)
        except StoreError as error:
            log.warning("live cells cannot be loaded", error=str(error))

    async def _load_node(self, topic: NodeTopic) -> None:
        try:
            tick = await sync_to_async(_read_node, thread_sensitive=False)(topic.node)
        except StoreError as error:
            log.warning("a node's state cannot be loaded", error=str(error))
            return
        if tick is not None:
            topic.take(tick)

    # Time ----------------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        for topic in list(self._overviews.values()):
            topic.beat()
            self._tell_silence(topic)
        limit = float(settings.NUMAWEB_LIVE_STALL)
        for mailbox, task in list(self._runners.items()):
            if mailbox.stalled(limit):
                mailbox.close(STALLED, "stalled")
                task.cancel()

    def _tell_silence(self, topic: OverviewTopic) -> None:
        """Says when nobody collects any more, and when somebody does again."""
        late = 3 * float(settings.NUMAWEB_COLLECT_PERIOD) + float(settings.NUMAWEB_COLLECT_TIMEOUT)
        silent = time.time() - topic.taken > late
        if silent != (topic.cluster in self._silent):
            (self._silent.add if silent else self._silent.discard)(topic.cluster)
            topic.say(type="state", source="silent" if silent else "ok", since=topic.taken)

    async def _watch(self) -> None:
        """Keeps the nodes that somebody looks at on the collectors' list, and gives browsers a sign of life."""
        for topic in self._topics():
            topic.say(type="beat", at=time.time())
        nodes = [node for node, topic in self._nodes.items() if topic.mailboxes]
        if nodes:
            await sync_to_async(_watch, thread_sensitive=False)(nodes)

    async def _end_sessions(self) -> None:
        await self._end(guard.ended, SIGNED_OUT, "signed-out")

    async def _end_forbidden(self) -> None:
        await self._end(guard.forbidden, FORBIDDEN, "forbidden")

    async def _end(self, judge: Callable[[set[str]], set[str]], code: int, reason: str) -> None:
        """Closes the sockets of those sessions that may not look any more."""
        keys = {mailbox.key for mailbox in self._runners}
        if not keys:
            return
        over = await database_sync_to_async(judge)(keys)
        for mailbox in list(self._runners):
            if mailbox.key in over:
                mailbox.control(f'{{"type":"closing","reason":"{reason}"}}')
                mailbox.close(code, reason)

    async def _every(
        self, seconds: Callable[[], float], work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        while True:
            await asyncio.sleep(seconds())
            try:
                await work()
            except StoreError as error:
                log.warning("the hot store cannot be reached", error=str(error))
            except DatabaseError as error:
                # Nobody can sign out either while the database is away; the next round judges.
                log.warning("sessions cannot be checked", error=str(error))

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a task of the live hub ended", exc_info=error)


def _read_node(node: int) -> payloads.NodeTick | None:
    store = hot.store()
    with contextlib.suppress(StoreError):
        _watch([node])
    state = store.get(node)
    with contextlib.suppress(WireError):  # told as a failure when the node's report is made
        return payloads.node_tick(state) if state is not None else None
    return None


def _watch(nodes: list[int]) -> None:
    for node in nodes:
        hot.store().watch(node, 3 * float(settings.NUMAWEB_LIVE_WATCH))


hub = Hub()
"""This process's hub; `numaweb.asgi` starts and stops it."""
