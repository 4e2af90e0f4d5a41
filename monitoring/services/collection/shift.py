"""The shift itself: its lease, its duties and when they are due, and where what came goes to."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import structlog
import uvloop
from django.conf import settings
from django.db import DatabaseError, connections

from monitoring import hot, live
from monitoring.hot import StoreError
from monitoring.services import endpoints, identity, leases, recording
from monitoring.services.collection import writing
from monitoring.services.collection.backlog import Backlog
from monitoring.services.collection.pace import Pace
from monitoring.services.collection.poller import Poller
from monitoring.services.collection.roster import Roster
from monitoring.services.leases import LeaseLostError, Tenure
from monitoring.sources import failures
from monitoring.sources.failures import SourceError
from monitoring.sources.snapshot import Known

log = structlog.get_logger(__name__)
T = TypeVar("T")
Duty = Callable[[], Coroutine[Any, Any, None]]

IDENTIFY, REPORT = 500, 16
"""Nodes of one transaction."""
SWEEP_SECONDS = 0.1
SUMMARY_SECONDS = 10.0
RELOAD_SECONDS = 5.0

SWITCH_SECONDS = 0.0001
"""How long a thread keeps Python's lock while another waits for it. The event loop gives it up before every answer that
it reads (uvloop 0.23), and would wait so long for each of thousands while the database thread makes reports."""

Result = Literal["worked", "busy", "lost"]

_end = threading.Event()
_known: dict[int, dict[int, Known]] = {}
"""By shard and endpoint: what this process knows, so that its next shift goes on where this one ends."""
_backlogs: dict[int, Backlog] = {}


def end_all() -> None:
    """Ends the shifts of this process within a round: it is about to end."""
    _end.set()


def lease_of(shard: int) -> str:
    """The name of a shard's lease."""
    return f"collect-{shard}"


def wanted(shard: int) -> bool:
    """Whether a shift should be offered: nobody seems to collect this shard."""
    return not _end.is_set() and leases.suspect(lease_of(shard))


def run(shard: int) -> Result:
    """Works one shift, unless somebody else does. Blocking; not within an event loop."""
    if _end.is_set():
        return "busy"
    tenure = leases.take(lease_of(shard), float(settings.NUMAWEB_COLLECT_LEASE))
    if tenure is None:
        return "busy"
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_work(shard, tenure))
    finally:
        with contextlib.suppress(DatabaseError):  # then it is taken from us after a while
            leases.give_up(tenure)


async def _work(shard: int, tenure: Tenure) -> Result:
    return await Shift(shard, tenure, asyncio.get_running_loop()).work()


class Shift:
    """One tenure over one shard. Blocking work goes to three threads: `io` hot store and bus, `db`, `lease`."""

    def __init__(self, shard: int, tenure: Tenure, loop: asyncio.AbstractEventLoop) -> None:
        self.shard, self.tenure, self.loop = shard, tenure, loop
        self._roster = Roster(_known.setdefault(shard, {}), loop)
        self._step = settings.NUMAWEB_HISTORY_STEP
        self._backlog = _backlogs.setdefault(shard, Backlog(self._step))
        self._pools = {name: ThreadPoolExecutor(1, f"shift-{shard}-{name}") for name in ("io", "db", "lease")}
        self._pace = Pace()
        self._swept = loop.time()
        self._lost = asyncio.Event()
        self._threshold = 0.0

    # Time ----------------------------------------------------------------------------------------------------

    async def work(self) -> Result:
        """Until the shift's time is over, the lease is lost, or the process ends."""
        until = self.loop.time() + float(settings.NUMAWEB_COLLECT_SHIFT)
        await self._attempt(self._begin)
        tasks = [asyncio.ensure_future(work) for work in self._duties()]
        try:
            while self.loop.time() < until and not self._lost.is_set() and not _end.is_set():
                for task in tasks:
                    if task.done():
                        task.result()  # a duty never ends by itself: tell why it did
                await asyncio.sleep(0.05)
        finally:
            await self._finish(tasks)
        return "lost" if self._lost.is_set() else "worked"

    async def _begin(self) -> None:
        await self._io(hot.store().begin)

    def _duties(self) -> list[Coroutine[Any, Any, None]]:
        period, lease = self._roster.period, float(settings.NUMAWEB_COLLECT_LEASE)
        return [
            self._every(lease / 4, self._renew),
            self._every(min(RELOAD_SECONDS, 10 * period), self._reload),
            self._every(SWEEP_SECONDS, self._sweep),
            self._every(min(0.5, period / 2), self._flush),
            self._every(min(0.2, period / 2), self._identify),
            self._every(min(0.2, period / 2), self._report),
            self._every(min(SUMMARY_SECONDS, 10 * period), self._summarise),
            self._every(min(2.0, 4 * period), self._tell_health),
            self._every(float(self._step), self._sample, late=True),
        ]

    async def _finish(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._roster.stop()
        if not self._lost.is_set():
            for duty in (self._flush, self._tell_health, self._summarise, self._write_samples):
                await self._attempt(duty)
        await self._run("db", connections.close_all)
        await self._run("lease", connections.close_all)
        for pool in self._pools.values():
            pool.shutdown(wait=True)

    async def _every(self, seconds: float, work: Duty, late: bool = False) -> None:
        due = self.loop.time() + (seconds if late else 0.0)
        while True:
            await asyncio.sleep(max(0.0, due - self.loop.time()))
            await self._attempt(work)
            due = max(due + seconds, self.loop.time())

    async def _attempt(self, work: Duty) -> None:
        """A duty that cannot be done now is done later; only a lost lease ends the shift."""
        try:
            await work()
        except LeaseLostError as error:
            log.warning("a shift ends: its lease was lost", shard=self.shard, error=str(error))
            self._lost.set()
        except DatabaseError as error:
            self._roster.news.counts["database_errors"] += 1
            log.warning("the database does not take it", duty=work.__name__, error=str(error))
        except StoreError as error:
            log.warning("the hot store does not take it", duty=work.__name__, error=str(error))

    async def _run(self, pool: str, work: Callable[..., T], *arguments: object) -> T:
        return await self.loop.run_in_executor(self._pools[pool], writing.bound(work, *arguments))

    async def _db(self, work: Callable[..., T], *arguments: object) -> T:
        return await self._run("db", writing.job, writing.bound(work, *arguments))

    async def _io(self, work: Callable[..., T], *arguments: object) -> T:
        return await self._run("io", work, *arguments)

    # Duties --------------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        """While the database is away nobody else can take the lease either, so the shift goes on then."""
        await self._run("lease", writing.job, writing.bound(leases.renew, self.tenure))

    async def _reload(self) -> None:
        self._threshold = await self._db(writing.threshold)
        self._roster.update(await self._db(writing.targets, self.shard, settings.NUMAWEB_COLLECT_SHARDS))

    async def _sweep(self) -> None:
        now = self.loop.time()
        self._pace.late(max(0.0, now - self._swept - SWEEP_SECONDS))
        self._swept = now
        self._roster.lanes.sweep(now)

    async def _identify(self) -> None:
        """Finds the nodes of endpoints that are new or changed."""
        claims = self._roster.claims(IDENTIFY)
        if not claims:
            return
        found = await self._db(identity.identify, claims, datetime.now(UTC), self.tenure)
        for each in found:
            self._roster.named(each)
        fresh = {each.endpoint for each in found if each.fresh}
        for cluster in {claim.cluster for claim in claims if claim.endpoint in fresh}:
            await self._io(live.bus().publish, live.InventoryNews(cluster))

    async def _flush(self) -> None:
        """Gives what came since the last time to the hot store and to open pages."""
        news = self._roster.take_news()
        try:
            watched = await self._io(hot.store().watched)
            chosen = self._roster.wanted(news.pollers, watched)
            states = [state for state in (poller.hot() for poller in chosen) if state is not None]
            await self._io(writing.keep, self.shard, states, self._roster.blocks(news), news.counts)
        except StoreError:
            self._roster.give_back(news)
            raise
        looked_at = [state for state in states if state.node in watched]
        if looked_at:
            await self._io(writing.show, looked_at, self._threshold)

    async def _report(self) -> None:
        """Makes the reports that are due, changed ones first, in the time that rounds leave."""
        now, refresh = self.loop.time(), float(settings.NUMAWEB_COLLECT_REFRESH)
        named = [poller for poller in self._roster.pollers.values() if poller.node is not None]
        due = [poller for poller in named if poller.report_due or now - poller.reported >= refresh]
        due.sort(key=lambda poller: (not poller.report_due, poller.reported))
        for i in range(0, len(due), REPORT):
            batch = due[i : i + REPORT]
            started = self.loop.time()
            first = not batch[0].reported_hashes
            await self._report_some(batch)
            await asyncio.sleep(self._pace.pause(self.loop.time() - started, first))

    async def _report_some(self, batch: list[Poller]) -> None:
        drafts = {poller: draft for poller in batch if (draft := poller.draft()) is not None}
        for poller in batch:
            poller.report_due, poller.reported = False, self.loop.time()
        try:
            outcome = await self._db(writing.report, list(drafts.values()), self._threshold, self.tenure)
        except DatabaseError:
            for poller in batch:
                poller.report_due = True
            raise
        by_node = {poller.node: poller for poller in drafts}
        for told in outcome.reported:
            if (owner := by_node.get(told.node)) is not None:
                owner.readable()
                owner.reported_hashes = drafts[owner].state.hashes
                self._roster.reported(owner, told.pinned, told.pinned_shares, told.crossing)
        for node, cause in outcome.unreadable.items():
            by_node[node].garbled(SourceError(failures.GARBLED, cause[:400]))

    async def _summarise(self) -> None:
        """What moves of every node's summary."""
        beats = [beat for poller in self._roster.pollers.values() if (beat := poller.pulse()) is not None]
        if beats:
            await self._db(recording.pulses, beats, self.tenure)

    async def _tell_health(self) -> None:
        """Rows of endpoints that began to fail or to answer, or failed again."""
        told = {poller: poller.health() for poller in self._roster.pollers.values() if poller.health_news}
        if not told:
            return
        try:
            await self._db(endpoints.write_health, list(told.values()), self.tenure)
        except DatabaseError:
            for poller, health in told.items():
                poller.unsaid(health)
            raise

    async def _sample(self) -> None:
        """Ends an interval of history."""
        at = int(time.time()) // self._step * self._step - self._step
        samples = []
        for endpoint, sampler in self._roster.samplers.items():
            node = self._roster.pollers[endpoint].node
            if node is not None and (sample := sampler.sample(node)) is not None:
                samples.append(sample)
        if samples:
            self._roster.news.counts["samples_dropped"] += self._backlog.add(at, samples)
        await self._write_samples()

    async def _write_samples(self) -> None:
        written = await self._db(writing.journal, self._backlog, self.shard, self.tenure)
        self._roster.news.counts["samples_written"] += written
