"""One watch for each cluster that has a connection; a connection that changes begins anew, and no cluster waits for another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import structlog
import uvloop
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from monitoring.models import Connection
from monitoring.services.watching.watch import ClusterWatch, Waits

log = structlog.get_logger(__name__)
LOOK_SECONDS = 3.0
CONFIGURING = (
    *("source", "kubeconfig", "context", "server", "ca", "token"),
    *(
        "exporter_namespace",
        "exporter_https",
        "exporter_token",
        "exporter_ca",
        "exporter_name",
        "exporter_service",
    ),
)
"""Fields that a watch is made of."""


class _Running(msgspec.Struct):
    made_of: tuple[Any, ...]
    task: asyncio.Task[None]


def _nothing() -> None:
    """Nobody asks whether this process lives."""


def work(stop: threading.Event, alive: Callable[[], None] = _nothing) -> None:
    """Watches in this thread until `stop`, in an event loop of its own."""
    patience = float(settings.NUMAWEB_WATCH_LEASE)
    uvloop.run(run(Waits(beat=patience / 4, patience=patience), stop, alive=alive))


async def run(
    waits: Waits,
    stop: threading.Event,
    look: float = LOOK_SECONDS,
    alive: Callable[[], None] = _nothing,
) -> None:
    """Watches until `stop`; `alive` is called each time that the connections were looked at."""
    running: dict[int, _Running] = {}
    try:
        while not stop.is_set():
            await _align(running, waits)
            alive()
            await asyncio.to_thread(stop.wait, look)
    finally:
        await _end(list(running.values()))


async def _align(running: dict[int, _Running], waits: Waits) -> None:
    try:
        wanted = await asyncio.to_thread(_wanted)
    except DatabaseError as error:
        log.warning("watch.database", error=str(error))
        return
    for number, each in list(running.items()):
        connection = wanted.get(number)
        if each.task.done():
            _tell(each.task)
        if connection is None or each.task.done() or each.made_of != _made_of(connection):
            await _end([running.pop(number)])
    for number, connection in wanted.items():
        if number not in running:
            task = asyncio.create_task(ClusterWatch(connection, waits).run())
            running[number] = _Running(_made_of(connection), task)


def _wanted() -> dict[int, Connection]:
    close_old_connections()
    rows = Connection.objects.filter(enabled=True, cluster__enabled=True).select_related("cluster")
    return {row.pk: row for row in rows}


def _made_of(connection: Connection) -> tuple[Any, ...]:
    return tuple(getattr(connection, name) for name in CONFIGURING)


def _tell(task: asyncio.Task[None]) -> None:
    """A watch never ends by itself: what did it is a fault of ours. It begins anew."""
    if not task.cancelled() and (error := task.exception()):
        log.error("watch.ended", error=repr(error), exc_info=error)


async def _end(those: list[_Running]) -> None:
    for each in those:
        each.task.cancel()
    await asyncio.gather(*(each.task for each in those), return_exceptions=True)
