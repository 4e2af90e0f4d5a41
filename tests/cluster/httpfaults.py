"""A fault proxy that ends TLS with a certificate of the control plane's own authority: it sees requests, answers in the API server's place, and
touches events on their way.

    async with HttpFaultProxy(plane) as proxy:
        proxy.answers = lambda request: refusal(429, "TooManyRequests", after=2) if request.resource == "pods" else None
        proxy.edits = lambda request, event: event[:40]     # every watch ends in the middle of its next event
        proxy.requests                                      # what was asked, and when
"""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.cluster.controlplane import ControlPlane
from tests.cluster.faultproxy import PIECE, FaultProxy, Line

END = b"\r\n"
WHOLE = b"0\r\n\r\n"
"""The last chunk of a body that is complete."""
MOST = 64 * 1024
"""Bytes of a head."""


class Request(NamedTuple):
    at: float
    """By the monotonic clock."""
    method: str
    path: str
    params: Mapping[str, str]

    @property
    def resource(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def watch(self) -> bool:
        return "watch" in self.params

    @property
    def whole_list(self) -> bool:
        """The beginning of a list of everything: no page in its middle, and no look at the newest version."""
        return "limit" in self.params and self.params["limit"] != "1" and "continue" not in self.params


Answers = Callable[[Request], bytes | None]
"""An answer in the API server's place; None = its own."""
Edits = Callable[[Request, bytes], bytes]
"""What becomes of an event, a line. Empty: it gets lost. Without its newline: the connection ends there."""


class HttpFaultProxy(FaultProxy):
    """One request for each connection, so that each is seen, and faults of connections are faults of requests."""

    def __init__(self, plane: ControlPlane) -> None:
        own = plane.authority.server(["localhost"], ["127.0.0.1"])
        ends = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # Python reads them from files only
            file.write(own.key + own.certificate)
            file.flush()
            ends.load_cert_chain(file.name)
        super().__init__(plane.url, ends=ends)
        self._trust = ssl.create_default_context(cadata=plane.authority.pem)
        self.requests: list[Request] = []
        self.answers: Answers = _its_own
        self.edits: Edits = _as_it_is
        self._watches: dict[Line, Request] = {}

    async def flow(self) -> None:
        self.answers, self.edits = _its_own, _as_it_is
        await super().flow()

    def lists(self, resource: str) -> list[float]:
        """When lists of everything were begun."""
        return [each.at for each in self.requests if each.resource == resource and each.whole_list]

    def watches(self, resource: str) -> int:
        """Open ones."""
        return sum(each.resource == resource for each in self._watches.values())

    async def say(self, resource: str, event: Mapping[str, object]) -> None:
        """An event that the API server did not send, to everybody who watches the resource."""
        for line, request in list(self._watches.items()):
            if request.resource == resource:
                await self.give(line, _chunk(json.dumps(event).encode() + b"\n"))

    # ------------------------------------------------------------ one request

    async def _serve(self, line: Line, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(END + END)
        request = _request(head)
        body = await reader.readexactly(_length(head))
        self.requests.append(request)
        if (answer := self.answers(request)) is not None:
            await self.give(line, answer)
            return
        async with self._upstream(self._trust) as (answers, asks):
            asks.write(head.removesuffix(END) + b"Connection: close" + END + END + body)
            gone = asyncio.ensure_future(self._forth(line, reader, asks))
            try:
                await (self._events if request.watch else self._whole)(line, request, answers)
                if line.dead:
                    await gone  # a dead line does not tell that the server left
            finally:
                self._watches.pop(line, None)
                gone.cancel()
                await asyncio.gather(gone, return_exceptions=True)

    async def _whole(self, line: Line, request: Request, answers: asyncio.StreamReader) -> None:
        while piece := await answers.read(PIECE):
            await self.give(line, piece)

    async def _events(self, line: Line, request: Request, answers: asyncio.StreamReader) -> None:
        head = await answers.readuntil(END + END)
        await self.give(line, head)
        if b" 200 " not in head.partition(END)[0]:
            await self._whole(line, request, answers)
            return
        self._watches[line] = request
        async for event in _lines(answers):
            left = self.edits(request, event)
            if left:
                await self.give(line, _chunk(left))
            if left and not left.endswith(b"\n"):
                return
        await self.give(line, WHOLE)


async def _lines(answers: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines of a body that comes in chunks, each with its newline."""
    rest = b""
    while size := int(await answers.readuntil(END), 16):
        rest += (await answers.readexactly(size + len(END)))[:-2]
        *whole, rest = rest.split(b"\n")
        for each in whole:
            yield each + b"\n"


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def _request(head: bytes) -> Request:
    method, target, _version = head.partition(END)[0].decode().split(" ")
    place = urlsplit(target)
    return Request(time.monotonic(), method, place.path, dict(parse_qsl(place.query)))


def _length(head: bytes) -> int:
    for line in head.split(END):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _its_own(_: Request) -> None:
    return None


def _as_it_is(_: Request, event: bytes) -> bytes:
    return event


# ---------------------------------------------------------------- answers


def answer(status: int, body: bytes, *headers: str) -> bytes:
    """A whole answer, after which the connection ends."""
    lines = [f"HTTP/1.1 {status} Whatever", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return END.join(each.encode() for each in [*lines, *headers, "Connection: close"]) + END + END + body


def refusal(status: int, reason: str, *, after: int = 0) -> bytes:
    """As an API server refuses; `after` seconds it may be asked again."""
    body = json.dumps(status_of(status, reason)).encode()
    return answer(status, body, *([f"Retry-After: {after}"] if after else []))


def status_of(status: int, reason: str) -> dict[str, object]:
    """A Status object (meta/v1, types.go)."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": status,
        "reason": reason,
        "message": f"the proxy says {reason}",
    }
