"""What every copy of a kind of objects has in common: who keeps it, and how a reflector's calls reach it.

A reflector lives in an event loop and a table in a thread of its own. `Desk` stands between: it takes the reflector's calls and
lets the keeper do the work there, each call in one transaction that the watcher's lease fences.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from django.db import transaction

from monitoring.kube.objects import KubeObject
from monitoring.kube.sinks import Change, WatchState
from monitoring.services import leases
from monitoring.services.leases import Tenure

T = TypeVar("T", bound=KubeObject)
R = TypeVar("R")


class Job(Protocol):
    """Runs a function in the thread of the database."""

    def __call__(self, work: Callable[[], R], /) -> Awaitable[R]: ...


class Keeper(Generic[T]):
    """Keeps rows of one kind of objects of one cluster like the API server's. Its methods run within a transaction."""

    now: datetime
    """The moment of the call."""

    def begin(self) -> None:
        """A list starts, perhaps anew."""

    def put(self, objects: Sequence[T]) -> None:
        """These exist, as they are here."""
        raise NotImplementedError

    def drop(self, objects: Sequence[T]) -> None:
        """These are gone."""
        raise NotImplementedError

    def end(self) -> None:
        """The list is over: what was not put since `begin` is gone."""

    def known(self) -> int | None:
        """How many objects there are; None = not counted."""
        return None


class Desk(Generic[T]):
    """The sink of one reflector (`monitoring.kube.sinks.Sink`)."""

    def __init__(
        self,
        keeper: Keeper[T],
        job: Job,
        tenure: Tenure,
        clock: Callable[[], datetime],
        told: Callable[[WatchState, int | None], None],
        heard: Callable[[datetime], None],
    ) -> None:
        """`told` writes how the reflector is getting on, `heard` that something came; both run in the database's thread."""
        self._keeper, self._job, self._tenure, self._clock = keeper, job, tenure, clock
        self._told, self._heard = told, heard

    async def begin(self) -> None:
        self._keeper.begin()

    async def page(self, objects: Sequence[T]) -> None:
        await self._fenced(lambda _now: self._keeper.put(objects))

    async def end(self) -> None:
        await self._fenced(lambda _now: self._keeper.end())

    async def changes(self, batch: Sequence[Change[T]]) -> None:
        newest = {change.object.metadata.uid: change for change in batch}
        gone = [change.object for change in newest.values() if change.kind == "DELETED"]
        there = [change.object for change in newest.values() if change.kind != "DELETED"]

        def work(now: datetime) -> None:
            if gone:
                self._keeper.drop(gone)
            if there:
                self._keeper.put(there)
            self._heard(now)

        await self._fenced(work)

    async def state(self, state: WatchState) -> None:
        await self._fenced(lambda _now: self._told(state, self._keeper.known()))

    async def _fenced(self, work: Callable[[datetime], None]) -> None:
        def fenced() -> None:
            with transaction.atomic():
                leases.fence(self._tenure)
                self._keeper.now = self._clock()
                work(self._keeper.now)

        await self._job(fenced)
