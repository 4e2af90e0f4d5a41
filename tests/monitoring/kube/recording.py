"""A sink that keeps a copy and remembers what it was told, and a reflector whose waits are short."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from monitoring.kube.client import Client, Limits
from monitoring.kube.objects import KubeObject
from monitoring.kube.reflector import Pace, Reflector
from monitoring.kube.resources import NUMATOPOLOGIES, Resource
from monitoring.kube.sinks import Change, Waiting, WatchState
from tests.monitoring.kube.fake import FakeApiServer

QUICK = Pace(
    page=3,
    gather=0.005,
    between=0.0,
    silence=30.0,
    grace=0.2,
    watch=(30.0, 30.0),
    steady=0.0,
    backoff=(0.01, 0.05),
    spacing=0.0,
    absent=0.02,
)
LIMITS = Limits(connect=10.0, answer=20.0, body=200_000)


class Copy:
    """What a sink makes of it: `names` is the copy, with each object's resourceVersion."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.states: list[WatchState] = []
        self.batches: list[list[tuple[str, str]]] = []
        self.begun = self.ended = 0
        self.fail: Exception | None = None
        self._listed: dict[str, str] = {}

    async def begin(self) -> None:
        self.begun += 1
        self._listed = {}

    async def page(self, objects: Sequence[KubeObject]) -> None:
        self._listed |= {each.metadata.name: each.metadata.resource_version for each in objects}

    async def end(self) -> None:
        self.ended += 1
        self.names = self._listed

    async def changes(self, batch: Sequence[Change[Any]]) -> None:
        if self.fail:
            raise self.fail
        self.batches.append([(each.kind, each.object.metadata.name) for each in batch])
        for each in batch:
            meta = each.object.metadata
            if each.kind == "DELETED":
                self.names.pop(meta.name, None)
            else:
                self.names[meta.name] = meta.resource_version

    async def state(self, state: WatchState) -> None:
        self.states.append(state)

    @property
    def waits(self) -> list[Waiting]:
        return [each for each in self.states if isinstance(each, Waiting)]

    @property
    def causes(self) -> list[str]:
        return [each.cause for each in self.waits]


class Mirror:
    """A running reflector and its copy."""

    def __init__(self, server: FakeApiServer, copy: Copy, reflector: Reflector[Any]) -> None:
        self.server, self.copy, self.reflector = server, copy, reflector

    async def shows(self, *names: str) -> None:
        """Returns when the copy is exactly these; fails when it does not become so."""
        await until(
            lambda: sorted(self.copy.names) == sorted(names), f"{sorted(names)}, not {self.copy.names}"
        )

    async def watches(self) -> None:
        await until(lambda: self.server.watching == 1, "a watch")


@contextlib.asynccontextmanager
async def mirror(
    server: FakeApiServer,
    pace: Pace = QUICK,
    resource: Resource[Any] = NUMATOPOLOGIES,
    limits: Limits = LIMITS,
    **surroundings: Any,
) -> AsyncIterator[Mirror]:
    copy = Copy()
    async with Client(server.access, limits) as client:
        reflector = Reflector(client, resource, copy, pace, **surroundings)
        running = asyncio.ensure_future(reflector.run())
        try:
            yield Mirror(server, copy, reflector)
            assert not running.done(), running.exception()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def until(true: Callable[[], bool], wanted: str) -> None:
    for _ in range(6000):
        if true():
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"waited for {wanted}")


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
