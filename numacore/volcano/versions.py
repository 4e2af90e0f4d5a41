"""Volcano's versions and how well each is known."""

from __future__ import annotations

from typing import Literal

import msgspec

Proof = Literal["proven", "documents"]

PROVEN = (1, 15)
OLDEST = (1, 9)
NEWEST = (1, 16)


class Version(msgspec.Struct, frozen=True):
    """A minor version. `proof`: "proven" = its answers were compared with the real program's; "documents" = its rules are read only.

    1.9 to 1.16 judge one pod alike. From 1.16 on the scheduler also subtracts CPUs of pods that it bound and that no exporter has
    reported yet (volcano #5504); whoever asks puts them into `allocatable`.
    """

    major: int
    minor: int

    @property
    def proof(self) -> Proof:
        return "proven" if (self.major, self.minor) == PROVEN else "documents"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class UnknownVersionError(ValueError):
    """A version that nothing is known of, or a text that is no version."""


def parse(text: str) -> Version:
    """Reads "1.15", "v1.15.1" and the like.

    Raises:
        UnknownVersionError: the text is no version, or one outside 1.9 to 1.16.
    """
    parts = text.removeprefix("v").split("-")[0].split(".")
    if len(parts) not in {2, 3} or not all(part.isascii() and part.isdigit() for part in parts):
        raise UnknownVersionError(f"{text[:40]!r} is not a version of Volcano such as 1.15")
    version = Version(int(parts[0]), int(parts[1]))
    if not OLDEST <= (version.major, version.minor) <= NEWEST:
        raise UnknownVersionError(
            f"Volcano {text[:40]} is not known here; known are 1.{OLDEST[1]} to 1.{NEWEST[1]}"
        )
    return version
