"""A small HTTP/1.1 server for many simulated endpoints: keep-alive, GET only, one object for each connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import cast

import msgspec

MAX_REQUEST = 65_536


class Reply(msgspec.Struct, frozen=True):
    """An answer: its body with status and head lines, or a stream of raw bytes instead, after a delay."""

    body: bytes = b""
    status: str = "200 OK"
    head: bytes = b""
    delay: float = 0.0
    raw: AsyncIterator[bytes] | None = None


Answer = Callable[[int, str], Reply]
"""(endpoint, request target) -> reply."""


class Endpoint(asyncio.Protocol):
    """One connection to an endpoint."""

    def __init__(
        self, answer: Answer, which: Callable[[asyncio.Transport], int], everyone: set[Endpoint]
    ) -> None:
        self._answer, self._which, self._everyone = answer, which, everyone
        self._pending = b""
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Finds out which endpoint was called."""
        # uvloop's transports have all the methods of asyncio.Transport and are no subclass of it.
        self._transport = cast(asyncio.Transport, transport)
        self._index = self._which(self._transport)
        self._everyone.add(self)

    def abort(self) -> None:
        """Closes the connection at once."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Answers each complete request."""
        self._pending += data
        while b"\r\n\r\n" in self._pending and self._task is None:
            head, _, self._pending = self._pending.partition(b"\r\n\r\n")
            self._serve(head)
        if len(self._pending) > MAX_REQUEST:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, asyncio names it
        """Stops what is still being sent."""
        self._everyone.discard(self)
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        """The reader is slow."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The reader goes on."""
        self._writable.set()

    def _serve(self, head: bytes) -> None:
        line = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
        if len(line) != 3 or line[0] != "GET":
            self._transport.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            return
        reply = self._answer(self._index, line[1])
        if reply.raw is not None or reply.delay:
            self._task = asyncio.get_running_loop().create_task(self._send_slowly(reply))
        else:
            self._transport.write(_encode(reply))

    async def _send_slowly(self, reply: Reply) -> None:
        await asyncio.sleep(reply.delay)
        if reply.raw is None:
            self._transport.write(_encode(reply))
            self._task = None
            self.data_received(b"")
            return
        async for part in reply.raw:
            self._transport.write(part)
            await self._writable.wait()
            await asyncio.sleep(0)
        self._transport.close()


def _encode(reply: Reply) -> bytes:
    start = (
        f"HTTP/1.1 {reply.status}\r\nContent-Type: application/json\r\nContent-Length: {len(reply.body)}\r\n"
    )
    return start.encode() + reply.head + b"\r\n" + reply.body
