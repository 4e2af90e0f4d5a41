"""Containers as a node sees them, and the figures about one container's placement.

The words are defined once, here: kinds of container, cross-NUMA, locality, cost, ownership of a CPU. The exporter's
metrics, the pages, the REST API and every export use these functions and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from numacore.cpuset import EMPTY, CpuSet
from numacore.topology import LOCAL_DISTANCE, UNREACHABLE, Amount, Id, Topology

Kind = Literal["exclusive", "narrowed", "floating"]
"""exclusive: owns CPUs. narrowed: its cpuset leaves out CPUs that everybody may use. floating: may run on all of those.

Under the static CPU manager every shared container loses the CPUs that others own (kubelet 1.34,
cpumanager/policy_static.go: the default set shrinks). That alone does not narrow it: nobody chose a place for it."""
Cross = Literal["cpu", "memory", "device"]
"""What of a container lies across NUMA nodes."""
Ownership = Literal["offline", "reserved", "exclusive", "shared"]
QOS = Literal["Guaranteed", "Burstable", "BestEffort"]
Max = Literal["max"]
"""No limit is set (the word that cgroup v2 uses)."""

REMOTE_PAGES = 0.05
"""Share of pages on NUMA nodes without a CPU of the container above which its memory counts as cross-NUMA."""
BUSY = 0.10
"""Default busy share above which a shared CPU counts as occupied."""


class MemoryBlock(msgspec.Struct, frozen=True):
    """Memory or huge pages that the kubelet's memory manager gave to a container."""

    kind: str
    """`memory` or `hugepages-2Mi` and the like."""
    size: Amount
    """bytes"""
    numa: tuple[Id, ...]
    """NUMA nodes that it may come from; several = a NUMA group."""


class DeviceClaim(msgspec.Struct, frozen=True):
    """Devices of one resource that the kubelet gave to a container."""

    resource: str
    ids: tuple[str, ...]
    numa: tuple[Id, ...] = ()
    """NUMA nodes of these devices as the device plugin told the kubelet; empty = it told none."""


class Container(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One container on a node. `None` everywhere means unknown.

    The kubelet's socket knows names and no ids, cgroups know ids and no names; what could not be joined on the node
    stands here with what is known and is joined later by pod uid.
    """

    id: str
    """The runtime's id; for a service outside Kubernetes its cgroup path."""
    cgroup: str | None = None
    """Path below the cgroup root; None where only the kubelet's socket or state files know the container."""
    runtime: str | None = None
    """containerd, cri-o, docker, podman, lxc, systemd."""
    pod_uid: str | None = None
    pod: str | None = None
    namespace: str | None = None
    name: str | None = None
    """Container name in its pod; the unit's or container's own name outside Kubernetes."""
    kubernetes: bool = True
    qos: QOS | None = None
    cpus: CpuSet | None = None
    """CPUs that it may run on, now in force."""
    mems: CpuSet | None = None
    """NUMA nodes that its memory may come from, now in force."""
    exclusive: CpuSet | None = None
    """CPUs that it owns alone, from the kubelet; empty = none."""
    cpu_limit: float | Max | None = None
    """CPUs, from the CFS quota."""
    cpu_request: float | None = None
    """CPUs, where the node knows it exactly."""
    memory_limit: Amount | Max | None = None
    memory_blocks: tuple[MemoryBlock, ...] = ()
    devices: tuple[DeviceClaim, ...] = ()
    told_by_api: tuple[str, ...] = ()
    """Fields of these that the node did not tell and the API server's Pod did (`numacore.joining`)."""


def shared_pool(online: CpuSet, reserved: CpuSet | None, exclusive: CpuSet) -> CpuSet:
    """CPUs that every container may use: online, owned by nobody and not reserved.

    Reserved CPUs belong to the kubelet's default set too unless `strict-cpu-reservation` is on; leaving them out here
    makes a container on either set floating.
    """
    return online - exclusive - (reserved or EMPTY)


def kind(container: Container, pool: CpuSet) -> Kind | None:
    """Kind of a container on a node with this shared pool; None where its cpuset is unknown (no CPU at all is no answer)."""
    if container.exclusive:
        return "exclusive"
    if not container.cpus:
        return None
    return "narrowed" if pool - container.cpus else "floating"


def runs_on(container: Container) -> CpuSet | None:
    """CPUs that count as the container's: what it owns, else its cpuset."""
    return container.exclusive or container.cpus


def shares(amounts: Mapping[int, float]) -> dict[int, float] | None:
    """Amounts by NUMA node as shares that add up to 1; None where there is nothing to share."""
    total = sum(amount for amount in amounts.values() if amount > 0)
    if total <= 0:
        return None
    return {node: amount / total for node, amount in amounts.items() if amount > 0}


def cpu_shares(
    topology: Topology, cpus: CpuSet | None, time: Mapping[int, float] | None = None
) -> dict[int, float] | None:
    """Share of the CPU side by NUMA node: from CPU time by NUMA node where known, else even over the CPUs."""
    if time and (measured := shares(time)):
        return measured
    if not cpus:
        return None
    return shares({node.id: float(len(node.cpus & cpus)) for node in topology.nodes})


def locality(cpu: Mapping[int, float] | None, pages: Mapping[int, float] | None) -> float | None:
    """Sum over NUMA nodes of cpu share x page share, 0..1; 1 = every access local if threads touch pages evenly."""
    if cpu is None or pages is None:
        return None
    return sum(share * pages.get(node, 0.0) for node, share in cpu.items())


def cost(
    topology: Topology, cpu: Mapping[int, float] | None, pages: Mapping[int, float] | None
) -> float | None:
    """Sum over pairs of cpu share(i) x page share(j) x distance(i, j) / 10; 1.0 = all local.

    None where a share or a needed distance is unknown, or a pair is unreachable (255 is no number to weigh with).
    """
    if cpu is None or pages is None:
        return None
    total = 0.0
    for i, cpu_share in cpu.items():
        for j, page_share in pages.items():
            distance = topology.distance(i, j)
            if distance is None or distance >= UNREACHABLE:
                return None
            total += cpu_share * page_share * distance / LOCAL_DISTANCE
    return total


def remote_pages(cpu_nodes: Iterable[int], pages: Mapping[int, float] | None) -> float | None:
    """Share of pages on NUMA nodes where the container has no CPU."""
    if pages is None:
        return None
    here = set(cpu_nodes)
    return sum(share for node, share in pages.items() if node not in here)


def crosses(
    kind: Kind | None,
    cpu_nodes: tuple[int, ...],
    pages: Mapping[int, float] | None,
    device_nodes: Iterable[tuple[int, ...]],
) -> tuple[Cross, ...] | None:
    """What of a container lies across NUMA nodes; empty = nothing. A floating container never crosses.

    None = unknown: its kind, or where its CPUs lie.
    `device_nodes`: for each claim the NUMA nodes of its devices; a claim whose devices name none says nothing.
    """
    if kind == "floating":
        return ()
    if kind is None or not cpu_nodes:
        return None
    here = set(cpu_nodes)
    remote = remote_pages(here, pages)
    found: list[Cross] = ["cpu"] if len(cpu_nodes) > 1 else []
    if remote is not None and remote > REMOTE_PAGES:
        found.append("memory")
    if any(nodes and not here & set(nodes) for nodes in device_nodes):
        found.append("device")
    return tuple(found)


def ownership(cpu: int, *, online: CpuSet, reserved: CpuSet | None, exclusive: CpuSet) -> Ownership:
    """Who owns a CPU. An exclusive CPU stays exclusive even if it is reserved too (the kubelet never does that)."""
    if cpu not in online:
        return "offline"
    if cpu in exclusive:
        return "exclusive"
    return "reserved" if cpu in (reserved or EMPTY) else "shared"


def occupied(owner: Ownership, busy: float | None, threshold: float = BUSY) -> bool | None:
    """Occupied = exclusive or busier than the threshold; None = not exclusive and use unknown, or offline."""
    if owner == "offline":
        return None
    if owner == "exclusive":
        return True
    return None if busy is None else busy > threshold
