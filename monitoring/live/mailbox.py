"""What waits for one browser: a few control messages and at most one tick. A slow browser gets the newest state."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from prometheus_client import Counter

from monitoring import metrics

CONTROLS = 16
"""Control messages that may wait; a browser that takes none of them is closed."""
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Source(Protocol):
    """Where a mailbox gets the whole state from."""

    sent: Counter

    def whole(self) -> dict[str, Any] | None:
        """The newest whole state as an ASGI message, made once for all; None while there is none."""


class Mailbox:
    """Belongs to one socket; used in the event loop only. `run` sends until the socket ends or `close` is called."""

    __slots__ = (
        "_controls",
        "_send",
        "_source",
        "_tick",
        "_waiter",
        "_woken",
        "behind",
        "closing",
        "key",
        "paused",
        "sending_since",
        "user",
    )

    def __init__(self, send: Send, source: Source, user: int, key: str) -> None:
        self._send, self._source = send, source
        self._controls: deque[dict[str, Any]] = deque()
        self._tick: dict[str, Any] | None = None
        # A bare future: an asyncio.Event asks for its loop at every wait, a sixth of what a message costs.
        self._waiter: asyncio.Future[None] | None = None
        self._woken = False
        self.user, self.key = user, key
        """Who looks, and the session by which they do."""
        self.behind = True
        """The next thing it needs is the whole state."""
        self.paused = False
        self.closing: tuple[int, str] | None = None
        self.sending_since: float | None = None

    def tick(self, message: dict[str, Any]) -> None:
        """A change since the tick before. If that one still waits, the whole state is due instead."""
        if self.behind or self.paused:
            self.behind = True
        elif self._tick is not None:
            self._tick, self.behind = None, True
            metrics.OVERFLOWS.inc()
        else:
            self._tick = message
        if not self.paused:
            self._wake()

    def renew(self) -> None:
        """Send the whole state."""
        self.behind, self._tick = True, None
        self._wake()

    def control(self, text: str) -> None:
        """A small message beside the ticks."""
        if len(self._controls) >= CONTROLS:
            self.close(1013, "stalled")
            return
        self._controls.append({"type": "websocket.send", "text": text})
        self._wake()

    def pause(self, paused: bool) -> None:
        """A paused browser gets nothing; it gets the whole state when it goes on."""
        self.paused = paused
        if paused:
            self._tick, self.behind = None, True
        self._wake()

    def close(self, code: int, reason: str) -> None:
        """End it after what waits as control messages."""
        if self.closing is None:
            self.closing = (code, reason)
            metrics.CLOSED.labels(reason).inc()
        self._wake()

    def stalled(self, seconds: float) -> bool:
        """Whether one message has been on its way for longer than this."""
        return self.sending_since is not None and time.monotonic() - self.sending_since > seconds

    async def run(self) -> None:
        """Sends what waits, as the browser takes it."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._woken:
                self._waiter = loop.create_future()
                await self._waiter
            self._woken = False
            while self._controls:
                await self._give(self._controls.popleft())
            if self.closing is not None:
                code, reason = self.closing
                await self._give({"type": "websocket.close", "code": code, "reason": reason})
                return
            message = self._next()
            if message is not None:
                await self._give(message)

    def _wake(self) -> None:
        self._woken = True
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _next(self) -> dict[str, Any] | None:
        if self.paused:
            return None
        if not self.behind:
            message, self._tick = self._tick, None
            return message
        message = self._source.whole()
        if message is not None:
            self.behind, self._tick = False, None
        return message

    async def _give(self, message: dict[str, Any]) -> None:
        self.sending_since = time.monotonic()
        await self._send(message)
        self.sending_since = None
        self._source.sent.inc()
