"""The way from whoever collects to the web processes: in this process, or through Redis.

Delivery is at most once. A receiver is told when something may be missing and then reads the whole state from the hot
store; so nothing is kept, and nobody waits for a slow receiver.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import threading
from collections import deque
from collections.abc import AsyncIterator
from functools import cache
from typing import Any, Protocol

import msgspec
import redis
import redis.asyncio
import structlog
from django.conf import settings

from monitoring import metrics
from monitoring.hot import Cells
from monitoring.live.payloads import NodeTick

log = structlog.get_logger(__name__)

CHANNEL = "numaweb:live"
WAITING = 256
"""Messages that a receiver in this process may be behind."""
RETRY_SECONDS = (0.2, 3.0)
SECONDS = 2.0


class CellsNews(msgspec.Struct, frozen=True, tag="cells"):
    """New cells of some nodes of a cluster."""

    cluster: int
    block: Cells


class NodeNews(msgspec.Struct, frozen=True, tag="node"):
    """The newest of one node, for whoever looks at it."""

    tick: NodeTick


class InventoryNews(msgspec.Struct, frozen=True, tag="inventory"):
    """Nodes of a cluster came, went or changed."""

    cluster: int


News = CellsNews | NodeNews | InventoryNews


class Envelope(msgspec.Struct, frozen=True):
    """News on its way, numbered by its sender without gaps."""

    sender: str
    number: int
    news: News


class Receiver(Protocol):
    """Called in the event loop of the subscriber."""

    def heard(self, news: News) -> None:
        """News came."""

    def missed(self) -> None:
        """News may be missing."""

    def connected(self, state: bool) -> None:
        """The way works, or does not."""


class Bus(Protocol):
    """Both ways have this form."""

    def publish(self, news: News) -> None:
        """Gives news to all web processes; from any thread, never waits long, never raises."""

    async def run(self, receiver: Receiver) -> None:
        """Receives until it is cancelled."""


class MemoryBus:
    """Within one process: threads publish, event loops receive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[_Line] = []

    def publish(self, news: News) -> None:
        with self._lock:
            lines = list(self._lines)
        for line in lines:
            line.put(news)

    async def run(self, receiver: Receiver) -> None:
        line = _Line(asyncio.get_running_loop(), receiver)
        with self._lock:
            self._lines.append(line)
        try:
            receiver.connected(True)
            await asyncio.Event().wait()
        finally:
            with self._lock:
                self._lines.remove(line)


class _Line:
    """What waits for one event loop: at most `WAITING` messages, then only the mark that some are missing."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receiver: Receiver) -> None:
        self._loop, self._receiver = loop, receiver
        self._waiting: deque[News] = deque()
        self._lost = False
        self._lock = threading.Lock()

    def put(self, news: News) -> None:
        with self._lock:
            idle = not self._waiting and not self._lost
            if len(self._waiting) < WAITING:
                self._waiting.append(news)
            else:
                self._lost = True
        if idle:
            with contextlib.suppress(RuntimeError):  # the loop has just ended, and with it the receiver
                self._loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
            lost, self._lost = self._lost, False
        for news in waiting:
            self._receiver.heard(news)
        if lost:
            metrics.BUS_GAPS.inc()
            self._receiver.missed()


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Envelope).decode


class RedisBus:
    """Through Redis's publish and subscribe."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._sender = secrets.token_hex(6)
        self._number = 0
        self._lock = threading.Lock()
        self._client: Any = redis.Redis.from_url(url, socket_timeout=SECONDS, socket_connect_timeout=SECONDS)

    def publish(self, news: News) -> None:
        with self._lock:
            self._number += 1
            envelope = Envelope(self._sender, self._number, news)
            try:
                self._client.publish(CHANNEL, _pack(envelope))
            except redis.RedisError as error:
                metrics.BUS_DROPPED.inc()
                log.warning("live news was not delivered", error=str(error))

    async def run(self, receiver: Receiver) -> None:
        """Subscribes again and again: a lost connection is told, and what came meanwhile counts as missing."""
        while True:
            try:
                async with self._subscribed() as pubsub:
                    receiver.connected(True)
                    receiver.missed()
                    await self._receive(pubsub, receiver)
            except (redis.RedisError, OSError) as error:
                metrics.BUS_GAPS.inc()
                log.warning("live news cannot be received", error=str(error))
                receiver.connected(False)
            await asyncio.sleep(random.uniform(*RETRY_SECONDS) / 2)

    @contextlib.asynccontextmanager
    async def _subscribed(self) -> AsyncIterator[Any]:
        client = redis.asyncio.Redis.from_url(
            self._url, socket_connect_timeout=SECONDS, health_check_interval=10, socket_keepalive=True
        )
        try:
            pubsub = client.pubsub(ignore_subscribe_messages=True)
            await pubsub.subscribe(CHANNEL)
            yield pubsub
        finally:
            with contextlib.suppress(redis.RedisError, OSError):
                await client.aclose()

    async def _receive(self, pubsub: Any, receiver: Receiver) -> None:
        numbers: dict[str, int] = {}
        while True:
            # With a time-out redis-py also sends its health check, which finds a half-open connection.
            message = await pubsub.get_message(timeout=5.0)
            if message is None:
                continue
            envelope = _decoded(message["data"])
            if envelope is None:
                continue
            if numbers.get(envelope.sender, envelope.number - 1) != envelope.number - 1:
                metrics.BUS_GAPS.inc()
                receiver.missed()
            numbers[envelope.sender] = envelope.number
            receiver.heard(envelope.news)


def _decoded(data: bytes) -> Envelope | None:
    try:
        return _unpack(data)
    except msgspec.DecodeError as error:  # a neighbour of another version during an upgrade
        log.warning("live news cannot be read", error=str(error))
        return None


@cache
def bus() -> Bus:
    """This installation's way."""
    url = settings.NUMAWEB_REDIS_LIVE_URL
    return RedisBus(url) if url else MemoryBus()
