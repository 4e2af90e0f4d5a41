"""The cells of a shard's nodes as columns: what the hot store and open pages get after each round."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable, Sequence

from monitoring.hot import UNIT, UNKNOWN, Cells

GAP = bytes([UNKNOWN])


class Fleet:
    """Columns over the nodes of one cluster in this shard. Used in the event loop."""

    def __init__(self) -> None:
        self.nodes: array[int] = array("i")
        self._slots: array[int] = array("I")
        self._widths: array[int] = array("H")
        self._received: array[float] = array("d")
        self._starts: list[int] = []
        self._pinned, self._busy = bytearray(), bytearray()

    def add(self, node: int, slot: int, width: int) -> int:
        """A node; its position in the columns."""
        self.nodes.append(node)
        self._slots.append(slot)
        self._widths.append(width)
        self._received.append(0.0)
        self._starts.append(len(self._busy))
        self._pinned += GAP * width
        self._busy += GAP * width
        return len(self.nodes) - 1

    def busy(self, place: int, received: float, shares: Sequence[float | None]) -> None:
        """The newest busy shares of a node's NUMA nodes."""
        self._received[place] = received
        self._put(self._busy, place, shares)

    def pinned(self, place: int, shares: Sequence[float | None]) -> None:
        """The newest pinned shares of a node's NUMA nodes."""
        self._put(self._pinned, place, shares)

    def forget(self, place: int) -> None:
        """Nothing is known of a node now."""
        self._put(self._busy, place, [None] * self._widths[place])

    def _put(self, plane: bytearray, place: int, shares: Sequence[float | None]) -> None:
        width, start = self._widths[place], self._starts[place]
        if len(shares) == width:
            plane[start : start + width] = bytes([cell(share) for share in shares])

    def whole(self) -> Cells:
        """All nodes."""
        return Cells(
            time.time(),
            self.nodes.tobytes(),
            self._slots.tobytes(),
            self._widths.tobytes(),
            self._received.tobytes(),
            bytes(self._pinned),
            bytes(self._busy),
        )

    def part(self, places: Iterable[int]) -> Cells:
        """Some nodes."""
        return self._of(places).whole()

    def without(self, place: int) -> Fleet:
        """All nodes but one, in the same order."""
        return self._of(other for other in range(len(self.nodes)) if other != place)

    def _of(self, places: Iterable[int]) -> Fleet:
        made = Fleet()
        for place in places:
            start, width = self._starts[place], self._widths[place]
            made.nodes.append(self.nodes[place])
            made._slots.append(self._slots[place])
            made._widths.append(width)
            made._received.append(self._received[place])
            made._pinned += self._pinned[start : start + width]
            made._starts.append(len(made._busy))
            made._busy += self._busy[start : start + width]
        return made


def cell(share: float | None) -> int:
    """A share as a byte."""
    return UNKNOWN if share is None else min(UNIT, max(0, round(share * UNIT)))
