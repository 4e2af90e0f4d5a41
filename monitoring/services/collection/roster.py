"""Who is asked in a shift, which node each of them is, and what their answers add up to.

Everything here happens in the shift's event loop.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from django.conf import settings

from monitoring import hot
from monitoring.services import identity
from monitoring.services.collection.fleet import Fleet
from monitoring.services.collection.lanes import Lanes
from monitoring.services.collection.poller import Poller
from monitoring.services.collection.sampler import Sampler
from monitoring.services.collection.timetable import Timetable
from monitoring.services.collection.writing import Target
from monitoring.sources.exporter import Limits
from monitoring.sources.snapshot import Known, Round
from numacore import wire

UNFINISHED_BYTES = 32 * 1024 * 1024
"""Of all answers together that are not complete yet."""
CLAIM_AGAIN_SECONDS = 10.0
ALL_FRESH = 500
"""Up to so many nodes are asked for the use of every CPU and container at every round, and the hot store gets it; of more,
only those that somebody looks at, and the others as many a second as `WHOLE_RATE`. In between use by NUMA node is asked
for, which is all that cells and history need: they are always the newest."""
WHOLE_RATE = 250.0

Block = tuple[int, hot.Cells, hot.Cells]
"""A cluster with all of its cells and with those that changed."""


class News(msgspec.Struct):
    """What came since the last flush."""

    pollers: set[Poller]
    clusters: set[int]
    """Those whose nodes are others than before."""
    counts: Counter[str]


def nothing() -> News:
    return News(set(), set(), Counter())


class Roster:
    """Pollers by endpoint, with the columns and samplers that their answers go into."""

    def __init__(self, memory: dict[int, Known], loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.period = float(settings.NUMAWEB_COLLECT_PERIOD)
        self.longest_pause = max(self.period, float(settings.NUMAWEB_COLLECT_BACKOFF))
        self.timetable = Timetable(loop)
        self.lanes = Lanes(settings.NUMAWEB_COLLECT_CONCURRENCY)
        self.limits = Limits(
            float(settings.NUMAWEB_COLLECT_TIMEOUT), settings.NUMAWEB_COLLECT_BYTES, UNFINISHED_BYTES
        )
        self.pollers: dict[int, Poller] = {}
        self.samplers: dict[int, Sampler] = {}
        self.news = nothing()
        self._watched: set[int] = set()
        self._memory = memory
        self._fleets: dict[int, Fleet] = {}
        self._unnamed: dict[int, float] = {}
        """Endpoints whose node must be found, and when (loop time)."""

    # Whom to ask ---------------------------------------------------------------------------------------------

    def update(self, targets: Sequence[Target]) -> None:
        """Brings the pollers in line with what is to be asked."""
        wanted = {target.endpoint: target for target in targets}
        for endpoint, poller in list(self.pollers.items()):
            if wanted.get(endpoint) != poller.target:
                self._drop(poller)
        for target in targets:
            if target.endpoint not in self.pollers:
                self._add(target)

    def stop(self) -> None:
        """Nobody is asked any more."""
        for poller in self.pollers.values():
            poller.stop()

    def _add(self, target: Target) -> None:
        known = self._memory.setdefault(target.endpoint, Known())
        poller = self.pollers[target.endpoint] = Poller(target, known, self)
        # Spread over a period, so that load and age are even; who is new waits for its lane.
        poller.start(random.uniform(0.0, self.period) if known.exporter else 0.0)

    def _drop(self, poller: Poller) -> None:
        poller.stop()
        del self.pollers[poller.target.endpoint]
        self._memory.pop(poller.target.endpoint, None)
        self._unnamed.pop(poller.target.endpoint, None)
        self.news.pollers.discard(poller)
        self._leave_fleet(poller)

    # What to ask for -----------------------------------------------------------------------------------------

    @property
    def _every(self) -> float:
        """Seconds between two whole states of a node that nobody looks at."""
        return 0.0 if len(self.pollers) <= ALL_FRESH else len(self.pollers) / WHOLE_RATE

    def summed(self, poller: Poller) -> bool:
        """For a poller: whether nobody needs more than use by NUMA node this time."""
        if poller.node is not None and poller.node in self._watched:
            return False
        age = abs(time.time() - poller.known.whole_received)  # the clock may have been set back
        return age < self._every - self.period / 2

    # Answers -------------------------------------------------------------------------------------------------

    def answered(self, poller: Poller, told: Round) -> None:
        """Called by a poller."""
        self.news.counts["collections_ok"] += 1
        if poller.node is None or wire.MACHINE in told.changed or _is_another(poller):
            self._unnamed.setdefault(poller.target.endpoint, self.loop.time())
        if poller.place < 0:
            return
        if not told.repeated:
            shares = [numa.busy for numa in told.numa]
            self._fleets[poller.target.cluster].busy(poller.place, told.received, shares)
            self.samplers[poller.target.endpoint].add(told)
        self.news.pollers.add(poller)

    def failed(self, poller: Poller) -> None:
        """Called by a poller."""
        assert poller.error is not None
        self.news.counts[f"collections_failed:{poller.error.remedy}"] += 1
        if poller.failures == 2 and poller.place >= 0:
            self._fleets[poller.target.cluster].forget(poller.place)
            self.news.pollers.add(poller)

    def reported(
        self, poller: Poller, pinned: Sequence[int | None], shares: Sequence[float | None], crossing: int
    ) -> None:
        """What the newest report of a node says that its cells and samples need."""
        if poller.place >= 0:
            self._fleets[poller.target.cluster].pinned(poller.place, shares)
            sampler = self.samplers[poller.target.endpoint]
            sampler.pinned, sampler.crossing = pinned, crossing
            self.news.pollers.add(poller)

    # Names ---------------------------------------------------------------------------------------------------

    def claims(self, most: int) -> list[identity.Claim]:
        """What endpoints say they are that are new or changed."""
        now = self.loop.time()
        found = []
        for endpoint in [endpoint for endpoint, at in self._unnamed.items() if at <= now][:most]:
            poller = self.pollers[endpoint]
            exporter, machine = poller.known.exporter, poller.known.machine
            if exporter is None or machine is None:
                self._unnamed[endpoint] = now + self.period
            else:
                found.append(identity.Claim(endpoint, poller.target.cluster, exporter, machine))
        return found

    def ask_again(self, nodeless: set[int]) -> None:
        """Looks for the nodes of endpoints whose node somebody took away."""
        for endpoint in nodeless & set(self.pollers):
            if self.pollers[endpoint].node is not None:
                self._unnamed.setdefault(endpoint, self.loop.time())

    def named(self, found: identity.Identity) -> None:
        """An endpoint's node is known now, or that it has none."""
        poller = self.pollers.get(found.endpoint)
        if poller is None:
            return
        self._unnamed.pop(found.endpoint, None)
        poller.usable("identify")
        poller.report_due = True
        if found.node is None:
            self._unnamed[found.endpoint] = self.loop.time() + CLAIM_AGAIN_SECONDS
            self.news.counts["conflicts"] += 1
            self._leave_fleet(poller)
        else:
            self._place(poller, found.node, found.slot)

    def nameless(self, claim: identity.Claim, error: Exception) -> None:
        """numaweb broke on what an endpoint says it is."""
        poller = self.pollers.get(claim.endpoint)
        if poller is not None:
            self._unnamed[claim.endpoint] = self.loop.time() + CLAIM_AGAIN_SECONDS
            poller.defective("identify", error)

    def _place(self, poller: Poller, node: int, slot: int) -> None:
        assert poller.known.machine is not None
        ids = poller.known.machine.topology.numa_ids
        sampler = self.samplers.get(poller.target.endpoint)
        if (poller.node, poller.slot) == (node, slot) and sampler is not None and sampler.ids == ids:
            return
        self._leave_fleet(poller)
        self.samplers[poller.target.endpoint] = Sampler(ids)
        fleet = self._fleets.setdefault(poller.target.cluster, Fleet())
        poller.node, poller.slot, poller.place = node, slot, fleet.add(node, slot, len(ids))
        poller.kept = 0.0  # not for this node
        if poller.latest is not None:
            fleet.busy(poller.place, poller.known.received, [numa.busy for numa in poller.latest.numa])
        self.news.pollers.add(poller)

    def _leave_fleet(self, poller: Poller) -> None:
        """Takes a node's cells out; the others keep their order."""
        poller.node, place, poller.place = None, poller.place, -1
        self.samplers.pop(poller.target.endpoint, None)
        if place < 0:
            return
        cluster = poller.target.cluster
        self.news.clusters.add(cluster)
        self._fleets[cluster] = self._fleets[cluster].without(place)
        for other in self.pollers.values():
            if other.target.cluster == cluster and other.place > place:
                other.place -= 1

    # What came -----------------------------------------------------------------------------------------------

    def take_news(self) -> News:
        """What came since the last time."""
        found, self.news = self.news, nothing()
        return found

    def give_back(self, news: News) -> None:
        """It could not be told: it is news again."""
        self.news.pollers |= {poller for poller in news.pollers if poller.target.endpoint in self.pollers}
        self.news.clusters |= news.clusters
        self.news.counts += news.counts

    def wanted(self, pollers: Iterable[Poller], watched: set[int]) -> list[Poller]:
        """Those of them whose whole state the hot store gets now: exporters that cannot do otherwise tell it always."""
        self._watched = watched
        chosen = [
            poller
            for poller in pollers
            if poller.node is not None
            and (passed := abs(poller.known.whole_received - poller.kept)) > 0
            and (poller.node in watched or passed >= self._every - self.period)
        ]
        for poller in chosen:
            poller.kept = poller.known.whole_received
        return chosen

    def blocks(self, news: News) -> list[Block]:
        """The cells of every cluster that there is news of."""
        places: dict[int, list[int]] = {cluster: [] for cluster in news.clusters}
        for poller in news.pollers:
            if poller.place >= 0:
                places.setdefault(poller.target.cluster, []).append(poller.place)
        return [
            (cluster, self._fleets[cluster].whole(), self._fleets[cluster].part(found))
            for cluster, found in places.items()
        ]


def _is_another(poller: Poller) -> bool:
    """Whether the exporter now says that it is somebody else."""
    exporter = poller.known.exporter
    said = None if exporter is None else (exporter.node, exporter.machine_id, exporter.boot_id)
    if said == poller.said:
        return False
    poller.said = said
    return True
