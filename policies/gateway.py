"""The only place that writes into a cluster. Today it deletes failed pods, and nothing else.

Uses the official client, with whom to trust and who we are from `monitoring.kube.access`. A name is resolved once and every address
judged, as for reading; no proxy, no redirect, no retry: whoever calls decides what a failure means.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from monitoring.kube import errors
from monitoring.kube.access import Access
from monitoring.kube.errors import ApiError, Status, Unauthorized, Unreachable, Untrusted
from monitoring.kube.rights import Right
from monitoring.sources import address
from monitoring.sources.failures import SourceError

SECONDS = 10.0
"""So long one question may take."""
FAILED = "Failed"
WANTED = (Right("get", "", "pods"), Right("delete", "", "pods"))
"""What a clean-up needs: a pod is looked at once more before it goes."""


class Done(NamedTuple):
    """What became of one pod. deleted: by us; gone: it was not there; changed: another pod, or no failed one; refused: not allowed."""

    outcome: Literal["deleted", "gone", "changed", "refused"]
    cause: str = ""


class Gateway:
    """Writes into one cluster. Every method raises ApiError where the API server gave no answer to the question."""

    def __init__(self, access: Access) -> None:
        api = _client(access)
        self._pods, self._reviews = client.CoreV1Api(api), client.AuthorizationV1Api(api)

    def missing(self, namespaces: Collection[str]) -> list[Right]:
        """Rights that a clean-up in these namespaces needs and does not have, whether or not it has them in the whole cluster."""
        lacking = [right for right in WANTED if not self._allowed(right)]
        return [
            msgspec.structs.replace(right, namespace=namespace)
            for right in lacking
            for namespace in sorted(namespaces)
            if not self._allowed(msgspec.structs.replace(right, namespace=namespace))
        ]

    def _allowed(self, right: Right) -> bool:
        asked = client.V1ResourceAttributes(
            verb=right.verb, group=right.group, resource=right.resource, namespace=right.namespace or None
        )
        review = client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=asked)
        )
        with _answers():
            answer = self._reviews.create_self_subject_access_review(review, _request_timeout=SECONDS)
        return bool(answer.status and answer.status.allowed)

    def delete_failed_pod(self, namespace: str, name: str, uid: str) -> Done:
        """Deletes a pod if it is still the one with this uid and still failed; never another one under its name.

        The API server checks again as it deletes: the preconditions name the uid and the version that was looked at.
        """
        try:
            return self._delete(namespace, name, uid)
        except ApiError as error:
            match error.status:
                case 404:
                    return Done("gone")
                case 409:
                    return Done("changed", error.message)
                case 403 | 422:
                    return Done("refused", error.message)
            raise

    def _delete(self, namespace: str, name: str, uid: str) -> Done:
        with _answers():
            found = self._pods.read_namespaced_pod(name, namespace, _request_timeout=SECONDS)
        if found.metadata is None or found.metadata.uid != uid:
            return Done("changed", "another pod has this name now")
        if found.status is None or found.status.phase != FAILED:
            return Done("changed", f"its phase is {found.status.phase if found.status else 'unknown'}")
        same = client.V1Preconditions(uid=uid, resource_version=found.metadata.resource_version)
        with _answers():
            self._pods.delete_namespaced_pod(
                name,
                namespace,
                body=client.V1DeleteOptions(preconditions=same),
                _request_timeout=SECONDS,
            )
        return Done("deleted")


# ---------------------------------------------------------------- how the API server is reached


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


def _client(access: Access) -> client.ApiClient:
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
def _answers() -> Iterator[None]:
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
