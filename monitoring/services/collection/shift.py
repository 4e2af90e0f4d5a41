"""The shift itself: who is asked, and what becomes of the answers."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
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
from monitoring.services.collection.fleet import Fleet
from monitoring.services.collection.lanes import Lanes
from monitoring.services.collection.poller import Poller, Target
from monitoring.services.collection.sampler import Sampler
from monitoring.services.leases import LeaseLostError, Tenure
from monitoring.sources import failures
from monitoring.sources.exporter import Limits
from monitoring.sources.failures import SourceError
from monitoring.sources.snapshot import Known, Round
from numacore import wire

log = structlog.get_logger(__name__)
T = TypeVar("T")

UNFINISHED_BYTES = 32 * 1024 * 1024
"""Of all answers together that are not complete yet."""
IDENTIFY, REPORT = 50, 16
"""Nodes of one transaction."""
REPORT_SHARE, FIRST_REPORT_SHARE = 0.3, 0.6
"""Of the time, at most, that goes into reports; the second while nodes wait for their first one."""
ALL_FRESH = 500
"""Up to so many nodes the hot store gets every one at every round; of more, only those that somebody looks at, and
the others as many a second as `HOT_RATE`. Their cells are always the newest."""
HOT_RATE = 250.0
SUMMARY_SECONDS = 10.0
RELOAD_SECONDS = 5.0
CLAIM_AGAIN_SECONDS = 10.0

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
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(Shift(shard, tenure).work())
    finally:
        with contextlib.suppress(DatabaseError):  # then it is taken from us after a while
            leases.give_up(tenure)


class Shift:
    """One tenure over one shard. Everything but `_in_*` jobs happens in its event loop."""

    def __init__(self, shard: int, tenure: Tenure) -> None:
        self.shard, self.tenure = shard, tenure
        self.period = float(settings.NUMAWEB_COLLECT_PERIOD)
        self.longest_pause = max(self.period, float(settings.NUMAWEB_COLLECT_BACKOFF))
        self.lanes = Lanes(settings.NUMAWEB_COLLECT_CONCURRENCY)
        self.limits = Limits(
            float(settings.NUMAWEB_COLLECT_TIMEOUT), settings.NUMAWEB_COLLECT_BYTES, UNFINISHED_BYTES
        )
        self._pollers: dict[int, Poller] = {}
        self._samplers: dict[int, Sampler] = {}
        self._fleets: dict[int, Fleet] = {}
        self._dirty: set[Poller] = set()
        self._unnamed: dict[int, float] = {}
        """Endpoints whose node must be found, and when (loop time)."""
        self._counts: Counter[str] = Counter()
        self._step = settings.NUMAWEB_HISTORY_STEP
        self._backlog = _backlogs.setdefault(shard, Backlog(self._step))
        self._memory = _known.setdefault(shard, {})
        self._pools = {name: ThreadPoolExecutor(1, f"shift-{shard}-{name}") for name in ("io", "db", "lease")}
        self._lost = asyncio.Event()

    async def work(self) -> Result:
        """Until the shift's time is over, the lease is lost, or the process ends."""
        self.loop = asyncio.get_running_loop()
        until = self.loop.time() + float(settings.NUMAWEB_COLLECT_SHIFT)
        await self._io(hot.store().begin)
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

    def _duties(self) -> list[Coroutine[Any, Any, None]]:
        lease = float(settings.NUMAWEB_COLLECT_LEASE)
        return [
            self._every(lease / 4, self._renew),
            self._every(min(RELOAD_SECONDS, 10 * self.period), self._reload),
            self._every(0.1, self._sweep),
            self._every(min(0.5, self.period / 2), self._flush),
            self._every(min(0.2, self.period / 2), self._identify),
            self._every(min(0.2, self.period / 2), self._report),
            self._every(min(SUMMARY_SECONDS, 10 * self.period), self._summarise),
            self._every(min(2.0, 4 * self.period), self._tell_health),
            self._every(float(self._step), self._sample, late=True),
        ]

    async def _finish(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for poller in self._pollers.values():
            poller.stop()
        if not self._lost.is_set():
            for duty in (self._flush, self._tell_health, self._summarise, self._write_samples):
                await self._attempt(duty)
        await self._run("db", connections.close_all)
        await self._run("lease", connections.close_all)
        for pool in self._pools.values():
            pool.shutdown(wait=True)

    async def _every(
        self, seconds: float, work: Callable[[], Coroutine[Any, Any, None]], late: bool = False
    ) -> None:
        due = self.loop.time() + (seconds if late else 0.0)
        while True:
            await asyncio.sleep(max(0.0, due - self.loop.time()))
            await self._attempt(work)
            due = max(due + seconds, self.loop.time())

    async def _attempt(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A duty that cannot be done now is done later; only a lost lease ends the shift."""
        try:
            await work()
        except LeaseLostError as error:
            log.warning("a shift ends: its lease was lost", shard=self.shard, error=str(error))
            self._lost.set()
        except DatabaseError as error:
            self._counts["database_errors"] += 1
            log.warning("the database does not take it", duty=work.__name__, error=str(error))
        except StoreError as error:
            log.warning("the hot store does not take it", duty=work.__name__, error=str(error))

    async def _run(self, pool: str, work: Callable[..., T], *arguments: object) -> T:
        return await self.loop.run_in_executor(self._pools[pool], writing.bound(work, *arguments))

    async def _db(self, work: Callable[..., T], *arguments: object) -> T:
        return await self._run("db", writing.job, writing.bound(work, *arguments))

    async def _io(self, work: Callable[..., T], *arguments: object) -> T:
        return await self._run("io", work, *arguments)

    # The lease -----------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        """While the database is away nobody else can take the lease either, so the shift goes on then."""
        await self._run("lease", writing.job, writing.bound(leases.renew, self.tenure))

    # Whom to ask ---------------------------------------------------------------------------------------------

    async def _reload(self) -> None:
        """Brings the pollers in line with the endpoints of the database."""
        found = await self._db(writing.targets, self.shard, settings.NUMAWEB_COLLECT_SHARDS)
        wanted = {target.endpoint: target for target in found}
        for endpoint, poller in list(self._pollers.items()):
            if wanted.get(endpoint) != poller.target:
                self._drop(poller)
        for target in found:
            if target.endpoint not in self._pollers:
                self._add(target)

    def _add(self, target: Target) -> None:
        known = self._memory.setdefault(target.endpoint, Known())
        poller = self._pollers[target.endpoint] = Poller(target, known, self)
        # Spread over a period, so that load and age are even; who is new waits for its lane.
        poller.start(random.uniform(0.0, self.period) if known.exporter else 0.0)

    def _drop(self, poller: Poller) -> None:
        poller.stop()
        del self._pollers[poller.target.endpoint]
        self._memory.pop(poller.target.endpoint, None)
        self._unnamed.pop(poller.target.endpoint, None)
        self._dirty.discard(poller)
        self._leave_fleet(poller)

    async def _sweep(self) -> None:
        self.lanes.sweep(self.loop.time())

    # Answers -------------------------------------------------------------------------------------------------

    def answered(self, poller: Poller, told: Round) -> None:
        """Called by a poller."""
        self._counts["collections_ok"] += 1
        if poller.node is None or "machine" in told.changed or self._is_another(poller):
            self._unnamed.setdefault(poller.target.endpoint, self.loop.time())
        if poller.place < 0:
            return
        if not told.repeated:
            shares = [numa.busy for numa in told.numa]
            self._fleets[poller.target.cluster].busy(poller.place, told.received, shares)
            self._samplers[poller.target.endpoint].add(told)
        self._dirty.add(poller)

    def failed(self, poller: Poller) -> None:
        """Called by a poller."""
        assert poller.error is not None
        self._counts[f"collections_failed:{poller.error.remedy}"] += 1
        if poller.failures == 2 and poller.place >= 0:
            self._fleets[poller.target.cluster].forget(poller.place)
            self._dirty.add(poller)

    def _is_another(self, poller: Poller) -> bool:
        """Whether the exporter now says that it is somebody else."""
        exporter = poller.known.exporter
        said = None if exporter is None else (exporter.node, exporter.machine_id, exporter.boot_id)
        if said == poller.said:
            return False
        poller.said = said
        return True

    # Names ---------------------------------------------------------------------------------------------------

    async def _identify(self) -> None:
        """Finds the nodes of endpoints that are new or changed."""
        now = self.loop.time()
        due = [endpoint for endpoint, at in self._unnamed.items() if at <= now][:IDENTIFY]
        claims = []
        for endpoint in due:
            known = self._pollers[endpoint].known
            if known.exporter is not None and known.machine is not None:
                claims.append(
                    identity.Claim(
                        endpoint, self._pollers[endpoint].target.cluster, known.exporter, known.machine
                    )
                )
            else:
                self._unnamed[endpoint] = now + self.period
        if not claims:
            return
        found = await self._db(identity.identify, claims, datetime.now(UTC), self.tenure)
        for each in found:
            self._named(each)
        changed = {
            self._pollers[e.endpoint].target.cluster for e in found if e.fresh and e.endpoint in self._pollers
        }
        for cluster in changed:
            await self._io(live.bus().publish, live.InventoryNews(cluster))

    def _named(self, found: identity.Identity) -> None:
        poller = self._pollers.get(found.endpoint)
        if poller is None:
            return
        self._unnamed.pop(found.endpoint, None)
        poller.conflict = found.conflict
        if found.node is None:
            self._unnamed[found.endpoint] = self.loop.time() + CLAIM_AGAIN_SECONDS
            self._counts["conflicts"] += 1
            self._leave_fleet(poller)
            return
        machine = poller.known.machine
        assert machine is not None
        ids = machine.topology.numa_ids
        sampler = self._samplers.get(found.endpoint)
        if poller.node != found.node or poller.slot != found.slot or sampler is None or sampler.ids != ids:
            self._leave_fleet(poller)
            self._samplers[found.endpoint] = Sampler(ids)
            poller.node, poller.slot = found.node, found.slot
            fleet = self._fleets.setdefault(poller.target.cluster, Fleet())
            poller.place = fleet.add(found.node, found.slot, len(ids))
            if poller.latest is not None:
                fleet.busy(poller.place, poller.known.received, [numa.busy for numa in poller.latest.numa])
            self._dirty.add(poller)
        poller.report_due = True

    def _leave_fleet(self, poller: Poller) -> None:
        """Takes a node's cells out; the others keep their order."""
        poller.node, place, poller.place = None, poller.place, -1
        self._samplers.pop(poller.target.endpoint, None)
        if place < 0:
            return
        cluster = poller.target.cluster
        self._fleets[cluster] = self._fleets[cluster].without(place)
        for other in self._pollers.values():
            if other.target.cluster == cluster and other.place > place:
                other.place -= 1

    # What pages get ------------------------------------------------------------------------------------------

    async def _flush(self) -> None:
        """Gives what came since the last time to the hot store and to open pages."""
        dirty, self._dirty = self._dirty, set()
        counts, self._counts = self._counts, Counter()
        watched = await self._io(hot.store().watched)
        now = self.loop.time()
        fresh = [
            poller for poller in dirty if poller.node is not None and self._is_wanted(poller, watched, now)
        ]
        states = [state for state in (poller.hot() for poller in fresh) if state is not None]
        for poller in fresh:
            poller.kept = now
        parts = self._parts(dirty)
        await self._io(self._in_io_keep, states, parts, counts)
        looked_at = [state for state in states if state.node in watched]
        if looked_at:
            await self._io(self._in_io_show, looked_at)

    def _is_wanted(self, poller: Poller, watched: set[int], now: float) -> bool:
        every = len(self._pollers) / HOT_RATE
        return len(self._pollers) <= ALL_FRESH or poller.node in watched or now - poller.kept >= every

    def _parts(self, dirty: Iterable[Poller]) -> list[tuple[int, hot.Cells, hot.Cells]]:
        """By cluster: the whole block for the store, and what changed for the pages."""
        places: dict[int, list[int]] = {}
        for poller in dirty:
            if poller.place >= 0:
                places.setdefault(poller.target.cluster, []).append(poller.place)
        return [
            (cluster, self._fleets[cluster].whole(), self._fleets[cluster].part(found))
            for cluster, found in places.items()
        ]

    def _in_io_keep(
        self,
        states: list[hot.HotNode],
        parts: list[tuple[int, hot.Cells, hot.Cells]],
        counts: Counter[str],
    ) -> None:
        store, bus = hot.store(), live.bus()
        store.put(states)
        for cluster, whole, part in parts:
            store.put_cells(cluster, self.shard, whole)
            bus.publish(live.CellsNews(cluster, part))
        for name, amount in counts.items():
            store.count(name, amount)

    def _in_io_show(self, states: list[hot.HotNode]) -> None:
        for tick in writing.ticks(states, self._threshold):
            live.bus().publish(live.NodeNews(tick))

    # What the database gets ----------------------------------------------------------------------------------

    _threshold = 0.10

    async def _report(self) -> None:
        """Makes the reports that are due, changed ones first, within a share of the time."""
        now, refresh = self.loop.time(), float(settings.NUMAWEB_COLLECT_REFRESH)
        named = [poller for poller in self._pollers.values() if poller.node is not None]
        due = [p for p in named if p.report_due or now - p.reported >= refresh]
        due.sort(key=lambda poller: (not poller.report_due, poller.reported))
        for i in range(0, len(due), REPORT):
            batch = due[i : i + REPORT]
            started = self.loop.time()
            share = REPORT_SHARE if batch[0].reported_hashes else FIRST_REPORT_SHARE
            await self._report_some(batch)
            await asyncio.sleep((self.loop.time() - started) * (1 - share) / share)

    async def _report_some(self, batch: list[Poller]) -> None:
        drafts = {poller: draft for poller in batch if (draft := _draft(poller)) is not None}
        for poller in batch:
            poller.report_due, poller.reported = False, self.loop.time()
        try:
            outcome = await self._db(writing.report, list(drafts.values()), self.tenure)
        except DatabaseError:
            for poller in batch:
                poller.report_due = True
            raise
        by_node = {poller.node: poller for poller in drafts}
        for told in outcome.reported:
            if (owner := by_node.get(told.node)) and owner.place >= 0:
                owner.reported_hashes = drafts[owner].state.hashes
                self._take_report(owner, told)
        for node, cause in outcome.unreadable.items():
            by_node[node].garbled(SourceError(failures.GARBLED, cause[:400]))

    def _take_report(self, poller: Poller, told: writing.Reported) -> None:
        self._fleets[poller.target.cluster].pinned(poller.place, told.pinned_shares)
        sampler = self._samplers[poller.target.endpoint]
        sampler.pinned, sampler.crossing = told.pinned, told.crossing
        self._dirty.add(poller)

    async def _summarise(self) -> None:
        """What moves of every node's summary."""
        beats = [beat for poller in self._pollers.values() if (beat := _pulse(poller)) is not None]
        if beats:
            await self._db(recording.pulses, beats, self.tenure)

    async def _tell_health(self) -> None:
        """Rows of endpoints that began to fail or to answer, or failed again."""
        told = {poller: poller.health() for poller in self._pollers.values() if poller.health_news}
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
        for endpoint, sampler in self._samplers.items():
            node = self._pollers[endpoint].node
            if node is not None and (sample := sampler.sample(node)) is not None:
                samples.append(sample)
        if samples:
            self._counts["samples_dropped"] += self._backlog.add(at, samples)
        await self._write_samples()

    async def _write_samples(self) -> None:
        self._counts["samples_written"] += await self._db(
            writing.journal, self._backlog, self.shard, self.tenure
        )


def _draft(poller: Poller) -> writing.Draft | None:
    state = poller.hot()
    if state is None:
        return None
    before = poller.reported_hashes
    return writing.Draft(
        state,
        poller.known.machine,
        same_containers=before.get(wire.CONTAINERS) == state.hashes.get(wire.CONTAINERS, ""),
        new_kubelet=before.get(wire.KUBELET, "") not in ("", state.hashes.get(wire.KUBELET)),
    )


def _pulse(poller: Poller) -> recording.Pulse | None:
    latest, machine = poller.latest, poller.known.machine
    if poller.node is None or latest is None or machine is None:
        return None
    weights = [len(node.cpus) for node in machine.topology.nodes]
    known = [(n.busy, w) for n, w in zip(latest.numa, weights, strict=False) if n.busy is not None and w]
    used = [numa.used for numa in latest.numa]
    return recording.Pulse(
        poller.node,
        poller.target.endpoint,
        sum(busy * weight for busy, weight in known) / sum(w for _, w in known) if known else None,
        sum(each for each in used if each is not None) if used and None not in used else None,
        datetime.fromtimestamp(poller.known.received, UTC),
        poller.known.skew,
    )
