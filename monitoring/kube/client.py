"""Asks one API server over HTTP: one session, bounded answers, failures by name. It can read and it can ask for its own rights; it has no
verb that writes. Nothing is tried twice here, but for what aiohttp does: a connection that ends before an answer begins is made anew once.

Answers are asked for uncompressed: inflating a page costs more than decoding it, and what was not asked for packed is not unpacked, so no
small answer can become a large one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult

from monitoring.kube import errors
from monitoring.kube.access import Access
from monitoring.kube.errors import Garbled, TooLarge, Unauthorized, Unreachable, Untrusted
from monitoring.sources import address

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ERROR_BYTES = 64 * 1024
READ_BUFFER = 256 * 1024
IDLE, INTERVAL, PROBES = 30, 10, 3
"""TCP's own question whether the other end is there: after how many quiet seconds, how often, and how many unanswered ones are the end."""


class Limits(msgspec.Struct, frozen=True):
    """Seconds and bytes. `answer` is for a whole answer, or the beginning of a stream; `token_age` for how long a token's file is
    believed without reading it again (client-go: one minute)."""

    connect: float = 5.0
    answer: float = 60.0
    body: int = 64 * 1024 * 1024
    token_age: float = 60.0


LIMITS = Limits()


class Version(msgspec.Struct, frozen=True, rename="camel"):
    """What `/version` says, for instance 1, 37 (some say `37+`) and v1.37.2."""

    major: str
    minor: str
    git_version: str
    platform: str = ""


class _ReviewStatus(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _ReviewStatus


class Stream:
    """The body of an answer that goes on."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def read(self) -> bytes:
        """What has arrived, as soon as it is anything; empty at the end. Raises ApiError where the connection ends before the body."""
        with _named(0):
            return await self._response.content.readany()


class Client:
    """`async with Client(access) as client`. For one event loop; any number of questions at once."""

    def __init__(
        self, access: Access, limits: Limits = LIMITS, *, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self.access = access
        self.limits = limits
        self._ticks = ticks
        self._token = access.token
        self._token_read: float | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Raises Untrusted where the access has certificates that cannot be read."""
        try:
            tls = self.access.tls()
        except ssl.SSLError as error:
            raise Untrusted(
                0, "BadCertificate", f"the stored certificate or key cannot be read: {error.reason}"
            ) from None
        connector = aiohttp.TCPConnector(
            ssl=tls if tls is not None else True,
            resolver=_JudgingResolver(),
            socket_factory=_alive_socket,
            limit=0,
            # An end of TLS that the other side does not confirm would hold a socket for 30 s after we are gone. Newer asyncio lets go itself.
            enable_cleanup_closed=sys.version_info < (3, 12, 7),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "numaweb"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.limits.connect),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=READ_BUFFER,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # what was aborted lets go of its sockets in the loop's next round

    async def get(self, path: str, params: Mapping[str, str] = {}) -> bytes:
        """A whole answer. Raises ApiError."""
        return await self._whole("GET", path, params, None)

    async def review(self, body: bytes) -> bool:
        """Whether a SelfSubjectAccessReview is answered with yes. It leaves nothing behind on the server. Raises ApiError."""
        answer = await self._whole("POST", REVIEWS, {}, body)
        try:
            return msgspec.json.decode(answer, type=_Review).status.allowed
        except msgspec.DecodeError as error:
            raise Garbled(200, "NotAReview", f"the answer is no review of rights: {error}") from None

    async def version(self) -> Version:
        """Raises ApiError; Garbled where this is no API server."""
        try:
            return msgspec.json.decode(await self.get("/version"), type=Version)
        except msgspec.DecodeError as error:
            raise Garbled(
                200, "NotKubernetes", f"this is no API server: {error}", remedy=errors.ADDRESS
            ) from None

    @contextlib.asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str] = {}) -> AsyncIterator[Stream]:
        """An answer that goes on. Raises ApiError where it does not begin well."""
        async with contextlib.AsyncExitStack() as stack:
            with _named(self.limits.answer):
                async with asyncio.timeout(self.limits.answer):
                    response = await stack.enter_async_context(self._ask("GET", path, params, None))
                    await self._check(response)
            try:
                yield Stream(response)
            finally:
                # At once: a stream has no end worth waiting for, and a polite one of TLS waits for the other side.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()
                response.close()

    async def _whole(self, method: str, path: str, params: Mapping[str, str], body: bytes | None) -> bytes:
        with _named(self.limits.answer):
            async with asyncio.timeout(self.limits.answer), self._ask(method, path, params, body) as response:
                await self._check(response)
                return await _bounded(response, self.limits.body)

    def _ask(self, method: str, path: str, params: Mapping[str, str], body: bytes | None) -> Any:
        assert self._session is not None, "a Client is used within `async with`"
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token := self._current_token():
            headers["Authorization"] = f"Bearer {token}"
        return self._session.request(
            method,
            self.access.server + path,
            params=params,
            data=body,
            headers=headers,
            allow_redirects=False,
            server_hostname=self.access.tls_server_name or None,
        )

    def _current_token(self) -> str:
        file = self.access.token_file
        if not file:
            return self._token
        now = self._ticks()
        if self._token_read is None or now - self._token_read >= self.limits.token_age:
            # A file that is being replaced: what was read before may still be good, and the server will say if it is not.
            with contextlib.suppress(OSError, UnicodeDecodeError):
                self._token = Path(file).read_text(encoding="ascii").strip()
                self._token_read = now
            if not self._token or not self._token.isprintable():
                raise Unauthorized(0, "NoToken", f"the file {file} holds no token that can be read")
        return self._token

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        """Raises what an answer other than 200 says."""
        code = response.status
        if code in (200, 201):
            return
        if code == 401:
            self._token_read = None
        if code < 400:
            raise Garbled(
                code,
                "Redirect" if code >= 300 else "NotKubernetes",
                f"HTTP {code}: an API server does not answer so",
                remedy=errors.ADDRESS,
            )
        try:
            status = msgspec.json.decode(await _bounded(response, ERROR_BYTES), type=errors.Status)
        except (msgspec.DecodeError, TooLarge):
            status = errors.Status("Status", message=f"HTTP {code}, without a word of Kubernetes about it")
        # Who repeats our own secret in an error must not bring it onto a page.
        if self._token:
            status.message = status.message.replace(self._token, "***")
        raise errors.of(status, code, _seconds(response.headers.get("Retry-After", "")))


async def _bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    parts, size = [], 0
    while part := await response.content.readany():
        parts.append(part)
        size += len(part)
        if size > most:
            response.close()
            raise TooLarge(response.status, "TooLarge", f"the answer is longer than {most} bytes")
    return b"".join(parts)


def _seconds(text: str) -> float:
    """Retry-After as API servers write it. The other form, a date, is no number of seconds and counts as nothing said."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0.0


@contextlib.contextmanager
def _named(seconds: float) -> Any:
    """Gives what aiohttp and the system raise its name here."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise Unreachable(0, "Unreachable", _words(error)) from None
    except TimeoutError:
        raise Unreachable(0, "Timeout", f"no answer within {seconds:g} s", remedy=errors.NETWORK) from None
    except aiohttp.ClientConnectorCertificateError as error:
        raise Untrusted(0, "Certificate", _words(error.certificate_error)) from None
    except aiohttp.ClientSSLError as error:
        raise Untrusted(0, "TLS", _words(error.os_error)) from None
    except aiohttp.ClientConnectorError as error:
        remedy = errors.ADDRESS if isinstance(error.os_error, _RefusedAddressError) else ""
        raise Unreachable(0, "Unreachable", _words(error.os_error), remedy=remedy) from None
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
        raise Unreachable(0, "Cut", f"the connection ended in the middle: {_words(error)}") from None
    except aiohttp.ClientError as error:
        raise Garbled(0, "NotHTTP", _words(error), remedy=errors.ADDRESS) from None


def _words(error: BaseException) -> str:
    """asyncio puts addresses where the system's words would be, so those come from the number."""
    number = error.errno if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
    if number is not None and number > 0:
        return os.strerror(number)
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__)[: errors.LONGEST]


# ---------------------------------------------------------------- connections


class _RefusedAddressError(OSError):
    """A name leads to an address that is never asked."""


class _JudgingResolver(AbstractResolver):
    """Names as the system knows them. aiohttp connects to exactly the addresses that were judged here."""

    def __init__(self) -> None:
        self._system = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._system.resolve(host, port, family)
        for each in found:
            if reason := address.forbidden(each["host"], "apiserver"):
                raise _RefusedAddressError(0, reason)
        return found

    async def close(self) -> None:
        await self._system.close()


def _alive_socket(place: tuple[Any, ...]) -> socket.socket:
    """A socket that notices by itself when the other end is gone (Linux's names)."""
    made = socket.socket(family=place[0], type=place[1], proto=place[2])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, INTERVAL)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, (IDLE + INTERVAL * PROBES) * 1000)
    return made
