"""Asking one exporter for its snapshot over a kept connection."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from monitoring.models.sealed import Unreadable
from monitoring.sources import address as addresses
from monitoring.sources import failures
from monitoring.sources.failures import SourceError
from monitoring.sources.http1 import Answer, Budget, Connection, Done
from numacore import wire

PATH = "/v1/snapshot"


class Limits:
    """What one answer may cost, and what all unfinished answers may hold together. For askers of one event loop."""

    def __init__(self, seconds: float, size: int, all_sizes: int) -> None:
        self.seconds, self.size = seconds, size
        self.budget = Budget(all_sizes)
        self.open = Open(seconds)


class Open:
    """Questions without an answer so far, oldest first.

    All have the same time, so the oldest is the first to be late: one timer serves them all, and while everybody answers
    it rings no more often than once in that time.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[Asker, float] = {}
        self._armed = False

    def __contains__(self, asker: Asker) -> bool:
        return asker in self._until

    def add(self, asker: Asker, loop: asyncio.AbstractEventLoop) -> None:
        """One has asked; its `late` is called unless it is removed in time."""
        self._until[asker] = until = loop.time() + self._seconds
        if not self._armed:
            self._arm(until, loop)

    def remove(self, asker: Asker) -> None:
        """It is answered, or asks no more."""
        self._until.pop(asker, None)

    def _arm(self, until: float, loop: asyncio.AbstractEventLoop) -> None:
        self._armed = True
        loop.call_at(until, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._armed = False
        now = loop.time()
        for asker in [asker for asker, until in self._until.items() if until <= now]:
            if self._until.pop(asker, None) is not None:
                asker.late()
        oldest = next(iter(self._until.values()), None)
        if oldest is not None and not self._armed:
            self._arm(oldest, loop)


class Trust(NamedTuple):
    """Whom an exporter's certificate must be from (PEM; "" = an authority that this machine trusts), and the name in it ("" = the
    host of the address)."""

    ca: str = ""
    name: str = ""


class Asker:
    """One exporter. `ask` may be called again once `done` was called."""

    __slots__ = (
        "_address",
        "_connection",
        "_done",
        "_have",
        "_limits",
        "_loop",
        "_question",
        "_questions",
        "_retried",
        "_task",
        "_token",
        "_trust",
    )

    def __init__(
        self,
        url: str,
        token: str,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        trust: Trust = Trust(),  # noqa: B008 - a constant
    ) -> None:
        """Raises SourceError where the address may not be asked."""
        self._trust = trust
        self._address = addresses.parse(url)
        self._token = _header_value(token)
        self._limits, self._loop = limits, loop
        self._connection: Connection | None = None
        self._done: Done | None = None
        self._task: asyncio.Task[None] | None = None
        self._retried = False
        self._have: dict[str, str] | None = None
        self._question = b""
        self._questions: dict[bool, bytes] = {}
        """Made for `_have`, by what they ask for."""

    def ask(self, have: dict[str, str], done: Done, summed: bool = False) -> None:
        """Asks for what changed since `have`; `done` is called within the limits, whatever the exporter does.

        `summed`: while nothing but use changes, use by NUMA node is enough."""
        if have != self._have:
            self._have = dict(have)
            self._questions.clear()
        question = self._questions.get(summed)
        if question is None:
            question = self._questions[summed] = self._make_question(have, summed)
        self._question = question
        self._done, self._retried = done, False
        self._limits.open.add(self, self._loop)
        self._send()

    def close(self) -> None:
        """Ends the connection; `done` is not called any more."""
        self._done = None
        self._stop_waiting()
        if self._connection is not None:
            self._connection.close()

    def _send(self) -> None:
        connection = self._connection
        if connection is not None and connection.idle:
            connection.ask(self._question, self._answered)
        else:
            self._task = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            self._connection = await connect(self._address, self._limits, self._loop, self._trust)
        except SourceError as error:
            self._end(None, error)
        else:
            if self._done is not None and self._connection.idle:
                self._connection.ask(self._question, self._answered)

    def _answered(self, answer: Answer | None, error: SourceError | None) -> None:
        connection = self._connection
        stale = error is not None and connection is not None and connection.used > 1 and connection.untouched
        if stale and not self._retried and self in self._limits.open:
            self._retried = True  # the server closed the kept connection while we asked
            self._connection = None
            self._send()
            return
        self._end(answer, error)

    def late(self) -> None:
        """Called when the time for an answer is over."""
        cause = f"no whole answer within {self._limits.seconds:g} s"
        if self._connection is not None and not self._connection.idle and not self._connection.closed:
            self._connection.give_up(failures.TIMEOUT, cause)
        else:
            self._end(None, SourceError(failures.TIMEOUT, cause))

    def _end(self, answer: Answer | None, error: SourceError | None) -> None:
        done, self._done = self._done, None
        self._stop_waiting()
        if done is not None:
            done(answer, error or refusal(answer))

    def _stop_waiting(self) -> None:
        self._limits.open.remove(self)
        if self._task is not None:
            if not self._task.done() and self._task is not _current(self._loop):
                self._task.cancel()
            self._task = None

    def _make_question(self, have: dict[str, str], summed: bool) -> bytes:
        query = wire.format_question(have, summed)
        path = self._address.path + PATH + (f"?{query}" if query else "")
        lines = [f"GET {path} HTTP/1.1", f"Host: {self._address.authority}"]
        lines += ["User-Agent: numaweb", "Accept: application/json", "Accept-Encoding: identity"]
        if self._token:
            lines.append(f"Authorization: Bearer {self._token}")
        return "\r\n".join([*lines, "", ""]).encode("ascii")


def refusal(answer: Answer | None) -> SourceError | None:
    """Why an answer is none; None = it is one."""
    if answer is None or answer.status == 200:
        return None
    status = answer.status
    if status in (401, 403):
        return SourceError(failures.TOKEN, f"the exporter refuses the bearer token (status {status})")
    if 300 <= status < 400:
        return SourceError(
            failures.REDIRECT, f"the address redirects (status {status}), and redirects are not followed"
        )
    if status == 404:
        return SourceError(failures.NOT_AN_EXPORTER, f"there is no {PATH} at this address (status 404)")
    return SourceError(failures.SERVER, f"the exporter answers with status {status}")


async def connect(
    address: addresses.Address, limits: Limits, loop: asyncio.AbstractEventLoop, trust: Trust
) -> Connection:
    """A new connection to the judged IP address of the host. Raises SourceError."""
    found = await _resolved(address, loop)
    family, host = addresses.pick(found, "exporter")
    secure = _tls(trust.ca) if address.scheme == "https" else None
    name = (trust.name or address.host) if secure else None
    make: Callable[[], Connection] = lambda: Connection(limits.size, limits.budget)  # noqa: E731
    try:
        _, connection = await loop.create_connection(
            make, host, address.port, family=family, ssl=secure, server_hostname=name
        )
    except ssl.SSLError as error:
        raise SourceError(failures.TLS, f"TLS with {address.authority}: {error.reason or error}") from error
    except OSError as error:
        raise SourceError(failures.UNREACHABLE, f"{address.authority}: {error.strerror or error}") from error
    return connection


async def _resolved(address: addresses.Address, loop: asyncio.AbstractEventLoop) -> list[tuple[int, str]]:
    if addresses.is_literal(address.host):
        return addresses.resolve(address)
    try:
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceError(failures.ADDRESS, f"the host name {address.host} cannot be resolved") from error
    return [(int(family), str(place[0])) for family, _, _, _, place in found]


@lru_cache(maxsize=64)
def _tls(ca: str) -> ssl.SSLContext:
    """Raises SourceError where the authority's text is no certificate."""
    try:
        return ssl.create_default_context(cadata=ca or None)
    except (ssl.SSLError, ValueError) as error:
        raise SourceError(
            failures.TLS, "the stored certificate authority is no certificate in PEM form"
        ) from error


def _header_value(token: str) -> str:
    if isinstance(token, Unreadable):
        raise failures.sealed()
    if not token.isascii() or not token.isprintable():
        raise SourceError(failures.TOKEN, "the bearer token has characters that a header cannot have")
    return token


def _current(loop: asyncio.AbstractEventLoop) -> asyncio.Task[object] | None:
    return asyncio.current_task(loop)
