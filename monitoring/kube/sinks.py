"""What a reflector tells: objects, changes and how it is getting on. Whoever keeps a copy of the cluster implements `Sink`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from monitoring.kube.objects import KubeObject
from monitoring.kube.rights import Right

T = TypeVar("T", bound=KubeObject)


Kind = Literal["ADDED", "MODIFIED", "DELETED"]


class Change(msgspec.Struct, Generic[T], frozen=True):
    """What happened to one object; for DELETED it is the object as it was last."""

    kind: Kind
    object: T


class Listing(msgspec.Struct, frozen=True):
    """Everything is being read anew. `remaining` objects are still to come, None where the server does not say."""

    since: float
    done: int = 0
    remaining: int | None = None


class Watching(msgspec.Struct, frozen=True):
    """All is known and changes arrive. `unreadable` objects of the last list were left out because their form is not the known one;
    `example` is the name of one and what is wrong with it."""

    since: float
    unreadable: int = 0
    example: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """Nothing arrives until the next attempt. What is known is as old as the last other state.

    `cause` is the reason in one word (`Forbidden`, `Unreachable`, ...), `remedy` a code of monitoring.kube.errors, `error` the words
    of the server or of the system, `right` the one that is missing, where that is the cause.
    """

    since: float
    until: float
    cause: str
    remedy: str
    error: str
    right: Right | None = None


class Absent(msgspec.Struct, frozen=True):
    """The API server has no such resource (its definition is not installed): there are no objects, and that is no fault."""

    since: float
    until: float


WatchState = Listing | Watching | Waiting | Absent
"""All times are seconds since 1970 by the clock that the reflector was given."""


class Sink(Protocol[T]):
    """Keeps a copy. Calls come one after another, never two at once; a call that takes long makes the API server wait, nothing is lost.

    A list may be broken off at any page: `begin` then comes again, or a `state` in between. What a list left out is gone only
    when `end` says so. An exception ends the reflector with it.
    """

    async def begin(self) -> None:
        """A new list starts."""

    async def page(self, objects: Sequence[T]) -> None:
        """A part of it, in order."""

    async def end(self) -> None:
        """The list is whole: what stood on no page is gone."""

    async def changes(self, batch: Sequence[Change[T]]) -> None:
        """What happened since, in order."""

    async def state(self, state: WatchState) -> None:
        """How the reflector is getting on; said when that changes."""
