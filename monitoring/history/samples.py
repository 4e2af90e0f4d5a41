"""Samples as values, and as the arrays that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec
import numpy as np

from monitoring.history import codec
from monitoring.history.codec import CodecError, Numbers
from monitoring.history.metrics import PER_NODE, PER_NUMA

HEAD = 2
"""Rows of a node block before its metrics: node id and number of NUMA nodes."""


class NodeSample(msgspec.Struct, frozen=True):
    """One node in one interval: its NUMA ids, and for each metric the stored numbers (`metrics.stored`).

    `numa[m][i]` belongs to the m-th of PER_NUMA and the i-th NUMA id, `node[m]` to the m-th of PER_NODE.
    """

    node: int
    ids: Sequence[int]
    numa: Sequence[Sequence[int]]
    values: Sequence[int]


def pack_many(samples: Sequence[NodeSample]) -> bytes:
    """Many nodes at one moment: a block of nodes and a block of their NUMA nodes, one after the other."""
    nodes = np.array(
        [
            [each.node for each in samples],
            [len(each.ids) for each in samples],
            *([each.values[m] for each in samples] for m in range(len(PER_NODE))),
        ],
        np.int64,
    )
    cells = np.empty((1 + len(PER_NUMA), int(nodes[1].sum())), np.int64)
    cells[0] = _row((each.ids for each in samples), cells.shape[1])
    for m in range(len(PER_NUMA)):
        cells[1 + m] = _row((each.numa[m] for each in samples), cells.shape[1])
    first = codec.pack(nodes, level=1)
    return len(first).to_bytes(4, "little") + first + codec.pack(cells, level=1)


def _row(parts: Iterable[Sequence[int]], size: int) -> Numbers:
    """Parts one after the other; straight from the iterator, which takes a third of the time of lists."""
    return np.fromiter(chain.from_iterable(parts), np.int64, size)


class Block(msgspec.Struct, frozen=True):
    """Many nodes at one moment, as arrays: `nodes` has rows id, width, PER_NODE...; `cells` rows NUMA id, PER_NUMA..."""

    nodes: Numbers
    cells: Numbers

    def of(self, node: int) -> Numbers | None:
        """One node's columns of `cells` with PER_NODE's rows below (repeated for each NUMA node); None = not here."""
        found = np.flatnonzero(self.nodes[0] == node)
        if not len(found):
            return None
        at = int(found[0])
        start, width = int(self.nodes[1, :at].sum()), int(self.nodes[1, at])
        own = np.repeat(self.nodes[HEAD:, at : at + 1], width, axis=1)
        return np.concatenate([self.cells[:, start : start + width], own])


def unpack_many(data: bytes | memoryview) -> Block:
    """Raises CodecError."""
    data = bytes(data)
    split = 4 + int.from_bytes(data[:4], "little")
    block = Block(codec.unpack(data[4:split]), codec.unpack(data[split:]))
    if len(block.nodes) < HEAD or int(block.nodes[1].sum()) != block.cells.shape[1]:
        raise CodecError("a journal block whose parts do not fit together")
    return block
