"""Puts invented machines where the collector would: rows of the inventory, and the newest answer in the hot store."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
from django.utils import timezone

from monitoring import hot
from monitoring.hot import Cells, HotNode
from monitoring.models import Cluster, Container, Endpoint, KubernetesNode, Node, Topology
from numacore import report, wire
from numacore.facts import Facts
from numacore.report import ContainerReport, NodeReport
from numacore.usage import CpuTimes, Usage
from tests.monitoring.pages.machines import TICKS

BLOCK = 900
"""Number of the shard under which cells of tests stand."""


def cluster(slug: str = "east", name: str = "East") -> Cluster:
    return Cluster.objects.get_or_create(slug=slug, defaults={"name": name, "kind": "kubernetes"})[0]


def node(of: Cluster, name: str, facts: Facts, *, heard: float | None = None, **known: object) -> Node:
    """A node with its containers and, unless `heard` is 0, live data that came at that moment (now by default)."""
    made = report.node_report(facts)
    topology, _created = Topology.objects.get_or_create(
        hash=facts.topology.hash,
        defaults={
            "document": wire.encode_value(facts.topology),
            "cpus": len(facts.topology.cpus),
            "numa_nodes": len(facts.topology.nodes),
            "sockets": len(facts.topology.sockets),
        },
    )
    now = timezone.now()
    values = {**summary(made), **known}
    row = Node.objects.create(
        cluster=of, name=name, topology=topology, slot=of.cells, first_seen=now, last_seen=now, **values
    )
    of.cells += len(facts.topology.nodes)
    of.save()
    Endpoint.objects.create(
        cluster=of, url=f"http://{name}.example:9095", node=row, state="ok", last_ok=now, last_try=now
    )
    Container.objects.bulk_create(container(row, each) for each in made.containers)
    if heard != 0:
        live(row, facts, made, heard or time.time())
    return row


def summary(of: NodeReport) -> dict[str, object]:
    owners: dict[str, int] = {}
    for numa in of.numa:
        for owner, count in numa.owners.items():
            owners[owner] = owners.get(owner, 0) + count
    policy = of.policy
    costs = [each.cost for each in of.containers if each.cost is not None]
    return {
        "sockets": len({cpu.socket for cpu in of.cpus}),
        "numa_nodes": len(of.numa),
        "cpus": len(of.cpus),
        **{
            f"cpus_{name}": owners.get(name, 0)
            for name in ("exclusive", "reserved", "shared", "offline", "unknown")
        },
        "cpus_idle": sum(1 for cpu in of.cpus if cpu.occupied is False),
        "memory_total": of.memory_total,
        "memory_used": of.memory_used,
        "busy": of.busy,
        "pinned": of.pinned,
        "pinnable": of.pinnable,
        "free_cpus": {str(numa.id): numa.free for numa in of.numa if numa.cpus},
        "cpu_allocation": of.cpu.share if of.cpu else None,
        "memory_allocation": of.memory.share if of.memory else None,
        "topology_policy": policy.topology if policy else "",
        "topology_scope": policy.scope if policy else "",
        "cpu_policy": policy.cpu if policy else "",
        "memory_policy": policy.memory if policy else "",
        "containers": len(of.containers),
        "exclusive_containers": sum(1 for each in of.containers if each.kind == "exclusive"),
        "crossing": of.crossing,
        "crossing_unknown": of.crossing_unknown,
        "worst_cost": max(costs, default=None),
        "problems": 0,
        "contradictions": len(policy.contradictions) if policy else 0,
    }


def container(row: Node, of: ContainerReport) -> Container:
    known, cross = of.container, of.cross
    return Container(
        node=row,
        container_id=known.id,
        pod_uid=known.pod_uid or "",
        namespace=known.namespace or "",
        pod=known.pod or "",
        name=known.name or "",
        kubernetes=known.kubernetes,
        runtime=known.runtime or "",
        qos=known.qos or "",
        kind=of.kind or "",
        cpus="" if of.cpus is None else str(of.cpus),
        cpu_count=None if of.cpus is None else len(of.cpus),
        cpu_nodes=",".join(map(str, of.cpu_nodes)),
        memory_nodes=None if of.pages is None else {str(numa): size for numa, size in of.pages.items()},
        device_nodes=",".join(map(str, of.device_nodes)),
        locality=of.locality,
        cost=of.cost,
        remote_pages=of.remote_pages,
        cross_cpu=None if cross is None else "cpu" in cross,
        cross_memory=None if cross is None else "memory" in cross,
        cross_device=None if cross is None else "device" in cross,
        crossing=None if cross is None else bool(cross),
        cpu_use=of.cpu_use,
        memory=of.memory,
        pinning=of.pinning.code,
        updated=datetime.now(UTC),
    )


def live(
    row: Node, facts: Facts, made: NodeReport, heard: float, problems: tuple[wire.Problem, ...] = ()
) -> None:
    """The newest answer of a node, and its cells."""
    assert facts.usage is not None
    assert facts.usage.cpu is not None
    containers = wire.Packed(wire.Containers(facts.containers))
    usage = wire.Packed(replaced(facts.usage, containers.hash))
    parts: dict[str, wire.Packed[Any]] = {
        wire.MACHINE: wire.Packed(wire.Machine(facts.topology, facts.attributes)),
        wire.KUBELET: wire.Packed(facts.kubelet),
        wire.CONTAINERS: containers,
        wire.USAGE: usage,
    }
    zero = CpuTimes(facts.usage.cpu.cpus, (0,) * len(facts.usage.cpu.cpus), (0,) * len(facts.usage.cpu.cpus))
    before = replaced(facts.usage, containers.hash, zero)
    hot.store().put(
        [
            HotNode(
                node=row.pk,
                endpoint=0,
                exporter=wire.Exporter(node=row.name, version="0.1.0"),
                received=heard,
                taken=heard,
                hashes={name: part.hash for name, part in parts.items()},
                confirmed=dict.fromkeys(parts, heard),
                problems=problems,
                seconds=TICKS / 100,
                sections={name: part.data for name, part in parts.items()},
                before=hot.Reading(wire.encode_value(before)),
            )
        ]
    )
    shard = BLOCK + row.pk
    hot.store().put_cells(row.cluster_id, shard, cells(row, made, heard))


def replaced(usage: Usage, containers_of: str, cpu: CpuTimes | None = None) -> Usage:
    return Usage(
        containers_of=containers_of, cpu=cpu or usage.cpu, memory=usage.memory, containers=usage.containers
    )


def cells(row: Node, of: NodeReport, heard: float) -> Cells:
    def byte(part: float | None) -> int:
        return hot.UNKNOWN if part is None else round(part * hot.UNIT)

    pinned = [
        byte(None if not numa.pinnable or numa.pinned is None else numa.pinned / numa.pinnable)
        for numa in of.numa
    ]
    return Cells(
        taken=heard,
        nodes=np.array([row.pk], "<i4").tobytes(),
        slots=np.array([row.slot], "<u4").tobytes(),
        widths=np.array([len(of.numa)], "<u2").tobytes(),
        received=np.array([heard], "<f8").tobytes(),
        pinned=bytes(pinned),
        busy=bytes(byte(numa.busy) for numa in of.numa),
    )


def now() -> float:
    """This moment, as the hot store counts."""
    return time.time()


def unheard(of: Cluster, name: str, **known: object) -> Node:
    """A node that the API server has and no exporter ever told of."""
    row = Node.objects.create(cluster=of, name=name, uid=f"uid-{name}", first_seen=timezone.now())
    in_kubernetes(row, **known)
    return row


def in_kubernetes(row: Node, **known: object) -> KubernetesNode:
    """What the API server says of a node."""
    told: dict[str, object] = {
        "created": timezone.now(),
        "labels": {"kubernetes.io/hostname": row.name, "pool": "gold"},
        "capacity": {"cpu": "64", "memory": "263927444Ki"},
        "allocatable": {"cpu": "63500m", "memory": "260000000Ki"},
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
                "since": "2026-11-01T08:00:00+00:00",
            },
            {
                "type": "MemoryPressure",
                "status": "True",
                "reason": "KubeletHasInsufficientMemory",
                "message": "",
                "since": "2026-11-30T08:00:00+00:00",
            },
        ],
        "ready": True,
        "kubelet_version": "v1.37.2",
        "runtime_version": "containerd://2.1.4",
        "kernel_version": "6.6.0",
        "os_image": "openEuler 24.03",
        "architecture": "arm64",
        "address": "10.0.0.9",
        "updated": timezone.now(),
    }
    return KubernetesNode.objects.create(node=row, **{**told, **known})
