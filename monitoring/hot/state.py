"""What the stores keep: a node's newest answer with the reading before it, and the cells of many nodes at one moment."""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from numacore import wire
from numacore.facts import Facts
from numacore.kubeletstate import Kubelet
from numacore.usage import Rates, Usage, rates

T = TypeVar("T")
Bytes = NDArray[np.uint8]

UNKNOWN = 255
"""Byte of a cell of which nothing is known."""
UNIT = 200
"""Byte of a cell whose share is 1: half a percent a step."""


class StoreError(Exception):
    """The store cannot be reached; what it holds is late or lost, and the next round of collection brings it again."""


class Reading(msgspec.Struct, frozen=True):
    """A usage section as it came, and the containers that its columns are about."""

    data: bytes
    containers: bytes | None = None
    """JSON of the containers section if it was another one than the newest; None = the same."""


class HotNode(msgspec.Struct, frozen=True, kw_only=True):
    """The newest answer of a node's exporter. Times are seconds since 1970 by our clock unless said."""

    node: int
    endpoint: int
    exporter: wire.Exporter
    received: float
    taken: float
    """By the node's clock, which may be wrong."""
    hashes: dict[str, str]
    confirmed: dict[str, float]
    """When each section was last confirmed to be as it is here."""
    problems: tuple[wire.Problem, ...] = ()
    skew: float | None = None
    seconds: float | None = None
    """Between the two readings, by the node's monotonic clock; None = they cannot be compared (a reboot, the first)."""
    sections: dict[str, bytes] = {}
    """JSON of each section by its name in `numacore.wire`."""
    before: Reading | None = None

    def facts(self, machine: wire.Machine | None = None) -> Facts | None:
        """Everything that is known, as the core takes it; None while the machine itself is unknown.

        `machine`: that section's value, from whoever has it already.
        """
        machine = machine or self._section(wire.MACHINE, wire.Machine)
        if machine is None:
            return None
        listed = self._section(wire.CONTAINERS, wire.Containers)
        usage = self._section(wire.USAGE, Usage)
        current = usage is not None and usage.containers_of == self.hashes.get(wire.CONTAINERS)
        if usage is not None and not current:
            usage = msgspec.structs.replace(usage, containers=None)
        containers = listed.containers if listed else ()
        return Facts(
            topology=machine.topology,
            attributes=machine.attributes,
            kubelet=self._section(wire.KUBELET, Kubelet),
            containers=containers,
            usage=usage,
            rates=self._rates(usage, [each.id for each in containers]) if usage else None,
        )

    def _rates(self, usage: Usage, ids: list[str]) -> Rates | None:
        if self.before is None or self.seconds is None or self.seconds <= 0:
            return None
        before = wire.decode_section(Usage, self.before.data)
        before_ids = ids
        if self.before.containers is not None:
            listed = wire.decode_section(wire.Containers, self.before.containers)
            before_ids = [each.id for each in listed.containers]
        return rates(before, before_ids, usage, ids, self.seconds)

    def _section(self, name: str, kind: type[T]) -> T | None:
        data = self.sections.get(name)
        return None if data is None else wire.decode_section(kind, data)


class Cells(msgspec.Struct, frozen=True):
    """Cells of some nodes of one cluster at one moment, as columns: a cell is one NUMA node, two bytes.

    Arrays travel as the bytes of little-endian numbers, so that a block of 5,000 nodes is packed in microseconds.
    """

    taken: float
    """When this block was made, seconds since 1970."""
    nodes: bytes
    """int32: ids of the nodes."""
    slots: bytes
    """uint32: index of each node's first cell in the cluster's planes."""
    widths: bytes
    """uint16: number of each node's cells."""
    received: bytes
    """float64: when each node's newest answer came."""
    pinned: bytes
    """uint8 per cell, node after node: pinned CPUs / CPUs that may be pinned, in `UNIT` steps; `UNKNOWN`."""
    busy: bytes
    """uint8 per cell: busy share, likewise."""

    def heard(self) -> dict[int, float]:
        """When each node's newest answer came, by node id."""
        nodes, received = np.frombuffer(self.nodes, "<i4"), np.frombuffer(self.received, "<f8")
        return dict(zip(nodes.tolist(), received.tolist(), strict=True))

    def positions(self) -> NDArray[np.int64]:
        """Index of every cell of this block in the cluster's planes."""
        slots = np.frombuffer(self.slots, "<u4").astype(np.int64)
        widths = np.frombuffer(self.widths, "<u2").astype(np.int64)
        starts = np.cumsum(widths) - widths
        return np.repeat(slots - starts, widths) + np.arange(int(widths.sum()))


class Planes(msgspec.Struct, frozen=True):
    """All cells of a cluster, by position; what no collector filled is `UNKNOWN`."""

    pinned: Bytes
    busy: Bytes


def planes(blocks: list[Cells], size: int = 0) -> Planes:
    """The planes that these blocks fill, at least `size` cells long."""
    placed = [(block.positions(), block) for block in blocks]
    ends = [int(positions.max()) + 1 for positions, _ in placed if len(positions)]
    made = Planes(*(np.full(max([size, *ends]), UNKNOWN, np.uint8) for _ in range(2)))
    for positions, block in placed:
        made.pinned[positions] = np.frombuffer(block.pinned, np.uint8)
        made.busy[positions] = np.frombuffer(block.busy, np.uint8)
    return made


class Note(msgspec.Struct, frozen=True):
    """How a part of the service did lately, for the component status: `code` and `text` say what is wrong."""

    at: float
    ok: bool
    code: str = ""
    text: str = ""
