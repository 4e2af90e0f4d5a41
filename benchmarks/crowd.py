"""Many browsers at once, as sockets that count what arrives: for benches of live pages.

A member speaks just enough WebSocket to be served: the handshake a browser sends (compression offered as browsers do)
and the headers of frames. Reading costs the bench's own process, never the measured one.
"""

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA


class RefusedError(RuntimeError):
    """The server answered the handshake with something else than 101."""


class Member(asyncio.Protocol):
    """One socket. `messages` and `received` count data frames and their bytes, `states` the binary ones of them."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.rest = bytearray()
        self.skip = 0
        self.messages = self.states = 0
        self.received = 0
        self.last = 0
        """Bytes of the newest message."""
        self.closed = False
        self.reason = b""
        """Code and words with which the server closed it."""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        if self.opened.done():
            self.frames(data)
            return
        self.rest += data
        head, found, tail = bytes(self.rest).partition(b"\r\n\r\n")
        if not found:
            return
        self.rest.clear()
        status = head.partition(b"\r\n")[0]
        if b" 101 " not in status:
            self.opened.set_exception(RefusedError(status.decode(errors="replace")))
            return
        self.opened.set_result(None)
        self.frames(tail)

    def frames(self, data: bytes) -> None:
        """Skips payloads without copying them: only the headers of frames are looked at."""
        if self.skip >= len(data) and not self.rest:
            self.skip -= len(data)
            return
        data = bytes(self.rest) + data[self.skip :]
        self.skip = 0
        self.rest.clear()
        at = 0
        while at < len(data):
            header = frame(data, at)
            if header is None:
                self.rest += data[at:]
                return
            opcode, start, length = header
            if opcode == CLOSE:
                self.reason = data[start : start + length]
            elif opcode == PING and self.transport is not None:
                # A pong carries what the ping did; the mask of zeros leaves it as it is.
                pong = bytes([0x80 | PONG, 0x80 | length, 0, 0, 0, 0])
                self.transport.write(pong + data[start : start + length])
            self.count(opcode, length)
            at = start + length
        self.skip = at - len(data)

    def count(self, opcode: int, length: int) -> None:
        if opcode in (TEXT, BINARY):
            self.messages += 1
            self.states += opcode == BINARY
            self.received += length
            self.last = length

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        if not self.opened.done():
            self.opened.set_exception(RefusedError(f"closed during the handshake: {error}"))


def frame(data: bytes, at: int) -> tuple[int, int, int] | None:
    """Opcode, first byte and length of the payload of the frame at `at`; None if its header is not complete."""
    if len(data) < at + 2:
        return None
    opcode, length = data[at] & 0x0F, data[at + 1] & 0x7F
    size = {126: 2, 127: 8}.get(length, 0)
    if len(data) < at + 2 + size:
        return None
    return opcode, at + 2 + size, int.from_bytes(data[at + 2 : at + 2 + size], "big") if size else length


def handshake(port: int, path: str, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Origin: http://127.0.0.1:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def member(port: int, request: bytes) -> Member:
    """One socket; `opened` tells when the handshake is over."""
    _, made = await asyncio.get_running_loop().create_connection(lambda: Member(request), "127.0.0.1", port)
    return made


@contextlib.asynccontextmanager
async def crowd(size: int, port: int, path: str, headers: Mapping[str, str]) -> AsyncIterator[list[Member]]:
    """`size` open sockets on a server of this machine, opened 50 at a time."""
    members: list[Member] = []
    try:
        while len(members) < size:
            batch = [
                await member(port, handshake(port, path, headers))
                for _ in range(min(50, size - len(members)))
            ]
            members += batch
            async with asyncio.timeout(30):
                await asyncio.gather(*(each.opened for each in batch))
        yield members
    finally:
        await leave(members)


async def rush(
    port: int, path: str, cookies: list[str], size: int, served: Callable[[Member], bool]
) -> float:
    """Seconds until `size` sockets that come at once are all served."""
    requests = [handshake(port, path, {"Cookie": cookies[i % len(cookies)]}) for i in range(size)]
    members: list[Member] = []
    started = asyncio.get_running_loop().time()
    try:
        members += await asyncio.gather(*(member(port, request) for request in requests))
        async with asyncio.timeout(60):
            while not all(served(each) for each in members):  # noqa: ASYNC110 - it is on no event
                await asyncio.sleep(0.01)
        return asyncio.get_running_loop().time() - started
    finally:
        await leave(members)


async def leave(members: list[Member]) -> None:
    for each in members:
        if each.transport is not None:
            each.transport.abort()
    await asyncio.sleep(0.1)


def delivered(members: list[Member]) -> int:
    return sum(member.messages for member in members)
