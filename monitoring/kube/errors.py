"""Why an API server was not understood: one exception per kind of cause, each with a code of what to do about it.

Pages have a sentence for every code. The message holds what the server said or the operating system, cut to a bounded length;
never a token, a key or a header.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from monitoring.kube import rights
from monitoring.kube.rights import Right

REACH = "check-api-server-runs"
NETWORK = "check-api-server-network"
IDENTITY = "renew-credentials"
RIGHT = "grant-right"
CERTIFICATE = "check-api-server-ca"
ADDRESS = "check-api-server-address"
PATIENCE = "wait"
SERVER = "see-api-server-log"

REMEDIES = (REACH, NETWORK, IDENTITY, RIGHT, CERTIFICATE, ADDRESS, PATIENCE, SERVER)


LONGEST = 500
"""Characters of a server's words that are kept."""


class ApiError(Exception):
    """A question without an answer.

    `status` is HTTP's, 0 where there was none; `reason` Kubernetes's own word, or ours in its form; `after` the seconds that the server
    asks to wait before the next attempt, 0 where it says nothing.
    """

    remedy = SERVER

    def __init__(
        self, status: int, reason: str, message: str, *, after: float = 0.0, remedy: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.after = after
        self.remedy = remedy or self.remedy


class Unreachable(ApiError):  # noqa: N818 - named after what is so, as Kubernetes's own reasons are
    """No connection, or no answer in time."""

    remedy = REACH


class Silent(ApiError):  # noqa: N818
    """A connection on which nothing came for too long: its other end is probably gone."""

    remedy = NETWORK


class Untrusted(ApiError):  # noqa: N818
    """The server's certificate is not signed by the given CA, has another name, or its time is over."""

    remedy = CERTIFICATE


class Unauthorized(ApiError):  # noqa: N818
    """401: the token or client certificate is unknown to the server or has ended."""

    remedy = IDENTITY


class Forbidden(ApiError):  # noqa: N818
    """403. `right` is what was refused, None where the server's words do not tell."""

    remedy = RIGHT

    @property
    def right(self) -> Right | None:
        return rights.refused(self.message)


class NotServed(ApiError):  # noqa: N818
    """404: the server has no such resource, or is no API server."""

    remedy = ADDRESS


class Gone(ApiError):  # noqa: N818
    """410: the version or the continue token is older than what the server remembers. Only a new list helps."""

    remedy = PATIENCE


class TooMany(ApiError):  # noqa: N818
    """429: the server has too much to do."""

    remedy = PATIENCE


class Garbled(ApiError):  # noqa: N818
    """An answer that is not what Kubernetes says, or ends in the middle."""


class TooLarge(ApiError):  # noqa: N818
    """An answer beyond the limit of bytes, cut off."""


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: float = 0.0


class Status(msgspec.Struct):
    """How Kubernetes says no: the body of an HTTP error, and the object of an ERROR event. meta/v1, types.go."""

    kind: Literal["Status"]
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None

    @property
    def after(self) -> float:
        return self.details.retry_after_seconds if self.details else 0.0


KINDS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotServed,
    410: Gone,
    429: TooMany,
}


def of(status: Status, code: int = 0, after: float = 0.0) -> ApiError:
    """The exception for what a server said; `code` and `after` are those of HTTP, which win."""
    code = code or status.code
    kind = Gone if status.reason in ("Expired", "Gone") else KINDS.get(code, ApiError)
    words = status.message if status.message.isprintable() else repr(status.message)
    return kind(
        code, status.reason or kind.__name__, words[:LONGEST] or f"HTTP {code}", after=after or status.after
    )
