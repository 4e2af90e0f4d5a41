"""Chunks: one node's samples over a span, metric by metric along time."""

from __future__ import annotations

import msgspec
import numpy as np

from monitoring.history import codec
from monitoring.history.codec import CodecError, Numbers
from monitoring.history.metrics import MISSING, PER_NODE, PER_NUMA


class Chunk(msgspec.Struct, frozen=True):
    """`numa[m, i, t]`: metric m of PER_NUMA, i-th NUMA id, moment t; `node[m, t]`. `MISSING` where nothing is known."""

    ids: tuple[int, ...]
    numa: Numbers
    node: Numbers

    @property
    def points(self) -> int:
        return int(self.numa.shape[2])


def empty(ids: tuple[int, ...], points: int) -> Chunk:
    """A chunk of gaps."""
    return Chunk(
        ids,
        np.full((len(PER_NUMA), len(ids), points), MISSING, np.int64),
        np.full((len(PER_NODE), points), MISSING, np.int64),
    )


def pack(chunk: Chunk) -> bytes:
    """As stored: NUMA ids, then every series as a row."""
    series = np.concatenate([chunk.numa.reshape(-1, chunk.points), chunk.node])
    ids = codec.pack(np.array([chunk.ids], np.int64))
    return len(ids).to_bytes(4, "little") + ids + codec.pack(series)


def unpack(data: bytes | memoryview) -> Chunk:
    """Raises CodecError. A metric that a stored chunk does not have yet is `MISSING`."""
    data = bytes(data)
    split = 4 + int.from_bytes(data[:4], "little")
    ids = tuple(codec.unpack(data[4:split])[0].tolist())
    series = codec.unpack(data[split:])
    if not ids or len(series) != len(PER_NUMA) * len(ids) + len(PER_NODE):
        raise CodecError(f"a chunk of {len(series)} series for {len(ids)} NUMA nodes")
    cut = len(PER_NUMA) * len(ids)
    return Chunk(ids, series[:cut].reshape(len(PER_NUMA), len(ids), -1), series[cut:])


def rolled_up(chunk: Chunk, factor: int) -> Chunk:
    """Every `factor` moments as one: mean (of what is known) or highest. A span without any value stays a gap."""
    numa = np.stack(
        [fold(chunk.numa[m], factor, metric.roll_up == "max") for m, metric in enumerate(PER_NUMA)]
    )
    node = np.stack(
        [fold(chunk.node[m], factor, metric.roll_up == "max") for m, metric in enumerate(PER_NODE)]
    )
    return Chunk(chunk.ids, numa, node)


def fold(series: Numbers, factor: int, highest: bool) -> Numbers:
    """Every `factor` values of the last axis as one; `MISSING` ones do not count."""
    grouped = series.reshape(*series.shape[:-1], -1, factor)
    known = grouped != MISSING
    counts = known.sum(axis=-1)
    if highest:
        return np.asarray(grouped.max(axis=-1), np.int64)
    sums = np.where(known, grouped, 0).sum(axis=-1)
    means = np.rint(sums / np.maximum(counts, 1)).astype(np.int64)
    return np.where(counts > 0, means, MISSING)


def merged(first: Chunk, second: Chunk) -> Chunk:
    """Both in one; where both know something the second one counts. The NUMA ids may differ (a changed machine)."""
    ids = tuple(sorted({*first.ids, *second.ids}))
    made = empty(ids, first.points)
    for chunk in (first, second):
        places = [ids.index(numa) for numa in chunk.ids]
        made.numa[:, places] = np.where(chunk.numa != MISSING, chunk.numa, made.numa[:, places])
        made.node[:] = np.where(chunk.node != MISSING, chunk.node, made.node)
    return made
