"""From journal rows to chunks, and from chunks to coarser chunks. Each step is one transaction and safe to repeat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import structlog
from django.db import transaction

from monitoring.history import chunks, samples
from monitoring.history.chunks import Chunk
from monitoring.history.codec import CodecError
from monitoring.history.metrics import PER_NUMA
from monitoring.history.spans import MINUTES, QUARTERS, Span, detail
from monitoring.models import HistoryChunk, HistoryJournal, Node

log = structlog.get_logger(__name__)

GRACE = 30
"""Seconds after the end of a span until it is compacted: a collector may write late."""
NODES = 256
"""Nodes of one transaction of a roll-up."""


def compact(now: int, most: int = 1000) -> int:
    """Compacts journal rows of spans that are over into chunks; at most `most` groups of rows. Returns the groups."""
    span = detail()
    limit = span.start(now - GRACE)
    pairs = HistoryJournal.objects.filter(at__lt=limit).order_by("at").values_list("bucket", "at")
    groups: dict[tuple[int, int], None] = {}
    for bucket, at in pairs.iterator(chunk_size=5000):
        groups[bucket, span.start(at)] = None
        if len(groups) >= most:
            break
    for bucket, start in groups:
        _compact(span, bucket, start)
    return len(groups)


@transaction.atomic
def _compact(span: Span, bucket: int, start: int) -> None:
    rows = list(
        HistoryJournal.objects.select_for_update()
        .filter(bucket=bucket, at__gte=start, at__lt=start + span.length)
        .order_by("at", "shard")
    )
    made: dict[int, Chunk] = {}
    for row in rows:
        _add(made, row, span, start)
    _store(made, span, start)
    HistoryJournal.objects.filter(pk__in=[row.pk for row in rows]).delete()


def _add(made: dict[int, Chunk], row: HistoryJournal, span: Span, start: int) -> None:
    try:
        block = samples.unpack_many(row.data)
    except CodecError as error:
        log.error("a journal row cannot be read and is dropped", at=row.at, error=str(error))
        return
    place = (row.at - start) // span.step
    for node in block.nodes[0].tolist():
        own = block.of(node)
        if own is None:
            continue
        ids = tuple(own[0].tolist())
        chunk = made.get(node)
        if chunk is None:
            chunk = chunks.empty(ids, span.points)
        elif chunk.ids != ids:
            chunk = chunks.merged(chunk, chunks.empty(ids, span.points))
        places = [chunk.ids.index(numa) for numa in ids]
        chunk.numa[:, places, place] = own[1 : 1 + len(PER_NUMA)]
        chunk.node[:, place] = own[1 + len(PER_NUMA) :, 0]
        made[node] = chunk


def _store(made: dict[int, Chunk], span: Span, start: int) -> None:
    """Writes chunks; what is stored already of the same span is kept where the new one has gaps."""
    alive = set(Node.objects.filter(pk__in=made).values_list("pk", flat=True))
    there = HistoryChunk.objects.filter(node__in=alive, resolution=span.step, start=start)
    before = {row.node_id: chunks.unpack(row.data) for row in there}
    rows = [
        HistoryChunk(
            node_id=node,
            resolution=span.step,
            start=start,
            data=chunks.pack(chunks.merged(before[node], chunk) if node in before else chunk),
        )
        for node, chunk in made.items()
        if node in alive
    ]
    HistoryChunk.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["node", "resolution", "start"], update_fields=["data"]
    )


def roll_up(now: int) -> int:
    """Makes the minutes of hours that are over, and the quarter hours of days that are over. Returns the chunks made."""
    return _roll_up(detail(), MINUTES, now) + _roll_up(MINUTES, QUARTERS, now)


def _roll_up(fine: Span, coarse: Span, now: int) -> int:
    """The newest two spans that are over: later ones wait for their end, earlier ones were made before."""
    end = coarse.start(now - GRACE - fine.length)
    return sum(_roll_up_span(fine, coarse, start) for start in (end - 2 * coarse.length, end - coarse.length))


def _roll_up_span(fine: Span, coarse: Span, start: int) -> int:
    have = HistoryChunk.objects.filter(
        resolution=fine.step, start__gte=start, start__lt=start + coarse.length
    )
    done = HistoryChunk.objects.filter(resolution=coarse.step, start=start).values("node")
    due = sorted(set(have.exclude(node__in=done).values_list("node", flat=True)))
    for batch in _batches(due):
        _roll_up_nodes(fine, coarse, start, batch)
    return len(due)


@transaction.atomic
def _roll_up_nodes(fine: Span, coarse: Span, start: int, nodes: Sequence[int]) -> None:
    rows = HistoryChunk.objects.filter(
        node__in=nodes, resolution=fine.step, start__gte=start, start__lt=start + coarse.length
    ).order_by("node", "start")
    parts: dict[int, list[tuple[int, Chunk]]] = defaultdict(list)
    for row in rows.iterator(chunk_size=1000):
        parts[row.node_id].append((row.start, chunks.unpack(row.data)))
    made = {node: _joined(found, fine, coarse, start) for node, found in parts.items()}
    _store(made, coarse, start)


def _joined(parts: Iterable[tuple[int, Chunk]], fine: Span, coarse: Span, start: int) -> Chunk:
    parts = list(parts)
    ids = tuple(sorted({numa for _, chunk in parts for numa in chunk.ids}))
    whole = chunks.empty(ids, coarse.length // fine.step)
    for begin, chunk in parts:
        first = (begin - start) // fine.step
        places = [ids.index(numa) for numa in chunk.ids]
        whole.numa[:, places, first : first + chunk.points] = chunk.numa
        whole.node[:, first : first + chunk.points] = chunk.node
    return chunks.rolled_up(whole, coarse.step // fine.step)


def _batches(nodes: Sequence[int]) -> Iterable[Sequence[int]]:
    return (nodes[i : i + NODES] for i in range(0, len(nodes), NODES))
