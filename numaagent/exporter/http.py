"""A small HTTP/1.1 server for answers that are made at once: GET and HEAD, no bodies, everything bounded.

Own code instead of aiohttp, whose import alone costs 20 MiB of the 64 MiB that the exporter may use on every node; what
it takes in is one request line and headers of at most 16 KiB, so there is little that could be misread. A request with
a body is refused and its connection closed, which leaves nothing to smuggle requests in.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

MAX_HEAD = 16 * 1024
"""Bytes of a request line with its headers."""
MAX_CONNECTIONS = 128
"""Of more, the one that is idle longest makes room: whoever holds connections open keeps nobody else from asking."""
IDLE = 75.0
"""Seconds within which a request must have come in whole."""
SEND = 30.0
"""Seconds within which an answer must have gone out."""
WORTH_GZIP = 32 * 1024
"""Bytes from which on compressing costs less than sending."""
_WORDS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
logger = logging.getLogger(__name__)


class Request(msgspec.Struct, frozen=True):
    """A request; names of headers are in small letters."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]


class Response(msgspec.Struct, frozen=True):
    """An answer."""

    body: bytes
    status: int = 200
    kind: str = "text/plain; charset=utf-8"
    headers: dict[str, str] = {}


Handler = Callable[[Request], Response]


class BadRequestError(ValueError):
    """A request that is not answered but refused; the connection closes after it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Connections:
    """Serves connections with one handler. `drain` waits until answers under way have gone out."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._tasks: set[asyncio.Task[object]] = set()
        self._busy: set[asyncio.Task[object]] = set()
        self._idle: dict[asyncio.Task[object], None] = {}
        """Those that wait for a request, longest first."""
        self._closing = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, for `asyncio.start_server`."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._converse(task, reader, writer)
        except TimeoutError:
            writer.transport.abort()  # what a stalled reader has not taken must not stay in memory
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the other side went away, or we end
        finally:
            self._tasks.discard(task)
            self._busy.discard(task)
            self._idle.pop(task, None)
            writer.close()

    async def drain(self, seconds: float) -> None:
        """Lets answers under way go out, then ends every connection."""
        self._closing = True
        if self._busy:
            await asyncio.wait(set(self._busy), timeout=seconds)
        for task in set(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1)

    def _make_room(self) -> bool:
        """Ends the connection that is idle longest; whether there was one."""
        longest = next(iter(self._idle), None)
        if longest is None:
            return False
        del self._idle[longest]
        longest.cancel()
        return True

    async def _converse(
        self, task: asyncio.Task[object], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if len(self._tasks) > MAX_CONNECTIONS and not self._make_room():
            await _send(writer, _refusal(503, "too many connections; try again later"), "GET", {}, False)
            return
        keep = True
        while keep and not self._closing:
            self._idle[task] = None
            try:
                async with asyncio.timeout(IDLE):
                    head = await reader.readuntil(b"\r\n\r\n")
                self._idle.pop(task, None)
                self._busy.add(task)
                request, keep = parse(head)
            except asyncio.LimitOverrunError:
                await _send(writer, _refusal(431, f"at most {MAX_HEAD} bytes of headers"), "GET", {}, False)
                return
            except BadRequestError as error:
                await _send(writer, _refusal(error.status, str(error)), "GET", {}, False)
                return
            keep = keep and not self._closing
            await _send(writer, self._handler(request), request.method, request.headers, keep)
            self._busy.discard(task)


def parse(head: bytes) -> tuple[Request, bool]:
    """The request and whether the connection stays open after it.

    Raises:
        BadRequestError: with the status and the cause.
    """
    try:
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        method, target, version = first.split(" ")
    except ValueError:
        raise BadRequestError(400, "the first line is not METHOD TARGET HTTP/1.1") from None
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequestError(505, "this server speaks HTTP/1.1")
    headers = dict(_header(line) for line in lines)
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise BadRequestError(413, "requests have no body here")
    try:
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query, max_num_fields=20).items()}
    except ValueError as error:
        raise BadRequestError(400, f"the target cannot be read: {error}") from None
    close = "close" in headers.get("connection", "").lower() or version == "HTTP/1.0"
    return Request(method, unquote(parts.path), query, headers), not close


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip():
        raise BadRequestError(400, "a header line is not NAME: VALUE")
    return name.lower(), value.strip()


def _refusal(status: int, text: str) -> Response:
    return Response(f"{text}\n".encode(), status)


async def _send(
    writer: asyncio.StreamWriter, response: Response, method: str, asked: Mapping[str, str], keep: bool
) -> None:
    body, extra = response.body, ""
    if len(body) >= WORTH_GZIP and "gzip" in asked.get("accept-encoding", ""):
        body, extra = gzip.compress(body, 1, mtime=0), "Content-Encoding: gzip\r\n"
    extra += "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
    head = (
        f"HTTP/1.1 {response.status} {_WORDS[response.status]}\r\n"
        f"Content-Type: {response.kind}\r\nContent-Length: {len(body)}\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nVary: Accept, Accept-Encoding\r\n"
        f"{extra}{'' if keep else 'Connection: close' + chr(13) + chr(10)}\r\n"
    )
    writer.write(head.encode("latin-1") + (b"" if method == "HEAD" else body))
    async with asyncio.timeout(SEND):
        await writer.drain()
