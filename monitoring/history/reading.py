"""One node's history, from whichever of journal and chunks have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from monitoring.history import chunks, journal, samples
from monitoring.history.codec import Numbers
from monitoring.history.metrics import METRICS, MISSING, PER_NODE, PER_NUMA, Metric
from monitoring.history.spans import Span, all_spans, detail
from monitoring.models import HistoryChunk, HistoryJournal

NODE = "node"
"""Name of the series of a metric that is about the whole node."""

Piece = tuple[int, dict[str, Numbers]]
"""Start of the first interval, and the values of each series from there."""


class Points(msgspec.Struct, frozen=True):
    """`values[name][i]` at `times[i]` (start of the interval, seconds since 1970); None = a gap.

    Names: NUMA ids, or "node".
    """

    times: list[int]
    values: dict[str, list[float | None]]
    step: int


class _Grid:
    """A regular row of moments that pieces are laid upon."""

    def __init__(self, start: int, end: int, step: int) -> None:
        self.step = step
        self.start = start - start % step
        self.size = max(1, -(-(end - self.start) // step))
        self.series: dict[str, Numbers] = {}

    def lay(self, begin: int, name: str, values: Numbers) -> None:
        """Lays values of the grid's own step down; gaps in them leave what is there."""
        row = self.series.get(name)
        if row is None:
            row = self.series[name] = np.full(self.size, MISSING, np.int64)
        first = (begin - self.start) // self.step
        skip = max(0, -first)
        target = row[first + skip : max(0, first + len(values))]
        source = values[skip : skip + len(target)]
        np.copyto(target, source, where=source != MISSING)

    def fold(self, factor: int, highest: bool) -> dict[str, Numbers]:
        """Every `factor` moments as one."""
        return {
            name: chunks.fold(np.pad(row, (0, -len(row) % factor), constant_values=MISSING), factor, highest)
            for name, row in self.series.items()
        }


def read(node: int, metric: str, start: int, end: int, most: int, finest: int = 1) -> Points:
    """The history of one metric, as `read_several` has it."""
    return read_several(node, (metric,), start, end, most, finest)[metric]


def read_several(
    node: int, metrics: Sequence[str], start: int, end: int, most: int, finest: int = 1
) -> dict[str, Points]:
    """The history by metric from `start` to before `end` in at most `most` points, none finer than `finest` seconds.

    Of what several resolutions know, the finest counts; a coarse interval whose roll-up is not made yet is made of
    finer ones. Rows hold all metrics, so they are fetched and unpacked once, however many are wanted. Raises KeyError
    for a metric that is not kept.
    """
    wanted = {name: METRICS[name] for name in metrics}
    usable = [span for span in all_spans() if span.step >= finest] or [all_spans()[-1]]
    span = next((each for each in usable if (end - start) / each.step <= most), usable[-1])
    grids = {name: _Grid(start, end, span.step) for name in wanted}
    begin = start - start % span.step
    for source in reversed(all_spans()):
        if source.step <= span.step:
            pieces = _chunks(node, wanted, source, begin, end)
            if source.step == detail().step:
                for name, newest in _journal(node, wanted, begin, end).items():
                    pieces[name] += newest
            for name, metric in wanted.items():
                _lay(grids[name], pieces[name], source, metric, end)
    return {name: _thinned(grids[name], metric, most) for name, metric in wanted.items()}


def _lay(grid: _Grid, pieces: list[Piece], source: Span, wanted: Metric, end: int) -> None:
    if not pieces:
        return
    first = max(grid.start, min(start for start, _ in pieces))
    own = _Grid(first - first % grid.step, end, source.step)
    for start, rows in pieces:
        for name, values in rows.items():
            own.lay(start, name, values)
    for name, values in own.fold(grid.step // source.step, wanted.roll_up == "max").items():
        grid.lay(own.start, name, values)


def _chunks(
    node: int, wanted: dict[str, Metric], source: Span, start: int, end: int
) -> dict[str, list[Piece]]:
    rows = HistoryChunk.objects.filter(
        node=node, resolution=source.step, start__gt=start - source.length, start__lt=end
    )
    pieces: dict[str, list[Piece]] = {name: [] for name in wanted}
    for row in rows.order_by("start"):
        chunk = chunks.unpack(row.data)
        for name, metric in wanted.items():
            pieces[name].append((row.start, _rows(metric, chunk)))
    return pieces


def _rows(wanted: Metric, chunk: chunks.Chunk) -> dict[str, Numbers]:
    if wanted.per == "node":
        return {NODE: chunk.node[PER_NODE.index(wanted)]}
    table = chunk.numa[PER_NUMA.index(wanted)]
    return {str(numa): table[i] for i, numa in enumerate(chunk.ids)}


def _journal(node: int, wanted: dict[str, Metric], start: int, end: int) -> dict[str, list[Piece]]:
    rows = HistoryJournal.objects.filter(bucket=journal.bucket(node), at__gte=start, at__lt=end)
    told = (
        (at, samples.unpack_many(data).of(node)) for at, data in rows.order_by("at").values_list("at", "data")
    )
    pieces: dict[str, list[Piece]] = {name: [] for name in wanted}
    for run in _runs([(at, own) for at, own in told if own is not None]):
        table = np.stack([own for _, own in run], axis=2)
        for name, metric in wanted.items():
            pieces[name].append((run[0][0], _picked(metric, table)))
    return pieces


def _runs(told: list[tuple[int, Numbers]]) -> Iterator[list[tuple[int, Numbers]]]:
    """Moments that follow one another at the step of the journal, of the same NUMA nodes: laid down at once, which takes a tenth of the time."""
    run: list[tuple[int, Numbers]] = []
    for at, own in told:
        if run and not (at - run[-1][0] == detail().step and np.array_equal(own[0], run[-1][1][0])):
            yield run
            run = []
        run.append((at, own))
    if run:
        yield run


def _picked(wanted: Metric, table: Numbers) -> dict[str, Numbers]:
    """Of a table by row, NUMA node and moment."""
    if wanted.per == "node":
        return {NODE: table[1 + len(PER_NUMA) + PER_NODE.index(wanted), :1].reshape(-1)}
    values = table[1 + PER_NUMA.index(wanted)]
    return {str(numa): values[i] for i, numa in enumerate(table[0, :, 0].tolist())}


def _thinned(grid: _Grid, wanted: Metric, most: int) -> Points:
    factor = max(1, -(-grid.size // most))
    folded = grid.fold(factor, wanted.roll_up == "max")
    names = sorted(folded, key=lambda name: (len(name), name))
    times = list(range(grid.start, grid.start + grid.size * grid.step, grid.step * factor))
    return Points(times, {name: _plain(folded[name], wanted) for name in names}, grid.step * factor)


def _plain(row: NDArray[np.int64], wanted: Metric) -> list[float | None]:
    return [None if value == MISSING else value / wanted.scale for value in row.tolist()]
