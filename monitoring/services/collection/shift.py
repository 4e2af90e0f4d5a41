"""The shift itself: its lease, its duties and when they are due, and where what came goes to."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import structlog
import uvloop
from django.conf import settings
from django.db import DatabaseError, connections

from monitoring import hot, live
from monitoring.history import NodeSample
from monitoring.hot import StoreError
from monitoring.services import endpoints, identity, leases, recording, storing
from monitoring.services.collection import writing
from monitoring.services.collection.backlog import Backlog
from monitoring.services.collection.isolation import apart
from monitoring.services.collection.pace import Pace
from monitoring.services.collection.poller import Poller, Step
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

GARBAGE = 20_000
"""New objects after which Python looks for cycles among them. Rounds leave none behind; with the usual 700 every few
hundred of them would be searched through."""

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
    """Works one shift, unless somebody else does. Blocking; not within an event loop. Raises DatabaseError."""
    if _end.is_set():
        return "busy"
    try:
        tenure = leases.take(lease_of(shard), float(settings.NUMAWEB_COLLECT_LEASE))
    except DatabaseError as error:
        storing.refused(lease_of(shard), error)
        raise
    if tenure is None:
        return "busy"
    prepare()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_work(shard, tenure))
    finally:
        with contextlib.suppress(DatabaseError):  # then it is taken from us after a while
            leases.give_up(tenure)


def prepare() -> None:
    """Sets what this process needs to serve thousands of rounds a second."""
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(GARBAGE, *gc.get_threshold()[1:])


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
        self._complaints: set[tuple[str, str]] = set()
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
            log.warning("the database does not take it", duty=work.__name__, error=str(error))
            await self._io(storing.refused, lease_of(self.shard), error)
        except StoreError as error:
            log.warning("the hot store does not take it", duty=work.__name__, error=str(error))
        except Exception as error:  # noqa: BLE001 - the other duties go on
            self._complain(work.__name__, error)

    def _complain(self, duty: str, error: Exception) -> None:
        """A defect that is no single node's costs its duty, and not the rounds of all nodes. Each is logged once a shift."""
        self._roster.news.counts["defects"] += 1
        if (duty, str(error)) not in self._complaints:
            self._complaints.add((duty, str(error)))
            log.error("a duty of a shift broke", shard=self.shard, duty=duty, exc_info=error)

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
        self._roster.ask_again(await self._db(writing.nodeless))

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
        found: list[identity.Identity] = []

        async def settle(some: Sequence[identity.Claim]) -> None:
            found.extend(await self._db(identity.identify, some, datetime.now(UTC), self.tenure))

        await apart(settle, claims, self._roster.nameless)
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

            async def keep(some: Sequence[Poller]) -> None:
                await self._keep(some, watched)

            await apart(keep, self._roster.wanted(news.pollers, watched), broken("keep"))
            await self._io(writing.keep_cells, self.shard, self._roster.blocks(news), news.counts)
        except StoreError:
            self._roster.give_back(news)
            raise

    async def _keep(self, pollers: Sequence[Poller], watched: set[int]) -> None:
        """Their states to the hot store, and those that somebody looks at to their pages."""
        states = [state for state in (poller.hot() for poller in pollers) if state is not None]
        await self._io(writing.keep, states)
        looked_at = [state for state in states if state.node in watched]
        if looked_at:
            await self._io(writing.show, looked_at, self._threshold)
        for poller in pollers:
            poller.usable("keep")

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

    async def _report_some(self, batch: Sequence[Poller]) -> None:
        for poller in batch:
            poller.report_due, poller.reported = False, self.loop.time()
        try:
            await apart(self._write_reports, batch, broken("report"))
        except DatabaseError:
            for poller in batch:
                poller.report_due = True
            raise

    async def _write_reports(self, batch: Sequence[Poller]) -> None:
        drafts = {poller: draft for poller in batch if (draft := poller.draft()) is not None}
        outcome = await self._db(writing.report, list(drafts.values()), self._threshold, self.tenure)
        by_node = {poller.node: poller for poller in drafts}
        for told in outcome.reported:
            if (owner := by_node.get(told.node)) is not None:
                owner.usable("report")
                owner.reported_hashes = drafts[owner].state.hashes
                self._roster.reported(owner, told.pinned, told.pinned_shares, told.crossing)
        for node, cause in outcome.unreadable.items():
            by_node[node].unusable("report", SourceError(failures.GARBLED, cause[:400]))

    async def _summarise(self) -> None:
        """What moves of every node's summary."""
        await apart(self._write_pulses, list(self._roster.pollers.values()), broken("summary"))

    async def _write_pulses(self, pollers: Sequence[Poller]) -> None:
        beats = [beat for poller in pollers if (beat := poller.pulse()) is not None]
        if beats:
            await self._db(recording.pulses, beats, self.tenure)
        for poller in pollers:
            poller.usable("summary")

    async def _tell_health(self) -> None:
        """Rows of endpoints that began to fail or to answer, or failed again."""
        told = {poller: poller.health() for poller in self._roster.pollers.values() if poller.health_news}

        async def write(some: Sequence[Poller]) -> None:
            await self._db(endpoints.write_health, [told[poller] for poller in some], self.tenure)

        try:
            await apart(write, list(told), _unwritable)
        except DatabaseError:
            for poller, health in told.items():
                poller.unsaid(health)
            raise

    async def _sample(self) -> None:
        """Ends an interval of history."""
        at = int(time.time()) // self._step * self._step - self._step
        samples = [
            sample for endpoint in self._roster.samplers if (sample := self._sample_of(endpoint)) is not None
        ]
        if samples:
            self._roster.news.counts["samples_dropped"] += self._backlog.add(at, samples)
        await self._write_samples()

    def _sample_of(self, endpoint: int) -> NodeSample | None:
        poller = self._roster.pollers[endpoint]
        if poller.node is None:
            return None
        try:
            sample = self._roster.samplers[endpoint].sample(poller.node)
        except Exception as error:  # noqa: BLE001 - the others' samples are kept
            poller.defective("history", error)
            return None
        poller.usable("history")
        return sample

    async def _write_samples(self) -> None:
        written = await self._db(writing.journal, self._backlog, self.shard, self.tenure)
        self._roster.news.counts["samples_written"] += written


def broken(step: Step) -> Callable[[Poller, Exception], None]:
    """Shows a defect where the node is shown."""
    return lambda poller, error: poller.defective(step, error)


def _unwritable(poller: Poller, error: Exception) -> None:
    log.error("an endpoint's row could not be written", url=poller.target.url, exc_info=error)
