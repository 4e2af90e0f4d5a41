"""How the API server is reached for writing, and how its answers and refusals come back.

The official client, with whom to trust and who we are from `monitoring.kube.access`. A name is resolved once and every address
judged, as for reading; no proxy, no redirect, no retry: whoever calls decides what a failure means.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from monitoring.kube import errors
from monitoring.kube.access import Access
from monitoring.kube.errors import Status, Unauthorized, Unreachable, Untrusted
from monitoring.kube.rights import Right
from monitoring.sources import address
from monitoring.sources.failures import SourceError

SECONDS = 10.0
"""So long one question may take."""
PAGE = 500
T = TypeVar("T")


def allowed(reviews: client.AuthorizationV1Api, right: Right) -> bool:
    """Whether we have a right. Raises ApiError."""
    asked = client.V1ResourceAttributes(
        verb=right.verb,
        group=right.group,
        resource=right.resource,
        subresource=right.subresource or None,
        namespace=right.namespace or None,
    )
    review = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=asked)
    )
    with answers():
        answer = reviews.create_self_subject_access_review(review, _request_timeout=SECONDS)
    return bool(answer.status and answer.status.allowed)


def _configuration(access: Access) -> client.Configuration:
    """To the very address that was judged, whatever its name resolves to a moment later."""
    try:
        base = address.parse(access.server)
        _family, ip = address.pick(_resolved(base.host, base.port), "apiserver")
    except SourceError as error:
        raise Unreachable(0, "Unreachable", str(error), remedy=errors.ADDRESS) from None
    made = client.Configuration()
    shown = f"[{ip}]" if ":" in ip else ip
    made.host = f"{base.scheme}://{shown}:{base.port}{base.path}"
    made.proxy = None
    made.client_side_validation = False
    made.tls_server_name = access.tls_server_name or base.host
    return made


def _resolved(host: str, port: int) -> list[tuple[int, str]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unreachable(0, "Unreachable", f"{host}: {error.strerror or error}") from None
    return [(family, str(where[0])) for family, _kind, _protocol, _name, where in found]


class Line:
    """Plain questions to one API server, for answers of which only a few fields are read. Raises ApiError."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str | int] | None = None,
        *,
        kind: str = "application/json",
    ) -> bytes:
        """The body of the answer."""
        url = f"{self._api.configuration.host}{path}"
        shown = {name: value for name, value in (query or {}).items() if value != ""}
        headers = {**self._api.default_headers, "Accept": "application/json", "Content-Type": kind}
        with answers():
            answer = self._api.call_api(
                method, f"{url}?{urlencode(shown)}" if shown else url, headers, body, _request_timeout=SECONDS
            )
            data: bytes = answer.read() or b""  # type: ignore[no-untyped-call]
            if not 200 <= answer.status <= 299:
                raise ApiException(
                    status=answer.status, reason=answer.reason, body=data.decode("utf-8", "replace")
                )
        return data

    def listed(self, path: str, form: type[T], query: Mapping[str, str | int] | None = None) -> Iterator[T]:
        """The objects of a list, page by page."""
        more = ""
        while True:
            asked = {**(query or {}), "limit": PAGE, "continue": more}
            page = decoded(self.ask("GET", path, query=asked), _Page)
            yield from (decoded(each, form) for each in page.items)
            more = page.metadata.more
            if not more:
                return


class _ListMeta(msgspec.Struct):
    more: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] = []


def decoded(data: bytes | msgspec.Raw, form: type[T]) -> T:
    """Raises ApiError."""
    try:
        return msgspec.json.decode(data, type=form)
    except msgspec.DecodeError as error:
        raise errors.Garbled(0, "Garbled", str(error)[: errors.LONGEST]) from None


def client_for(access: Access) -> client.ApiClient:
    """Raises ApiError."""
    made = _configuration(access)
    api = client.ApiClient(made)
    options: dict[str, Any] = {"retries": False, "timeout": SECONDS}
    try:
        if context := access.tls():
            options |= {"ssl_context": context, "server_hostname": made.tls_server_name}
        token = Path(access.token_file).read_text("ascii").strip() if access.token_file else access.token
    except (OSError, ssl.SSLError, UnicodeDecodeError) as error:
        raise Unauthorized(0, "Unauthorized", f"{access.token_file or 'certificate'}: {error}") from None
    api.rest_client.pool_manager = urllib3.PoolManager(**options)
    api.default_headers["Host"] = address.parse(access.server).authority
    if token:
        api.default_headers["Authorization"] = f"Bearer {token}"
    return api


@contextmanager
def answers() -> Iterator[None]:
    """The official client's exceptions as those of `monitoring.kube.errors`."""
    try:
        yield
    except ApiException as error:
        raise errors.of(_status(error), error.status or 0) from None
    except urllib3.exceptions.SSLError as error:
        raise Untrusted(0, "Untrusted", str(error)[: errors.LONGEST]) from None
    except urllib3.exceptions.HTTPError as error:
        raise Unreachable(0, "Unreachable", str(error)[: errors.LONGEST]) from None
    except ValueError as error:  # an answer that is no object of Kubernetes
        raise errors.Garbled(0, "Garbled", str(error)[: errors.LONGEST]) from None


def _status(error: ApiException) -> Status:
    try:
        return msgspec.json.decode(error.body or b"", type=Status)
    except msgspec.DecodeError:
        return Status("Status", error.status or 0, message=str(error.reason or ""))
