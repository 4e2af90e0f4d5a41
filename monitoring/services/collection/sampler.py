"""From rounds to one sample of history per interval: means of what moves, the newest of what stands."""

from __future__ import annotations

from collections.abc import Sequence

from monitoring.history import METRICS, NodeSample
from monitoring.history.metrics import MISSING, stored
from monitoring.sources.snapshot import NumaUse, Round

BUSY, BUSY_MAX, PINNED = METRICS["busy"], METRICS["busy_max"], METRICS["pinned"]
USED, FREE, FILE = METRICS["memory_used"], METRICS["memory_free"], METRICS["memory_file"]
REMOTE, CROSSING = METRICS["remote_pages_rate"], METRICS["crossing"]


class Sampler:
    """One node between two samples. Shares and rates are weighted by the seconds that they are about."""

    __slots__ = ("_busy", "_highest", "_latest", "_remote", "_seconds", "crossing", "ids", "pinned")

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = ids
        self.pinned: Sequence[int | None] = [None] * len(ids)
        """Pinned CPUs of each NUMA node, by the newest report."""
        self.crossing: int | None = None
        self._clear()

    def _clear(self) -> None:
        width = len(self.ids)
        self._latest: list[NumaUse] | None = None
        self._seconds = [0.0] * (2 * width)
        self._busy, self._highest, self._remote = [0.0] * width, [-1.0] * width, [0.0] * width

    def add(self, told: Round) -> None:
        """One round."""
        if len(told.numa) != len(self.ids):
            return
        self._latest = told.numa
        seconds, width = told.seconds, len(self.ids)
        if seconds is None:
            return
        for i, numa in enumerate(told.numa):
            if numa.busy is not None:
                self._seconds[i] += seconds
                self._busy[i] += numa.busy * seconds
                if numa.busy > self._highest[i]:
                    self._highest[i] = numa.busy
            if numa.remote_pages is not None:
                self._seconds[width + i] += seconds
                self._remote[i] += numa.remote_pages * seconds

    def sample(self, node: int) -> NodeSample | None:
        """The sample of the interval that ends now; None = the node was not heard in it."""
        latest, width = self._latest, len(self.ids)
        if latest is None:
            return None
        busy = [self._mean(self._busy[i], self._seconds[i]) for i in range(width)]
        remote = [self._mean(self._remote[i], self._seconds[width + i]) for i in range(width)]
        made = NodeSample(
            node,
            self.ids,
            (
                [stored(BUSY, value) for value in busy],
                [stored(BUSY_MAX, value) if value >= 0 else MISSING for value in self._highest],
                [stored(PINNED, value) for value in self.pinned],
                [stored(USED, numa.used) for numa in latest],
                [stored(FREE, numa.free) for numa in latest],
                [stored(FILE, numa.file) for numa in latest],
                [stored(REMOTE, value) for value in remote],
            ),
            (stored(CROSSING, self.crossing),),
        )
        self._clear()
        return made

    @staticmethod
    def _mean(total: float, seconds: float) -> float | None:
        return total / seconds if seconds > 0 else None
