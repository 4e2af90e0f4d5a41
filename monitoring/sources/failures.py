"""Why a question was not answered: the cause in words of the field, and a code of what to do about it."""

from __future__ import annotations


class SourceError(Exception):
    """`remedy` is a code that pages have a sentence for; the text is the cause and holds no secret."""

    def __init__(self, remedy: str, cause: str) -> None:
        super().__init__(cause)
        self.remedy = remedy


UNREACHABLE = "check-exporter-runs"
TIMEOUT = "check-network"
TOKEN = "set-token"  # noqa: S105 - a code, not a secret
SEALED_TOKEN = "enter-token"  # noqa: S105 - likewise
NOT_AN_EXPORTER = "check-address"
REDIRECT = "use-final-address"
TOO_LARGE = "check-exporter"
GARBLED = "check-exporter-version"
ADDRESS = "fix-address"
TLS = "check-certificate"
CLONE = "renew-machine-id"
CLAIMED = "remove-duplicate"
STRANGER = "not-in-cluster"
ELSEWHERE = "name-of-its-node"
SERVER = "see-exporter-log"
DEFECT = "report-defect"


def sealed() -> SourceError:
    """A token that no key of this service opens."""
    return SourceError(
        SEALED_TOKEN, "the stored bearer token cannot be read: it was encrypted with another secret key"
    )


def defect(error: Exception) -> SourceError:
    """A surprise within numaweb, of which the exporter is innocent."""
    cause = f"numaweb could not process this node's answer: {type(error).__name__}: {error}"
    return SourceError(DEFECT, cause.replace("\0", "\ufffd")[:400])
