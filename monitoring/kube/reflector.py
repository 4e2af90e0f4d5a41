"""Keeps a copy of one kind of objects true: a list, then a watch from there on, for ever, through everything an API server does.

What it relies on, and what not:

* A watch goes on from the resourceVersion of the last event that the sink has taken, so a cut connection costs no event.
* 410, as a status or as an ERROR event, and anything that cannot be read lead to a new list. After a list everything that it does not
  have is gone, so no deletion is missed.
* Lists are dear, so they are rare: failures back off with jitter, and a list begins no sooner than `Pace.spacing` and the time that the
  one before took after its end, however often the server says 410.
* A server that was restored from a backup, or came back empty, counts its versions from an earlier point and has nothing to say until it
  reaches ours. So after every connection that did not end by itself, what fits on one page is listed again, and of what does not the present version
  is compared. Versions are compared as numbers only to become suspicious, never to trust (KEP-5504 made them comparable).
* A half-open connection is silent. Where bookmarks come, they come about once a minute, so longer silence ends the watch. They do not come for everything
  (API server 1.37: for pods and nodes, for events never, for custom resources not while nothing changes), so one has to be seen first; until then
  TCP's keepalive and the end that was asked for are what finds a dead connection.
* Once in a while (`Pace.relist`) everything is listed anyway, for whatever nobody thought of.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, NoReturn, TypeVar

import msgspec

from monitoring.kube import errors, lists
from monitoring.kube.client import Client, Stream
from monitoring.kube.errors import ApiError, Forbidden, Garbled, Gone, NotServed, Silent, Unreachable
from monitoring.kube.lists import EVERYTHING, Selectors
from monitoring.kube.objects import KubeObject
from monitoring.kube.resources import Resource, served
from monitoring.kube.sinks import Absent, Change, Listing, Sink, Waiting, Watching

T = TypeVar("T", bound=KubeObject)


class Pace(msgspec.Struct, frozen=True):
    """Every wait and size. Seconds; the figures of client-go where it has one."""

    page: int = lists.LIMIT
    """Objects of a list's page."""
    batch: int = 500
    """Changes that the sink gets at once, at most."""
    gather: float = 0.2
    """How long the first of them waits for others."""
    between: float = 1.0
    """From one hand-over to the next, at least: what comes alone is told at once, and a steady stream costs one transaction a second."""
    line: int = 8 * 1024 * 1024
    """Bytes of one event. etcd takes no object over 1.5 MiB; JSON may be several times that."""
    watch: tuple[float, float] = (300.0, 600.0)
    """Between these a watch is asked to end by itself, so that connections spread anew over API servers."""
    silence: float = 150.0
    """Without a byte, where bookmarks come each minute."""
    grace: float = 15.0
    """After the end that was asked for."""
    steady: float = 30.0
    """A watch that lived so long makes the failures before it forgotten."""
    backoff: tuple[float, float] = (1.0, 60.0)
    """After the first failure and at most; doubled each time, and between half and all of it is waited."""
    spacing: float = 5.0
    """From a list's end to the next one's beginning, at least."""
    relist: float = 3600.0
    """A list at the latest after that, give or take a quarter."""
    absent: float = 120.0
    """Until the API server is asked again whether it has the resource by now."""
    patience: float = 300.0
    """The longest Retry-After that is believed."""


PACE = Pace()
LITTLE = 64 * 1024
"""Bytes. When more arrives at once there is a lot to read, and nobody pauses."""


class _Event(msgspec.Struct):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta


_events = msgspec.json.Decoder(_Event)
_bookmarks = msgspec.json.Decoder(_Bookmark)


class Reflector(Generic[T]):
    """`await Reflector(client, resource, sink).run()` ends only by cancellation or by an exception of the sink.

    `clock` stamps states (seconds since 1970), `ticks` measures (monotonic). `lists_begun` and `malformed` count since the start.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        sink: Sink[T],
        pace: Pace = PACE,
        *,
        selectors: Selectors = EVERYTHING,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.lists_begun = 0
        self.malformed = 0
        self._client = client
        self._resource = resource
        self._sink = sink
        self._pace = pace
        self._selectors = selectors
        self._clock, self._ticks, self._sleep, self._chance = clock, ticks, sleep, chance
        self._version = ""
        """Where a watch goes on; empty: a list is needed."""
        self._doubtful = False
        """The last connection did not end by itself: the server may be another one than before."""
        self._paged = False
        """The last list had several pages."""
        self._bookmarks = False
        """The server sends bookmarks for this resource: one was seen."""
        self._left_out = (0, "")
        self._failures = 0
        self._list_from = 0.0
        self._list_by = 0.0

    async def run(self) -> NoReturn:
        while True:
            try:
                await self._round()
            except ApiError as error:
                await self._recover(error)

    async def _round(self) -> None:
        if self._ticks() >= self._list_by:
            self._version = ""
        if self._version and self._doubtful:
            await self._compare()
        if not self._version and not await self._list():
            await self._rest()
        elif self._version:
            await self._watch()

    # ------------------------------------------------------------ list

    async def _list(self) -> bool:
        """Everything anew; False where the server has no such resource."""
        began, since, done, number = self._ticks(), self._clock(), 0, 0
        self.lists_begun += 1
        unreadable, example, version = 0, "", ""
        try:
            pages = lists.pages(
                self._client, self._resource, limit=self._pace.page, selectors=self._selectors
            )
            async with contextlib.aclosing(pages):
                async for page in pages:
                    if not number:
                        await self._sink.begin()
                    number += 1
                    await self._sink.page(page.objects)
                    done += len(page.objects)
                    unreadable += page.unreadable
                    example = example or page.example
                    version = page.version
                    if page.more:
                        await self._sink.state(Listing(since, done, page.remaining))
        except NotServed:
            if self._resource.group and not await served(self._client, self._resource):
                return False
            raise
        finally:
            now = self._ticks()
            self._list_from = now + max(self._pace.spacing, now - began)
        await self._sink.end()
        self._version, self._doubtful, self._paged = version, False, number > 1
        self._left_out = (unreadable, example)
        self._list_by = self._ticks() + self._pace.relist * (0.75 + self._chance() / 2)
        return True

    async def _rest(self) -> None:
        """There is no such resource, so there are no objects. That is a state to wait in, and no failure."""
        await self._sink.begin()
        await self._sink.end()
        now = self._clock()
        self._failures = 0
        await self._sink.state(Absent(now, now + self._pace.absent))
        await self._sleep(self._pace.absent)

    async def _compare(self) -> None:
        """Whether the server has come as far as what we saw."""
        now = await lists.head(self._client, self._resource)
        if _older(now, self._version):
            raise Gone(200, "WentBack", f"the server is at version {now}, before {self._version}")
        self._doubtful = False

    # ------------------------------------------------------------ watch

    async def _watch(self) -> None:
        """Until the stream ends by itself. Raises ApiError for any other end."""
        least, most = self._pace.watch
        asked = least + (most - least) * self._chance()
        asked = max(1.0, min(asked, self._list_by - self._ticks()))
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(round(asked)),
            **self._selectors.params,
        }
        self._doubtful = True
        async with self._client.stream(self._resource.path, params) as stream:
            began = self._ticks()
            await self._sink.state(Watching(self._clock(), *self._left_out))
            try:
                await self._follow(stream, asked + self._pace.grace)
            finally:
                lived = self._ticks() - began
                if lived >= self._pace.steady:
                    self._failures = 0
        if lived < min(self._pace.steady, asked / 2):
            raise Unreachable(0, "Ended", f"the server ended the watch after {lived:.1f} s")
        self._doubtful = False

    async def _follow(self, stream: Stream, longest: float) -> None:
        """Hands over what arrives, in batches, for `longest` seconds. A read that has begun is kept while a batch is handed over."""
        lines = _Lines(self._pace.line)
        batch: list[Change[T]] = []
        version, due, last = self._version, 0.0, -math.inf
        now = asyncio.get_running_loop().time
        end = now() + longest
        reading: asyncio.Task[bytes] | None = None
        try:
            while True:
                reading = reading or asyncio.ensure_future(stream.read())
                quiet = min(longest, self._pace.silence) if self._bookmarks else longest
                await asyncio.wait({reading}, timeout=max(0.0, due - now()) if batch else quiet)
                chunk: bytes | None = None
                if reading.done():
                    chunk, reading = reading.result(), None
                    for line in lines.take(chunk):
                        version = self._read(line, batch) or version
                elif not batch:
                    self._bookmarks = False
                    raise Silent(0, "Silent", f"nothing came for {quiet:g} s, not even a bookmark")
                if batch and not due:
                    due = max(now() + self._pace.gather, last + self._pace.between)
                if chunk == b"" or not batch or now() >= due or len(batch) >= self._pace.batch:
                    await self._hand_over(batch)
                    last = now() if batch else last
                    self._version, batch, due = version, [], 0.0
                if chunk == b"":
                    lines.finish()
                    return
                if batch and chunk is not None and len(chunk) < LITTLE:
                    # What comes meanwhile gathers below us: each look at it alone would cost as much as an event.
                    await asyncio.sleep(max(0.0, due - now()))
                if now() >= end:
                    return
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    async def _hand_over(self, batch: list[Change[T]]) -> None:
        size = self._pace.batch
        for start in range(0, len(batch), size):
            await self._sink.changes(batch[start : start + size])

    def _read(self, line: bytes, batch: list[Change[T]]) -> str:
        """Puts the event of a line into the batch; the resourceVersion after it.

        Raises:
            Gone: the server says so, or its versions went back.
            Garbled: it is no event of this resource.
            ApiError: the server ends the watch with an error.
        """
        try:
            event = _events.decode(line)
            if event.type == "ERROR":
                raise errors.of(msgspec.json.decode(event.object, type=errors.Status))
            if event.type == "BOOKMARK":
                version = _bookmarks.decode(event.object).metadata.resource_version
                if _older(version, self._version):
                    raise Gone(200, "WentBack", f"the server is at version {version}, before {self._version}")
                self._bookmarks = True
                return version
            change: Change[T] = Change(event.type, self._resource.decode(event.object))
        except msgspec.DecodeError as error:
            self.malformed += 1
            raise Garbled(200, "NotAnEvent", f"an event cannot be read: {error}") from None
        batch.append(change)
        return change.object.metadata.resource_version

    # ------------------------------------------------------------ failures

    async def _recover(self, error: ApiError) -> None:
        """Says what is wrong and until when nothing happens, and waits so long."""
        self._failures += 1
        if isinstance(error, Gone | Garbled | NotServed) or (self._doubtful and not self._paged):
            self._version = ""
        first, most = self._pace.backoff
        wait = min(most, first * 2.0 ** min(self._failures - 1, 30)) * (0.5 + self._chance() / 2)
        wait = max(wait, min(error.after, self._pace.patience))
        if not self._version:
            wait = max(wait, self._list_from - self._ticks())
        now = self._clock()
        await self._sink.state(
            Waiting(
                now,
                now + wait,
                type(error).__name__,
                error.remedy,
                error.message,
                error.right if isinstance(error, Forbidden) else None,
            )
        )
        await self._sleep(wait)


class _Lines:
    """Bytes as they arrive, cut into lines. What has no end yet is kept, up to a limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rest: list[bytes] = []
        self._size = 0

    def take(self, chunk: bytes) -> list[bytes]:
        """The lines that are whole now. Raises Garbled beyond the limit."""
        first, *others = chunk.split(b"\n")
        self._rest.append(first)
        self._size += len(first)
        found = []
        if others:
            found = [b"".join(self._rest), *others[:-1]]
            self._rest, self._size = [others[-1]], len(others[-1])
        if self._size > self._most:
            raise Garbled(200, "TooLarge", f"an event is longer than {self._most} bytes")
        return [line for line in found if line.strip()]

    def finish(self) -> None:
        """Raises Unreachable where the last line has no end."""
        if self._size:
            raise Unreachable(0, "Cut", "the watch ended in the middle of an event")


def _older(version: str, known: str) -> bool:
    """Whether a version is surely from before another. Versions that are no numbers cannot be told apart."""
    return version.isdecimal() and known.isdecimal() and int(version) < int(known)
