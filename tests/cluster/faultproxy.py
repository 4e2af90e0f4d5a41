"""Stands between a client and an API server and lets their connections go wrong.

`FaultProxy` passes bytes as they are, TLS included. What has to see requests and events ends TLS: httpfaults.py.

    async with FaultProxy(plane.url) as proxy:
        watcher = proxy.before(kubeconfig)      # the same access, through here
        proxy.stall()                           # half open: everything is taken, nothing is answered
        await proxy.flow()                      # all well again, for connections that are made now
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from typing import Any, Self
from urllib.parse import urlsplit

PIECE = 16 * 1024
ENDS_HARD = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: the end of a connection is a reset."""


class Line:
    """One connection of a client, and what it may still get."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.dead = False
        """Half open: nothing gets through any more, in neither direction, and nobody is told."""
        self.given = 0
        """Bytes that the client got."""

    def reset(self) -> None:
        found: Any = self.writer.get_extra_info("socket")
        if found is not None:  # it may be on its way out
            with contextlib.suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ENDS_HARD)
        self.writer.transport.abort()


class FaultProxy:
    """For one event loop. Faults are settings that count from now on, for every connection; `connections` counts them."""

    def __init__(self, url: str, *, ends: ssl.SSLContext | None = None) -> None:
        """`ends` is for a proxy that ends the client's TLS."""
        place = urlsplit(url)
        assert place.hostname is not None
        assert place.port is not None
        self._behind, self._url, self._ends = (place.hostname, place.port), url, ends
        self._server: asyncio.Server | None = None
        self._lines: dict[Line, asyncio.Task[None]] = {}
        self._port = 0
        self.connections = 0
        self._forget()

    def _forget(self) -> None:
        self._deaf = self._resetting = False
        self._cut: int | None = None
        self._delay = self._rate = 0.0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def before(self, kubeconfig: str) -> str:
        """A kubeconfig that leads through here."""
        return kubeconfig.replace(self._url, self.url)

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        await asyncio.gather(*self._lines.values(), return_exceptions=True)
        await asyncio.sleep(0.1)  # connections that were only being made see that nobody is there

    # ------------------------------------------------------------ faults

    async def flow(self) -> None:
        """No fault any more. A connection that is half open stays so."""
        self._forget()
        if self._server is None:
            await self._listen()

    async def refuse(self) -> None:
        """Nobody listens here, and whoever was connected is not any more."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.reset_all()

    def stall(self) -> None:
        """Connections are taken, and bytes; nothing is answered, on those that exist and on new ones."""
        self._deaf = True
        for line in self._lines:
            line.dead = True

    def reset(self) -> None:
        """Every connection is reset, new ones as soon as something would be answered."""
        self._resetting = True
        self.reset_all()

    def reset_all(self) -> None:
        """Connections that exist are reset; new ones are well."""
        for line in list(self._lines):
            line.reset()

    def cut(self, after: int) -> None:
        """Every connection ends after so many more bytes, in the middle of whatever it is."""
        self._cut = after
        for line in self._lines:
            line.given = 0

    def slow(self, *, delay: float = 0.0, rate: float = 0.0) -> None:
        """Answers come seconds later, piece by piece; or drip, so many bytes a second."""
        self._delay, self._rate = delay, rate

    # ------------------------------------------------------------ passing on

    async def _listen(self) -> None:
        # An end of TLS that the client does not confirm is not waited for.
        patience = 1.0 if self._ends else None
        self._server = await asyncio.start_server(
            self._meet, "127.0.0.1", self._port, ssl=self._ends, ssl_shutdown_timeout=patience
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, task = Line(writer), asyncio.current_task()
        assert task is not None
        self.connections += 1
        line.dead = self._deaf
        self._lines[line] = task
        try:
            await self._serve(line, reader)
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of the two has left, or was made to
        finally:
            del self._lines[line]
            writer.close()  # what was given still arrives

    async def _serve(self, line: Line, reader: asyncio.StreamReader) -> None:
        """Passes everything on until one side ends."""
        async with self._upstream() as (answers, asks):
            forth = asyncio.ensure_future(self._forth(line, reader, asks))
            try:
                while piece := await answers.read(PIECE):
                    await self.give(line, piece)
                if line.dead:
                    await forth  # a dead line does not tell that the server left
            finally:
                forth.cancel()
                await asyncio.gather(forth, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def _upstream(self, tls: ssl.SSLContext | None = None) -> Any:
        reader, writer = await asyncio.open_connection(*self._behind, ssl=tls)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def _forth(self, line: Line, reader: asyncio.StreamReader, asks: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(PIECE):
                if not line.dead:
                    asks.write(piece)
                    await asks.drain()
        finally:
            asks.transport.abort()

    async def give(self, line: Line, piece: bytes) -> None:
        """To the client, as the faults of this moment want it. Raises ConnectionError where the line ends thereby."""
        if self._resetting:
            line.reset()
        if self._delay:
            await asyncio.sleep(self._delay)
        step = max(1, int(self._rate / 10)) if self._rate else len(piece)
        for start in range(0, len(piece), step):
            if line.dead:
                return
            part = piece[start : start + step]
            if self._cut is not None:
                part = part[: max(0, self._cut - line.given)]
            line.given += len(part)
            line.writer.write(part)
            await line.writer.drain()
            if self._cut is not None and line.given >= self._cut:
                raise ConnectionAbortedError
            if self._rate:
                await asyncio.sleep(0.1)
