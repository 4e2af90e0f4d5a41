"""A watcher that runs in a test's event loop, and looks into the tables from there."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from django.db import close_old_connections, connections

from monitoring.models import Node, Pod, WatchHealth
from monitoring.services import watching
from monitoring.services.watching.watch import Waits
from tests.monitoring.kube.recording import QUICK

WAITS = Waits(beat=0.1, patience=0.6, greet=0.3, retry=0.1, pace=msgspec.structs.replace(QUICK, absent=0.2))
LOOKS = 600


async def in_database(work: Callable[[], Any]) -> Any:
    def fresh() -> Any:
        close_old_connections()
        try:
            return work()
        finally:
            connections.close_all()

    return await asyncio.to_thread(fresh)


async def until(work: Callable[[], Any], wanted: Any) -> None:
    found: Any = None
    for _ in range(LOOKS):
        found = await in_database(work)
        if found == wanted:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"waited for {wanted!r}, saw {found!r} last")


@contextlib.asynccontextmanager
async def watcher(waits: Waits = WAITS) -> AsyncIterator[None]:
    stop = threading.Event()
    running = asyncio.create_task(watching.run(waits, stop, look=0.05))
    try:
        yield
        assert not running.done()
    finally:
        stop.set()
        await running


def pods() -> list[str]:
    return sorted(Pod.objects.values_list("name", flat=True))


def nodes() -> list[str]:
    return sorted(Node.objects.filter(gone_at=None).values_list("name", flat=True))


def states() -> dict[str, str]:
    return dict(WatchHealth.objects.values_list("resource", "state"))
