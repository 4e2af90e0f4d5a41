"""What the tables of pages save: for each column where its value comes from. Names are those of REST where it has the same.

Unknown is None, which a file shows as nothing (CSV) or null (JSON).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import msgspec

from monitoring.figures import sentences
from monitoring.figures.saidby import Cell, Column, Row
from numacore.diagnosis import Reason
from numacore.topology import Topology, enc_hook

Columns = Mapping[str, Callable[[Any], Any]]


def of(*names: str) -> Columns:
    """Columns that are attributes of the same name."""
    return {name: attrgetter(name) for name in names}


def said(reason: Reason | None) -> str | None:
    """A reason in words."""
    return None if reason is None else sentences.reason(reason).text


def cpus(value: Any) -> str | None:
    """A set of CPUs in the kernel's list format."""
    return None if value is None else str(value)


def text(take: Callable[[Any], Any]) -> Callable[[Any], str]:
    """A label in the language of the page."""
    return lambda item: str(take(item))


def plain(take: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Structs and tuples as objects and lists."""
    return lambda item: msgspec.to_builtins(take(item), str_keys=True, enc_hook=enc_hook)


def in_memory(name: str) -> Callable[[Any], Any]:
    """A figure of a NUMA node's memory, None where nobody measures it."""
    return lambda each: getattr(each.memory, name, None)


CONTAINERS: Columns = {
    **{name: attrgetter(f"container.{name}") for name in ("namespace", "pod", "name", "id", "pod_uid")},
    **{name: attrgetter(f"container.{name}") for name in ("qos", "runtime")},
    "kind": attrgetter("kind"),
    "cpus": lambda each: cpus(each.cpus),
    "cpu_shares": plain(attrgetter("cpu_shares")),
    "pages": plain(attrgetter("pages")),
    "devices": plain(attrgetter("container.devices")),
    **of("cpu_use", "memory", "locality", "cost", "remote_pages"),
    "cross": plain(attrgetter("cross")),
    "pinning": lambda each: said(each.pinning),
    "memory_reason": lambda each: said(each.memory_reason),
}
"""Of a `ContainerReport`."""

NUMA_NODES: Columns = {
    **of("id", "socket"),
    "cpus": lambda each: cpus(each.cpus),
    "owners": plain(attrgetter("owners")),
    **of("busy", "pinned", "pinnable"),
    **{f"memory_{name}": in_memory(name) for name in ("total", "used", "file", "free")},
    "hugepages": lambda each: msgspec.to_builtins(each.memory.hugepages) if each.memory else None,
    "devices": lambda each: [", ".join(device.names) or device.address for device in each.devices],
}
"""Of a `NumaReport`."""


class Distance(NamedTuple):
    """From the NUMA node whose CPUs ask to the one whose memory answers. None = the firmware does not say, 255 = no way."""

    start: int
    end: int
    distance: int | None


def distances(topology: Topology) -> Iterator[Distance]:
    ids = topology.numa_ids
    return (Distance(a, b, topology.distance(a, b)) for a in ids for b in ids)


DISTANCES: Columns = {
    "from": attrgetter("start"),
    "to": attrgetter("end"),
    "distance": attrgetter("distance"),
}

PERFORMANCE: Columns = {
    "node": attrgetter("node"),
    "initiators": plain(attrgetter("initiators")),
    **of("access", "read_latency", "write_latency", "read_bandwidth", "write_bandwidth"),
}
"""Of a `numacore.topology.Performance`: nanoseconds and MB/s."""

SETTINGS: Columns = {
    "field": attrgetter("field"),
    "asked": attrgetter("asked"),
    "source": text(attrgetter("source")),
    "where": attrgetter("where"),
    "in_force": lambda each: each.in_force or None,
    "cause": lambda each: each.cause or None,
    "differs": attrgetter("differs"),
}
"""Of a row of `figures.kubelet`."""

PROBLEMS: Columns = of("reader", "what", "cause", "count")
"""Of a `numacore.wire.Problem`."""

EVENTS: Columns = {
    "at": attrgetter("at"),
    "told_by": lambda each: "numaweb" if each.seen else each.told.component or "Kubernetes",
    "what": lambda each: str(each.seen.get_code_display()) if each.seen else each.told.reason,
    "detail": lambda each: sentences.event(each.seen.code, each.seen.values) if each.seen else each.told.message,
    "warning": lambda each: bool(each.told and each.told.warning),
    "count": lambda each: 1 if each.seen else each.told.count,
    "kind": lambda each: "Node" if each.seen else each.told.kind,
    "object": lambda each: each.seen.node.name if each.seen else "/".join(filter(None, (each.told.namespace, each.told.name))),
}  # fmt: skip
"""Of a `Happening`."""

CLUSTER_EVENTS: Columns = {
    "at": attrgetter("last"),
    **of("reason", "message", "warning", "count", "kind", "namespace", "name", "component"),
}
"""Of a `ClusterEvent`."""

PODS: Columns = of(
    *("namespace", "name", "uid", "kubelet_uid", "phase", "reason", "owner_kind", "owner_name"),
    *("qos", "cpu_request", "cpu_limit", "memory_request", "memory_limit", "created"),
)
"""Of a `Pod` on a known node."""

CONDITIONS: Columns = of("type", "status", "good", "reason", "message", "since")
RESOURCES: Columns = {"name": itemgetter(0), "capacity": itemgetter(1), "allocatable": itemgetter(2)}
"""Of what Kubernetes says of a node; quantities as it writes them."""


class Said(NamedTuple):
    """One source's word about one fact."""

    row: Row
    column: Column
    cell: Cell


def told(rows: Sequence[Row], columns: Sequence[Column]) -> Iterator[Said]:
    """What is told, and nothing for what a source does not tell."""
    pairs = ((row, column, cell) for row in rows for column, cell in zip(columns, row.cells, strict=True))
    return (Said(row, column, cell) for row, column, cell in pairs if cell is not None)


SOURCES: Columns = {
    "fact": attrgetter("row.name"),
    "source": attrgetter("column.source"),
    "age": attrgetter("column.age"),
    "value": lambda each: "\n".join(each.cell.lines),
    "believed": attrgetter("cell.believed"),
    "differs": attrgetter("cell.differs"),
}

WATCHES: Columns = {
    **of("resource", "level"),
    "state": text(attrgetter("state")),
    **of("text", "remedy", "since", "objects", "listed", "heard", "failures"),
}
"""Of a `figures.connecting.Watch`."""

PLANNED: Columns = {
    "node": attrgetter("row.node"),
    "state": attrgetter("row.state"),
    "why": lambda each: " ".join(reason.text for reason in each.why),
    "cpus": lambda each: cpus(each.row.cpus),
    "numa": plain(attrgetter("row.numa")),
    "fits": attrgetter("row.fits"),
    "volcano": lambda each: each.volcano.text if each.volcano else None,
    "score": lambda each: each.row.score.value if each.row.score else None,
    "disagreement": attrgetter("disagreement"),
    "policies": plain(attrgetter("row.policies")),
    "age": attrgetter("row.age"),
}
"""Of a line of `figures.plan`."""

OFFERS: Columns = {
    **of("owner", "resource", "asked"),
    "free": lambda each: [cell.free for cell in each.cells],
    "total": lambda each: [cell.total for cell in each.cells],
}
"""Of what each NUMA node has for a planned pod, NUMA node by NUMA node."""

ROOM: Columns = of("cpus", "on_one_numa_node", "on_one_node", "scattered")
"""Of a `RoomFor`."""
