"""The node drawing as plain data: what the browser needs to draw a machine, and nothing that it would have to compute.

Columns over CPUs instead of an object each: 1,024 CPUs stay below 40 KB. The browser lays out and lights up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from django.utils.translation import gettext as _

from monitoring.figures import sentences
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.report import ContainerReport, CpuReport, NodeReport, NumaReport
from numacore.topology import Cpu, Performance, Topology
from numacore.usage import MemoryUse

OWNERS = {"exclusive": "x", "shared": "s", "reserved": "r", "offline": "o", None: "u"}


def drawing(facts: Facts, report: NodeReport, threshold: float) -> dict[str, Any]:
    """Everything that the drawing, the distances and the container list of one node show."""
    return {
        "threshold": threshold,
        "numa": facts.topology.numa,
        "sockets": list(facts.topology.sockets),
        "nodes": [numa_node(facts, each) for each in report.numa],
        "cpus": cpu_columns(facts.topology, report.cpus),
        "distances": distances(facts.topology),
        "containers": [container(each) for each in report.containers],
    }


def numa_node(facts: Facts, numa: NumaReport) -> dict[str, Any]:
    """One NUMA node: its memory, devices and what the firmware promises of its memory."""
    label, groups = groups_of(facts.topology, numa.cpus)
    return {
        "id": numa.id,
        "socket": numa.socket,
        "cpus": str(numa.cpus),
        "count": len(numa.cpus),
        "owners": numa.owners,
        "pinned": numa.pinned,
        "pinnable": numa.pinnable,
        "busy": rounded(numa.busy),
        "memory": memory(numa.memory, facts.attributes.memory.get(numa.id)),
        "tier": facts.attributes.memory_tiers.get(numa.id),
        "performance": [performance(each) for each in facts.attributes.performance if each.node == numa.id],
        "devices": [device(each.address, each.kind, each.names) for each in numa.devices],
        "groupLabel": label,
        "groups": groups,
    }


def memory(use: MemoryUse | None, configured: int | None) -> dict[str, int | None]:
    """Bytes of one NUMA node; `huge` and `hugeFree` over all page sizes. Unknown stays None."""
    if use is None:
        return {"total": configured, "used": None, "free": None, "file": None, "huge": None, "hugeFree": None}
    totals = [None if each.total is None else each.total * each.page_size for each in use.hugepages]
    free = [None if each.free is None else each.free * each.page_size for each in use.hugepages]
    return {
        "total": use.total if use.total is not None else configured,
        "used": use.used,
        "free": use.free,
        "file": use.file,
        "huge": added(totals),
        "hugeFree": added(free),
    }


def added(values: list[int | None]) -> int | None:
    """The sum; nothing to add is 0 (no huge pages are configured), an unknown part makes it unknown."""
    known = [each for each in values if each is not None]
    return sum(known) if len(known) == len(values) else None


def device(address: str, kind: str, names: tuple[str, ...]) -> dict[str, Any]:
    return {"address": address, "kind": kind, "names": list(names)}


def performance(of: Performance) -> dict[str, Any]:
    """Latency in ns and bandwidth in MB/s from the best initiators, as the firmware's HMAT says."""
    return {
        "access": of.access,
        "initiators": list(of.initiators),
        "readLatency": of.read_latency,
        "writeLatency": of.write_latency,
        "readBandwidth": of.read_bandwidth,
        "writeBandwidth": of.write_bandwidth,
    }


def cpu_columns(topology: Topology, reports: Iterable[CpuReport]) -> dict[str, list[Any]]:
    """Columns over the CPUs, ascending by id."""
    pairs = [(topology.cpu(each.id), each) for each in reports]
    first = {cpu: next(iter(core)) for _, core in topology.cores() for cpu in core}
    return {
        "id": [report.id for _cpu, report in pairs],
        "numa": [report.numa for _cpu, report in pairs],
        "socket": [report.socket for _cpu, report in pairs],
        "die": [cpu.die if cpu else None for cpu, _report in pairs],
        "core": [report.core for _cpu, report in pairs],
        # The lowest CPU of the core: core ids alone do not tell the cores of every machine apart.
        "first": [first.get(report.id, report.id) for _cpu, report in pairs],
        "owner": [OWNERS[report.owner] for _cpu, report in pairs],
        "busy": [rounded(report.busy) for _cpu, report in pairs],
        "owned": [list(report.containers) for _cpu, report in pairs],
    }


def distances(topology: Topology) -> list[list[int | None]]:
    """The matrix, None where the firmware does not say."""
    return [[topology.distance(a, b) for b in topology.numa_ids] for a in topology.numa_ids]


def container(of: ContainerReport) -> dict[str, Any]:
    """One container: where it is, what it costs, and why."""
    told = [sentences.reason(each) for each in (of.pinning, of.memory_reason) if each]
    return {
        "id": of.container.id,
        "title": title(of),
        "kind": of.kind,
        "cpus": None if of.cpus is None else str(of.cpus),
        "cpuNodes": list(of.cpu_nodes),
        "cpuShares": shares(of.cpu_shares),
        "pages": of.pages,
        "pageShares": shares(of.page_shares),
        "devices": [
            {"resource": claim.resource, "ids": list(claim.ids), "numa": list(claim.numa)}
            for claim in of.container.devices
        ],
        "locality": rounded(of.locality),
        "cost": rounded(of.cost),
        "cross": None if of.cross is None else list(of.cross),
        "cpuUse": rounded(of.cpu_use),
        "memory": of.memory,
        "why": [each._asdict() for each in told],
    }


def title(of: ContainerReport) -> str:
    """The name that people know a container by; its id where nobody named it."""
    known = of.container
    if known.pod:
        parts = (known.namespace, known.pod, known.name)
        return " / ".join(part for part in parts if part)
    return known.name or _("unnamed %(id)s") % {"id": known.id[:12]}


def groups_of(topology: Topology, cpus: CpuSet) -> tuple[str, list[str]]:
    """How the CPUs of a NUMA node group below it: several sockets, dies, L3 caches or clusters, the first that parts it.

    Returns what a group is called and the CPUs of each; no groups where nothing parts the NUMA node.
    """
    members = [cpu for each in cpus if (cpu := topology.cpu(each))]
    for label, found in (
        (_("Socket"), split(members, lambda cpu: cpu.socket)),
        (_("Die"), split(members, lambda cpu: cpu.die)),
        (_("L3"), caches(topology, cpus)),
        (_("Cluster"), split(members, lambda cpu: cpu.cluster)),
    ):
        # A group for each core would say nothing new.
        if 1 < len(found) and any(len(cores_in(topology, ids)) > 1 for ids in found):
            return label, [str(ids) for ids in found]
    return "", []


def cores_in(topology: Topology, cpus: CpuSet) -> list[CpuSet]:
    """The cores that these CPUs are threads of."""
    return [core for _, core in topology.cores() if core & cpus]


def split(members: list[Cpu], key: Callable[[Cpu], Hashable]) -> list[CpuSet]:
    """The CPUs by a key, in the order of their ids; nothing where a CPU does not know it."""
    found: dict[Hashable, list[int]] = {}
    for cpu in members:
        found.setdefault(key(cpu), []).append(cpu.id)
    return [] if None in found else [CpuSet(ids) for ids in found.values()]


def caches(topology: Topology, cpus: CpuSet) -> list[CpuSet]:
    """The shared L3 caches that part these CPUs."""
    found = {cache.cpus & cpus for cache in topology.caches if cache.level == 3 and cache.kind == "Unified"}
    whole = sorted((each for each in found if each), key=lambda each: next(iter(each)))
    return whole if sum(len(each) for each in whole) == len(cpus) else []


def shares(of: dict[int, float] | None) -> dict[int, float] | None:
    return None if of is None else {node: round(share, 4) for node, share in of.items()}


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
