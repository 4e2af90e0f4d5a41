"""What one node's snapshot means: who owns each CPU, how full each NUMA node is, what each container costs and why.

One function, `node_report`, turns a node's facts into figures. Pages, REST, exports and metrics show these and compute
nothing themselves. Sentences are made elsewhere, from `Reason` codes, so that they can be in any language.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from numacore import allocation, diagnosis, workload
from numacore.allocation import Allocation
from numacore.cpuset import EMPTY, CpuSet
from numacore.diagnosis import Reason
from numacore.facts import Facts, exclusive_cpus, pinnable_cpus, reserved_cpus
from numacore.kubeletstate import Kubelet
from numacore.topology import Device
from numacore.usage import MemoryUse, numa_busy, total
from numacore.workload import Container, Cross, Kind, Ownership


class CpuReport(msgspec.Struct, frozen=True):
    """One CPU: ownership and use are two dimensions. `containers`: positions in `NodeReport.containers` of its owners."""

    id: int
    numa: int | None
    socket: int | None
    core: int | None
    owner: Ownership | None
    busy: float | None
    occupied: bool | None
    containers: tuple[int, ...] = ()


class NumaReport(msgspec.Struct, frozen=True):
    """One NUMA node. `pinnable` = CPUs that may become exclusive; None = no kubelet says."""

    id: int
    socket: int | None
    cpus: CpuSet
    owners: dict[str, int]
    """CPUs by ownership, offline ones included; `unknown` where nobody says."""
    pinned: int | None
    pinnable: int | None
    busy: float | None
    memory: MemoryUse | None
    devices: tuple[Device, ...]

    @property
    def free(self) -> int | None:
        """CPUs that a container may still get for its own; None = nobody says."""
        if self.pinned is None or self.pinnable is None:
            return None
        return max(0, self.pinnable - self.pinned)


class ContainerReport(msgspec.Struct, frozen=True):
    """One container's placement and what it costs. None = unknown."""

    container: Container
    kind: Kind | None
    cpus: CpuSet | None
    """CPUs that it owns, else may run on."""
    cpu_nodes: tuple[int, ...]
    cpu_shares: dict[int, float] | None
    pages: dict[int, int] | None
    """Bytes by NUMA node."""
    page_shares: dict[int, float] | None
    device_nodes: tuple[int, ...]
    locality: float | None
    cost: float | None
    remote_pages: float | None
    cross: tuple[Cross, ...] | None
    cpu_use: float | None
    memory: int | None
    pinning: Reason
    memory_reason: Reason | None


class Policy(msgspec.Struct, frozen=True):
    """The kubelet's placement settings as asked for, and the CPU and memory managers' that are in force.

    None = a file that may ask for it cannot be read.
    """

    topology: str | None
    scope: str | None
    topology_options: dict[str, str]
    cpu: str | None
    cpu_options: dict[str, str]
    memory: str | None
    cpu_in_force: str | None
    memory_in_force: str | None
    contradictions: tuple[Reason, ...]


class NodeReport(msgspec.Struct, frozen=True):
    """One node, in figures."""

    cpus: tuple[CpuReport, ...]
    numa: tuple[NumaReport, ...]
    containers: tuple[ContainerReport, ...]
    policy: Policy | None
    """None = no kubelet here, or nothing known of it."""
    reserved: CpuSet | None
    exclusive: CpuSet | None
    pool: CpuSet | None
    pinned: int | None
    pinnable: int | None
    cpu: Allocation | None
    memory: Allocation | None
    busy: float | None
    memory_total: int | None
    memory_used: int | None
    crossing: int
    """Containers that cross NUMA nodes in some way."""
    crossing_unknown: int
    """Containers of which nobody can say it."""


def node_report(facts: Facts, busy_threshold: float = workload.BUSY) -> NodeReport:
    """The figures of one node from its facts."""
    topology = facts.topology
    exclusive = exclusive_cpus(facts)
    reserved = reserved_cpus(topology, facts.kubelet)
    pool = None if exclusive is None else workload.shared_pool(topology.online, reserved, exclusive)
    busy = facts.rates.busy if facts.rates else {}
    containers = tuple(_container(facts, pool, i, each) for i, each in enumerate(facts.containers))
    cpus = _cpus(facts, exclusive, reserved, busy, busy_threshold)
    pinnable = pinnable_cpus(topology, facts.kubelet, reserved)
    totals = [facts.usage.memory.get(node) for node in topology.numa_ids] if facts.usage else []
    return NodeReport(
        cpus=cpus,
        numa=_numa(facts, cpus, pinnable, busy),
        containers=containers,
        policy=_policy(facts.kubelet),
        reserved=reserved,
        exclusive=exclusive,
        pool=pool,
        pinned=None if exclusive is None or pinnable is None else len(exclusive & topology.online),
        pinnable=None if pinnable is None else len(pinnable),
        cpu=allocation.cpu(facts),
        memory=allocation.memory(facts),
        busy=sum(busy.values()) / len(busy) if busy else None,
        memory_total=total([use.total if use else None for use in totals]),
        memory_used=total([use.used if use else None for use in totals]),
        crossing=sum(1 for each in containers if each.cross),
        crossing_unknown=sum(1 for each in containers if each.cross is None),
    )


def _container(facts: Facts, pool: CpuSet | None, index: int, container: Container) -> ContainerReport:
    topology, use = facts.topology, facts.usage.containers if facts.usage else None
    kind = _kind(container, topology.online, pool)
    cpus = workload.runs_on(container)
    pages = _column(use.pages, index) if use else None
    page_shares = workload.shares(pages) if pages else None
    time = _column(use.cpu_time_by_numa, index) if use else None
    cpu_shares = workload.cpu_shares(topology, cpus, time)
    nodes = topology.numa_of(cpus) if cpus else ()
    claims = [claim.numa for claim in container.devices]
    cross = workload.crosses(kind, nodes, page_shares, claims)
    return ContainerReport(
        container=container,
        kind=kind,
        cpus=cpus,
        cpu_nodes=nodes,
        cpu_shares=cpu_shares,
        pages=pages,
        page_shares=page_shares,
        device_nodes=tuple(sorted({node for claim in claims for node in claim})),
        locality=workload.locality(cpu_shares, page_shares),
        cost=workload.cost(topology, cpu_shares, page_shares),
        remote_pages=workload.remote_pages(nodes, page_shares) if nodes else None,
        cross=cross,
        cpu_use=facts.rates.cpu_use.get(container.id) if facts.rates else None,
        memory=use.memory[index] if use and index < len(use.memory) else None,
        pinning=diagnosis.pinning(container, facts.kubelet, kind),
        memory_reason=diagnosis.remote_memory(container, facts.kubelet, cross),
    )


def _kind(container: Container, online: CpuSet, pool: CpuSet | None) -> Kind | None:
    """With unknown ownership a pod's container can still be seen to float over the whole node; a smaller cpuset may be
    the kubelet's shared pool or a choice, and nobody can say which."""
    if pool is not None:
        return workload.kind(container, pool)
    found = workload.kind(container, online)
    return None if found == "narrowed" and container.kubernetes else found


def _column(columns: Mapping[int, tuple[int | None, ...]], index: int) -> dict[int, int] | None:
    """One container's value of each NUMA node; None if any is unknown (shares of a part would lie)."""
    found: dict[int, int] = {}
    for node, column in columns.items():
        value = column[index] if index < len(column) else None
        if value is None:
            return None
        found[node] = value
    return found or None


def _cpus(
    facts: Facts, exclusive: CpuSet | None, reserved: CpuSet | None, busy: dict[int, float], threshold: float
) -> tuple[CpuReport, ...]:
    owners: dict[int, list[int]] = {}
    for index, container in enumerate(facts.containers):
        for cpu in container.exclusive or EMPTY:
            owners.setdefault(cpu, []).append(index)
    online = facts.topology.online
    made = []
    for each in facts.topology.cpus:
        owner = _owner(each.id, online, exclusive, reserved)
        share = busy.get(each.id)
        occupied = workload.occupied(owner, share, threshold) if owner else None
        mine = tuple(owners.get(each.id, ()))
        made.append(CpuReport(each.id, each.numa, each.socket, each.core, owner, share, occupied, mine))
    return tuple(made)


def _owner(cpu: int, online: CpuSet, exclusive: CpuSet | None, reserved: CpuSet | None) -> Ownership | None:
    if cpu in online and (exclusive is None or (reserved is None and cpu not in exclusive)):
        return None
    return workload.ownership(cpu, online=online, reserved=reserved, exclusive=exclusive or EMPTY)


def _numa(
    facts: Facts, cpus: tuple[CpuReport, ...], pinnable: CpuSet | None, busy: dict[int, float]
) -> tuple[NumaReport, ...]:
    shares = numa_busy(facts.topology, busy)
    reports = []
    for node in facts.topology.nodes:
        mine = [cpu for cpu in cpus if cpu.numa == node.id]
        owners: dict[str, int] = {}
        for cpu in mine:
            owners[cpu.owner or "unknown"] = owners.get(cpu.owner or "unknown", 0) + 1
        reports.append(
            NumaReport(
                id=node.id,
                socket=facts.topology.socket_of_node(node.id),
                cpus=node.cpus,
                owners=owners,
                pinned=None if "unknown" in owners else owners.get("exclusive", 0),
                pinnable=None if pinnable is None else len(pinnable & node.cpus),
                busy=shares[node.id],
                memory=facts.usage.memory.get(node.id) if facts.usage else None,
                devices=tuple(each for each in facts.attributes.devices if each.numa == node.id),
            )
        )
    return tuple(reports)


def _policy(kubelet: Kubelet | None) -> Policy | None:
    if kubelet is None or not kubelet.present:
        return None
    cpu, memory = kubelet.asked("cpuManagerPolicy", "none"), kubelet.asked("memoryManagerPolicy", "None")
    cpu_now = kubelet.cpu_state.policy if kubelet.cpu_state else None
    memory_now = kubelet.memory_state.policy if kubelet.memory_state else None
    found = []
    if cpu_now is not None and cpu is not None and cpu_now != cpu:
        found.append(Reason("cpu-policy-differs", {"asked": cpu, "in_force": cpu_now}))
    if memory_now is not None and memory is not None and memory_now != memory:
        found.append(Reason("memory-policy-differs", {"asked": memory, "in_force": memory_now}))
    return Policy(
        topology=kubelet.asked("topologyManagerPolicy", "none"),
        scope=kubelet.asked("topologyManagerScope", "container"),
        topology_options=_options(kubelet, "topologyManagerPolicyOptions"),
        cpu=cpu,
        cpu_options=_options(kubelet, "cpuManagerPolicyOptions"),
        memory=memory,
        cpu_in_force=cpu_now,
        memory_in_force=memory_now,
        contradictions=tuple(found),
    )


def _options(kubelet: Kubelet, field: str) -> dict[str, str]:
    setting = kubelet.settings.get(field)
    value = setting.value if setting else None
    return {str(key): str(each) for key, each in value.items()} if isinstance(value, dict) else {}
