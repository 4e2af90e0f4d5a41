"""What still fits on one NUMA node: free CPUs may be many and lie scattered over NUMA nodes, so that no larger pod gets one for itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

SIZES = (2, 4, 8, 16, 32, 64, 128)
"""CPUs of a pod, of which it is told how many fit."""
Free = Mapping[str, int | None]


class RoomFor(msgspec.Struct, frozen=True):
    """How many pods with so many CPUs of their own find a NUMA node each, and how many would if a node's NUMA nodes were one."""

    cpus: int
    on_one_numa_node: int
    on_one_node: int

    @property
    def scattered(self) -> int:
        """Pods that do not fit because the free CPUs of their node lie on several NUMA nodes."""
        return self.on_one_node - self.on_one_numa_node


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """CPUs that may become exclusive and are not. `largest`: the most that one NUMA node has, on `node` and `numa`; None = of none it is known."""

    free: int | None
    largest: int | None
    node: str
    numa: int | None
    numa_nodes: int
    """Of which it is known."""
    unknown: int
    """NUMA nodes of which nobody tells, those of nodes without any word counted as one."""
    sizes: tuple[RoomFor, ...]


def room(nodes: Iterable[tuple[str, Free | None]]) -> Room:
    """Of nodes, each with its free CPUs by NUMA node; None = nobody ever told."""
    unknown, best = 0, (-1, "", -1)
    blocks: Counter[int] = Counter()
    wholes: Counter[int] = Counter()
    for name, told in nodes:
        if told is None:
            unknown += 1
            continue
        known = {int(numa): free for numa, free in told.items() if free is not None}
        unknown += len(told) - len(known)
        if not known:
            continue
        blocks.update(known.values())
        wholes[sum(known.values())] += 1
        numa = max(known, key=lambda each: (known[each], -each))
        if known[numa] > best[0]:
            best = (known[numa], name, numa)
    largest, node, numa = best
    if largest < 0:
        return Room(free=None, largest=None, node="", numa=None, numa_nodes=0, unknown=unknown, sizes=())
    fitting = [RoomFor(size, _fitting(blocks, size), _fitting(wholes, size)) for size in SIZES]
    return Room(
        free=sum(free * count for free, count in blocks.items()),
        largest=largest,
        node=node if largest else "",
        numa=numa if largest else None,
        numa_nodes=blocks.total(),
        unknown=unknown,
        sizes=tuple(each for each in fitting if each.on_one_node),
    )


def _fitting(places: Mapping[int, int], size: int) -> int:
    return sum(free // size * count for free, count in places.items())
