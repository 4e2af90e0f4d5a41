"""Why an API server was not understood: one exception per kind of cause, each with a code of what to do about it.

Pages have a sentence for every code. The message holds what the server said or the operating system, cut to a bounded length;
never a token, a key or a header.
"""

from __future__ import annotations

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


class ApiError(Exception):
    """A question without an answer. `status` is HTTP's, 0 where there was none; `reason` Kubernetes's own word, or ours in its form."""

    remedy = SERVER

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


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

    def __init__(self, status: int, reason: str, message: str, right: Right | None) -> None:
        super().__init__(status, reason, message)
        self.right = right


class NotServed(ApiError):  # noqa: N818
    """404: the server has no such resource, or is no API server."""

    remedy = ADDRESS


class Gone(ApiError):  # noqa: N818
    """410: the version or the continue token is older than what the server remembers. Only a new list helps."""

    remedy = PATIENCE


class TooMany(ApiError):  # noqa: N818
    """429. `after`: seconds that the server asks to wait, 0 where it says nothing."""

    remedy = PATIENCE

    def __init__(self, status: int, reason: str, message: str, after: float) -> None:
        super().__init__(status, reason, message)
        self.after = after


class Garbled(ApiError):  # noqa: N818
    """An answer that is not what Kubernetes says, or ends in the middle."""


class TooLarge(ApiError):  # noqa: N818
    """An answer beyond the limit of bytes, cut off."""
