"""Prometheus as a source of history: range and instant queries, bounded in time and size, at a judged address.

Only the two paths of its query API are ever asked, redirects are not followed, and what it says in an error is cut and
told as its own words.
"""

from __future__ import annotations

import http.client
import math
import socket
import ssl
import time
from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from monitoring import metrics
from monitoring.models.sealed import Unreadable
from monitoring.sources import address as addresses
from monitoring.sources import failures
from monitoring.sources.failures import SourceError
from monitoring.sources.http1 import unpacked

SECONDS = 5.0
MOST_BYTES = 8 * 1024 * 1024
RANGE, INSTANT = "/api/v1/query_range", "/api/v1/query"
ERROR_LENGTH = 200


class Series(msgspec.Struct, frozen=True):
    """One series of a result: its labels and (seconds since 1970, value) pairs; no number = None."""

    labels: dict[str, str]
    points: list[tuple[float, float | None]]


class _Result(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct):
    resultType: str = ""  # noqa: N815 - Prometheus' own name
    result: list[_Result] = []


class _Reply(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""


_reply = msgspec.json.Decoder(_Reply)


class Prometheus:
    """One Prometheus. Blocking; a new connection for each query. Every method raises SourceError."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        allowed: frozenset[str] = frozenset(),
        denied: frozenset[tuple[str, int]] = frozenset(),
        seconds: float = SECONDS,
    ) -> None:
        """`allowed`: addresses of the own machine that may be asked. `denied`: hosts and ports that may not."""
        self._address = addresses.parse(url)
        if isinstance(token, Unreadable):
            raise failures.sealed()
        self._denied = denied
        self._token, self._allowed, self._seconds = token, allowed, seconds

    def range(self, query: str, start: float, end: float, step: int) -> list[Series]:
        """Values each `step` seconds."""
        return self._ask(
            RANGE, {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": str(step)}
        )

    def instant(self, query: str) -> list[Series]:
        """Values now."""
        return self._ask(INSTANT, {"query": query})

    def _ask(self, path: str, parameters: Mapping[str, str]) -> list[Series]:
        try:
            found = self._series(self._post(path, {**parameters, "timeout": f"{self._seconds:g}s"}))
        except SourceError:
            metrics.PROMETHEUS.labels("failed").inc()
            raise
        metrics.PROMETHEUS.labels("ok").inc()
        return found

    def _post(self, path: str, parameters: Mapping[str, str]) -> bytes:
        deadline = time.monotonic() + self._seconds
        connection = self._connect()
        try:
            connection.request("POST", self._address.path + path, urlencode(parameters), self._headers())
            response = connection.getresponse()
            body = _read(response, connection, deadline)
            if response.getheader("Content-Encoding", "").lower() == "gzip":
                body = unpacked(body, MOST_BYTES)
            return _checked(response.status, body)
        except TimeoutError as error:
            raise SourceError(failures.TIMEOUT, f"no answer within {self._seconds:g} s") from error
        except ssl.SSLError as error:
            raise SourceError(failures.TLS, f"TLS: {error.reason or error}") from error
        except (OSError, http.client.HTTPException) as error:
            raise SourceError(failures.UNREACHABLE, str(error) or type(error).__name__) from error
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        """Connected to the judged IP address; certificate and Host header are about the name."""
        address = self._address
        _, host = addresses.pick(addresses.resolve(address), "prometheus", self._allowed)
        if address.port in {
            port for name, port in self._denied if name in (host, address.host) or _same(name, host)
        }:
            raise SourceError(failures.ADDRESS, "this is the address of numaweb's own database or Redis")
        connection = http.client.HTTPConnection(address.host, address.port, timeout=self._seconds)
        try:
            sock: socket.socket = socket.create_connection((host, address.port), self._seconds)
            if address.scheme == "https":
                sock = ssl.create_default_context().wrap_socket(sock, server_hostname=address.host)
        except TimeoutError as error:
            raise SourceError(failures.TIMEOUT, f"no connection within {self._seconds:g} s") from error
        except ssl.SSLError as error:
            raise SourceError(failures.TLS, f"TLS: {error.reason or error}") from error
        except OSError as error:
            raise SourceError(failures.UNREACHABLE, error.strerror or str(error)) from error
        connection.sock = sock
        return connection

    def _headers(self) -> dict[str, str]:
        headers = {
            "Host": self._address.authority,
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "numaweb",
        }
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _series(self, body: bytes) -> list[Series]:
        try:
            reply = _reply.decode(body)
        except msgspec.DecodeError as error:
            raise SourceError(failures.NOT_AN_EXPORTER, "what answers there is no Prometheus") from error
        if reply.status != "success" or reply.data is None:
            raise SourceError(failures.SERVER, f"Prometheus says: {_cut(reply.error)}")
        return [
            Series(each.metric, [(at, _number(text)) for at, text in each.values or _one(each.value)])
            for each in reply.data.result
        ]


def escaped(value: str) -> str:
    """A label value as it stands between double quotes in PromQL."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def selector(metric: str, labels: Mapping[str, str]) -> str:
    """`metric{label="value",...}` with every value escaped."""
    chosen = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    return f"{metric}{{{chosen}}}"


def _same(name: str, host: str) -> bool:
    """Whether a name of one of the own services means this IP address."""
    try:
        return any(place[0] == host for *_, place in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM))
    except OSError:
        return False


def _read(
    response: http.client.HTTPResponse, connection: http.client.HTTPConnection, deadline: float
) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if connection.sock is not None:
            connection.sock.settimeout(left)
        part = response.read1(65536)
        if not part:
            return b"".join(parts)
        size += len(part)
        if size > MOST_BYTES:
            raise SourceError(failures.TOO_LARGE, f"the answer has more than {MOST_BYTES} bytes")
        parts.append(part)


def _checked(status: int, body: bytes) -> bytes:
    if status in (401, 403):
        raise SourceError(failures.TOKEN, f"Prometheus refuses the bearer token (status {status})")
    if 300 <= status < 400:
        raise SourceError(
            failures.REDIRECT, f"the address redirects (status {status}), and redirects are not followed"
        )
    if status not in (200, 400, 422, 503):  # with these Prometheus tells the cause as JSON
        raise SourceError(failures.SERVER, f"it answers with status {status}")
    return body


def _one(value: tuple[float, str] | None) -> list[tuple[float, str]]:
    return [] if value is None else [value]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _cut(text: str) -> str:
    shown = "".join(each if each.isprintable() else " " for each in text)
    return shown[:ERROR_LENGTH]
