"""Exporters for tests: a simulated fleet that answers in a thread, good or with faults, and single ones by hand."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from django.db import connections

from monitoring import services
from monitoring.services.collection import shift
from numasim.faults import Fault
from numasim.fleet import Fleet
from numasim.serving import Serving


class Running:
    """A fleet in a thread of its own. `urls` in the order of the endpoints."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.urls: list[str] = []
        self._ready = threading.Event()
        self._end: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with Serving(self.fleet, ports=True) as serving:
            self.urls = serving.urls
            self._ready.set()
            await self._end.wait()

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(10)

    def stop(self) -> None:
        if self._loop is not None and self._end is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(10)


@contextmanager
def fleet(
    count: int,
    *,
    faults: Mapping[int, Fault] | None = None,
    model: str = "epyc-nps4",
    containers: int = 6,
    clock: Callable[[], float] | None = None,
) -> Iterator[Running]:
    """A fleet with a fault at each of the named endpoints."""
    made = Fleet(count, model=model, containers=containers, clock=clock or time.time)
    for index, fault in (faults or {}).items():
        made.faults[index] = fault
    running = Running(made)
    running.start()
    try:
        yield running
    finally:
        running.stop()


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextmanager
def server(talk: Talk) -> Iterator[str]:
    """A server that does with each connection what `talk` says; its address."""
    ready, ended = threading.Event(), threading.Event()
    place: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []
    ends: list[asyncio.Event] = []

    talks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await talk(reader, writer)
        finally:
            talks.discard(task)
            writer.transport.abort() if ends[0].is_set() else writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        ends.append(asyncio.Event())
        listening = await asyncio.start_server(one, "127.0.0.1", 0)
        place.append(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        ready.set()
        await ends[0].wait()
        listening.close()
        for task in list(talks):
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await listening.wait_closed()

    def run() -> None:
        asyncio.run(serve())
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    assert ready.wait(10)
    try:
        yield place[0]
    finally:
        loops[0].call_soon_threadsafe(ends[0].set)
        ended.wait(5)


def answering(raw: bytes) -> Talk:
    """Sends the same bytes to whoever asks, and closes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()
        writer.close()

    return talk


def work(shard: int, results: list[str] | None = None) -> None:
    """One shift, in a thread of its own; what it says goes to `results`."""
    said = services.collect(shard)
    if results is not None:
        results.append(said)
    connections.close_all()


def collect_until(reached: Callable[[], bool], shard: int = 0, seconds: float = 20.0) -> str:
    """Works a shift in a thread until something is so, and ends it; what the shift says."""
    results: list[str] = []
    thread = threading.Thread(target=work, args=(shard, results))
    thread.start()
    deadline = time.monotonic() + seconds
    try:
        while thread.is_alive() and time.monotonic() < deadline and not reached():
            time.sleep(0.02)
        assert reached(), f"not reached within {seconds} s; the shift said {results}"
    finally:
        services.end_shifts()
        thread.join(20)
        shift._end.clear()
    return results[0]


@contextlib.contextmanager
def working(shard: int = 0) -> Iterator[None]:
    """A shift beside."""
    thread = threading.Thread(target=work, args=(shard,))
    thread.start()
    try:
        yield
    finally:
        services.end_shifts()
        thread.join(20)
        shift._end.clear()


def until(reached: Callable[[], bool], seconds: float = 20.0) -> None:
    """Waits for something that a shift brings about."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)
