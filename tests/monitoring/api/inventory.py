"""A small inventory for the tests of the API: a cluster with a node that answers and one that never did."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import zstandard

from monitoring import hot
from monitoring.hot import Cells, HotNode, Reading
from monitoring.models import (
    Cluster,
    Container,
    Endpoint,
    KubernetesNode,
    Node,
    NodeEvent,
    Placement,
    Topology,
)
from numacore import topology as machine
from numacore import wire
from numacore.cpuset import CpuSet
from numacore.kubeletstate import CpuManagerState, Kubelet, Setting
from numacore.topology import Attributes, Device
from numacore.usage import ContainerUse, CpuTimes, MemoryUse, Usage
from numacore.wire import Containers, Exporter, Machine, Packed, Problem
from numacore.workload import Container as Placed
from tests.numacore import machines

GIB = machines.GIB
SECRET = "s3cret-bearer-token"

WEB = Placed(
    id="containerd://web",
    pod_uid="11111111-1111-1111-1111-111111111111",
    namespace="shop",
    pod="web-0",
    name="web",
    qos="Guaranteed",
    cpus=CpuSet.parse("2-3"),
    exclusive=CpuSet.parse("2-3"),
    cpu_limit=2.0,
    memory_limit=4 * GIB,
)
BATCH = Placed(
    id="containerd://batch",
    pod_uid="22222222-2222-2222-2222-222222222222",
    namespace="jobs",
    pod="batch-1",
    name="batch",
    qos="Burstable",
    cpus=CpuSet.parse("0-1,4-7"),
    exclusive=CpuSet(),
)
CONTAINERS = Packed(Containers((WEB, BATCH)))
MACHINE = Packed(
    Machine(
        machines.TWO,
        Attributes(
            memory={0: 16 * GIB, 1: 16 * GIB},
            devices=(Device("0000:81:00.0", "network", 1, ("eth1",)),),
            hostname="worker-1",
            arch="x86_64",
        ),
    )
)
KUBELET = Packed(
    Kubelet(
        present=True,
        version="1.34.1",
        settings={
            "cpuManagerPolicy": Setting("none", "file", "/var/lib/kubelet/config.yaml"),
            "topologyManagerPolicy": Setting(
                "best-effort", "drop-in", "/etc/kubernetes/kubelet.d/10-numa.conf"
            ),
        },
        allocatable_cpus=CpuSet.parse("1-7"),
        cpu_state=CpuManagerState(
            "static", CpuSet.parse("0-1,4-7"), {WEB.pod_uid or "": {"web": CpuSet.parse("2-3")}}
        ),
    )
)


def usage(busy: int, cpu_time: int) -> Packed[Usage]:
    return Packed(
        Usage(
            containers_of=CONTAINERS.hash,
            cpu=CpuTimes(CpuSet.parse("0-7"), (busy,) * 8, (busy * 3,) * 8),
            memory={
                0: MemoryUse(total=16 * GIB, used=6 * GIB, free=10 * GIB),
                1: MemoryUse(total=16 * GIB, used=2 * GIB, free=14 * GIB),
            },
            containers=ContainerUse(
                cpu_time=(cpu_time, None),
                memory=(4 * GIB, GIB),
                pages={0: (3 * GIB, None), 1: (GIB, None)},
            ),
        )
    )


def topology_row(of: machine.Topology) -> Topology:
    return Topology.objects.create(
        hash=of.hash,
        document=msgspec.json.encode(of, enc_hook=machine.enc_hook),
        cpus=len(of.cpus),
        numa_nodes=len(of.nodes),
        sockets=len(of.sockets),
    )


def cluster(slug: str = "lab", **fields: object) -> Cluster:
    return Cluster.objects.create(slug=slug, **{"name": slug.title(), "kind": "kubernetes", **fields})


def node(of: Cluster, name: str, topology: Topology | None, now: datetime, **fields: object) -> Node:
    values = {"slot": Node.objects.filter(cluster=of).count() * 2, "first_seen": now - timedelta(days=1)}
    return Node.objects.create(
        cluster=of, name=name, topology=topology, **{"last_seen": now, **values, **fields}
    )


def hear(node: Node, endpoint: Endpoint, now: datetime) -> None:
    """The newest answer of a node's exporter, one second after the one before."""
    sections: dict[str, Packed[Any]] = {
        wire.MACHINE: MACHINE,
        wire.KUBELET: KUBELET,
        wire.CONTAINERS: CONTAINERS,
        wire.USAGE: usage(300, 3_000_000),
    }
    at = now.timestamp()
    hot.store().put(
        [
            HotNode(
                node=node.pk,
                endpoint=endpoint.pk,
                exporter=Exporter(node.name, version="0.1.0"),
                received=at,
                taken=at,
                hashes={name: each.hash for name, each in sections.items()},
                confirmed=dict.fromkeys(sections, at),
                problems=(
                    Problem(
                        "memory-state",
                        "/var/lib/kubelet/memory_manager_state",
                        "it is damaged: it is empty",
                        4,
                    ),
                ),
                seconds=1.0,
                sections={name: each.data for name, each in sections.items()},
                before=Reading(usage(200, 2_000_000).data),
            )
        ]
    )
    hot.store().put_cells(
        node.cluster_id,
        0,
        Cells(
            taken=at,
            nodes=np.array([node.pk], "<i4").tobytes(),
            slots=np.array([node.slot], "<u4").tobytes(),
            widths=np.array([2], "<u2").tobytes(),
            received=np.array([at], "<f8").tobytes(),
            pinned=bytes([100, 0]),
            busy=bytes([50, 255]),
        ),
    )


def container(of: Node, number: int, now: datetime, **fields: object) -> Container:
    known = {"container_id": f"containerd://{number:04}", "kubernetes": True, "updated": now}
    return Container.objects.create(node=of, **{**known, **fields})


class Lab:
    """The cluster `lab`: `worker-1` answers, `worker-2` was stored long ago and its endpoint fails."""

    def __init__(self, now: datetime) -> None:
        self.cluster = cluster("lab", cells=5)
        two, hbm = topology_row(machines.TWO), topology_row(machines.HBM)
        self.node = node(
            self.cluster,
            "worker-1",
            two,
            now,
            uid="uid-1",
            numa_nodes=2,
            cpus=8,
            busy=0.25,
            pinned=2,
            pinnable=7,
            cpu_allocation=0.5,
            topology_policy="best-effort",
            cpu_policy="static",
            containers=2,
            crossing=1,
            crossing_unknown=0,
            worst_cost=1.275,
            problems=1,
            contradictions=1,
        )
        KubernetesNode.objects.create(
            node=self.node,
            labels={"pool": "gold"},
            allocatable={"cpu": "7"},
            conditions=[{"type": "Ready", "status": "True", "reason": "", "message": "", "since": None}],
            ready=True,
            kubelet_version="1.34.1",
            updated=now,
        )
        self.silent = node(self.cluster, "worker-2", hbm, now - timedelta(hours=1), uid="uid-2")
        self.endpoint = Endpoint.objects.create(
            cluster=self.cluster,
            url="http://10.0.0.1:9105",
            node=self.node,
            token=SECRET,
            state="ok",
            last_ok=now,
            last_try=now,
        )
        self.failing = Endpoint.objects.create(
            cluster=self.cluster,
            url="http://10.0.0.2:9105",
            node=self.silent,
            state="failing",
            failures=7,
            failures_total=9,
            error="connection refused",
        )
        self.web = container(
            self.node,
            1,
            now,
            container_id=WEB.id,
            namespace="shop",
            pod="web-0",
            name="web",
            qos="Guaranteed",
            kind="exclusive",
            cpus="2-3",
            cpu_count=2,
            cpu_nodes="0",
            memory_nodes={"0": 3 * GIB, "1": GIB},
            locality=0.75,
            cost=1.275,
            remote_pages=0.25,
            cross_cpu=False,
            cross_memory=True,
            cross_device=False,
            crossing=True,
            pinning="pinned",
        )
        self.batch = container(
            self.node,
            2,
            now,
            container_id=BATCH.id,
            namespace="jobs",
            pod="batch-1",
            name="batch",
            qos="Burstable",
            kind="floating",
            cpus="0-1,4-7",
            crossing=False,
            pinning="qos",
        )
        NodeEvent.objects.create(node=self.node, at=now - timedelta(minutes=5), code="first-seen")
        NodeEvent.objects.create(
            node=self.node, at=now - timedelta(minutes=1), code="rebooted", values={"boot_id": "b"}
        )
        Placement.objects.create(
            node=self.silent,
            since=now - timedelta(hours=2),
            hash=CONTAINERS.hash,
            data=zstandard.ZstdCompressor().compress(CONTAINERS.data),
        )
        hear(self.node, self.endpoint, now)
