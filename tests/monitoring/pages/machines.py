"""Facts of invented machines, for pages: regular ones of any size, with containers of every kind on them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from numacore.cpuset import CpuSet, union
from numacore.facts import Facts
from numacore.kubeletstate import CpuManagerState, Kubelet, MemoryManagerState, Setting
from numacore.topology import Attributes, Cache, Cpu, Device, HugePages, NumaNode, Topology
from numacore.usage import ContainerUse, CpuTimes, MemoryUse, Rates, Usage
from numacore.workload import Container, DeviceClaim

GIB = 1024**3


def topology(
    *,
    sockets: int,
    numa: int,
    cores: int,
    threads: int,
    l3: int = 1,
    distances: Mapping[str, int] | None = None,
) -> Topology:
    """`numa` NUMA nodes a socket, `cores` cores and `l3` last level caches a NUMA node; sibling threads lie apart."""
    far = {"socket": 12, "other": 20, **(distances or {})}
    total, step = sockets * numa, sockets * numa * cores
    cpus = [
        Cpu(
            id=thread * step + node * cores + core,
            socket=node // numa,
            die=0,
            core=node % numa * cores + core,
            numa=node,
        )
        for thread in range(threads)
        for node in range(total)
        for core in range(cores)
    ]
    nodes = tuple(
        NumaNode(
            id=node,
            cpus=CpuSet(cpu.id for cpu in cpus if cpu.numa == node),
            distances=tuple(
                10 if other == node else far["socket" if other // numa == node // numa else "other"]
                for other in range(total)
            ),
        )
        for node in range(total)
    )
    caches = tuple(
        Cache(
            level=3,
            kind="Unified",
            size=32 * 1024**2,
            cpus=CpuSet(
                cpu.id
                for cpu in cpus
                if cpu.numa == node and cpu.core is not None and cpu.core % cores * l3 // cores == part
            ),
        )
        for node in range(total)
        for part in range(l3)
    )
    return Topology(cpus=tuple(cpus), nodes=nodes, caches=caches)


def pod(number: int, **known: object) -> Container:
    """A container of a pod with names that nobody else has."""
    values: dict[str, object] = {
        "id": f"{number:064x}",
        "pod_uid": f"00000000-0000-4000-8000-{number:012d}",
        "namespace": "shop",
        "pod": f"app-{number}",
        "name": "main",
        "runtime": "containerd",
        "exclusive": CpuSet(),
        **known,
    }
    return Container(**values)  # type: ignore[arg-type]


def kubelet(allocatable: CpuSet, policy: str = "single-numa-node", **known: object) -> Kubelet:
    """A kubelet with the static CPU manager."""
    settings = {
        "cpuManagerPolicy": Setting("static", "file", "/var/lib/kubelet/config.yaml"),
        "topologyManagerPolicy": Setting(policy, "drop-in", "/etc/kubernetes/kubelet.conf.d/10-numa.conf"),
        "topologyManagerScope": Setting("pod", "drop-in", "/etc/kubernetes/kubelet.conf.d/10-numa.conf"),
        "reservedSystemCPUs": Setting("0-1", "flag", "--reserved-cpus"),
    }
    values: dict[str, object] = {
        "present": True,
        "version": "v1.34.2",
        "settings": settings,
        "config_path": "/var/lib/kubelet/config.yaml",
        "allocatable_cpus": allocatable,
        "cpu_state": CpuManagerState("static", allocatable, {}),
        "memory_state": MemoryManagerState("None", {}, {}, {}),
        **known,
    }
    return Kubelet(**values)  # type: ignore[arg-type]


def busy(of: Topology, phase: float = 0.0) -> dict[int, float]:
    """A busy share for each online CPU, the same for the same phase."""
    return {cpu: round(max(0.0, math.sin(cpu * 1.7 + phase)) ** 3 * 0.97, 3) for cpu in of.online}


TICKS = 1000
"""Between two readings."""


def cpu_times(of: Topology, shares: Mapping[int, float]) -> CpuTimes:
    """Counters that have grown by these shares of `TICKS` since they were 0."""
    grown = [round(shares.get(cpu, 0.0) * TICKS) for cpu in of.online]
    return CpuTimes(of.online, tuple(grown), tuple(TICKS - each for each in grown))


def memory(of: Topology, size: int = 128 * GIB) -> dict[int, MemoryUse]:
    """Memory of each NUMA node, more in use on the first than on the last, huge pages on NUMA node 0."""
    found = {}
    for place, node in enumerate(of.numa_ids):
        free = int(size * (place + 1) / (len(of.numa_ids) + 2))
        huge = (HugePages(2 * 1024**2, 4096, 1024),) if place == 0 else ()
        found[node] = MemoryUse(
            size, free, size - free, int((size - free) * 0.3), int((size - free) * 0.5), huge
        )
    return found


def server(of: Topology, *, phase: float = 0.0) -> Facts:
    """A Kubernetes node with one pinned container that keeps memory and a device elsewhere, and four others."""
    ids = of.numa_ids
    near = [cpu for cpu in of.nodes[0].cpus if cpu > 1]
    owned = CpuSet(near[: max(1, len(near) // 2)])
    free = of.online - owned - CpuSet([0, 1])
    spread = union(
        CpuSet(list(node.cpus & free)[:2]) for node in (of.nodes[len(of.nodes) // 2], of.nodes[-1])
    )
    pool = of.online - owned - spread - CpuSet([0, 1])
    everything = pool | CpuSet([0, 1])
    containers = (
        pod(
            1,
            namespace="orders-db",
            pod="postgres-0",
            name="postgres",
            qos="Guaranteed",
            cpus=owned,
            exclusive=owned,
            cpu_limit=float(len(owned)),
            memory_limit=64 * GIB,
            devices=(DeviceClaim("vendor.example/nic", ("0000:81:00.0",), (ids[-1],)),),
        ),
        pod(
            2,
            namespace="ml-serve",
            pod="ranker-5f7c",
            name="worker",
            qos="Guaranteed",
            cpus=spread,
            exclusive=spread,
            cpu_limit=float(len(spread)),
            memory_limit=32 * GIB,
        ),
        pod(3, pod="checkout-77d9", name="checkout", qos="Burstable", cpus=everything, cpu_request=0.5),
        pod(4, pod="cart-0", name="cart", qos="Guaranteed", cpus=everything, cpu_limit=1.5, memory_limit=GIB),
        pod(5, pod="batch-1", name="etl", qos="BestEffort", cpus=everything),
    )
    weights = [[0.62, 0.0], [0.5, 0.5], [0.3, 0.7], [0.5, 0.5], [0.9, 0.1]]
    sizes = [48 * GIB, 20 * GIB, 3 * GIB, 900 * 1024**2, 12 * GIB]
    pages: dict[int, tuple[int | None, ...]] = {
        node: tuple(
            int(size * (weight[0] if place == 0 else (1 - weight[0]) / max(1, len(ids) - 1)))
            for size, weight in zip(sizes, weights, strict=True)
        )
        for place, node in enumerate(ids)
    }
    usage = Usage(
        containers_of="",
        cpu=cpu_times(of, busy(of, phase)),
        memory=memory(of),
        containers=ContainerUse(cpu_time=(0,) * 5, memory=tuple(sizes), pages=pages),
    )
    uses = {each.id: share for each, share in zip(containers, (3.2, 2.9, 0.4, 1.1, 0.7), strict=True)}
    return Facts(
        topology=of,
        attributes=Attributes(
            memory=dict.fromkeys(ids, 128 * GIB),
            devices=(
                Device("0000:81:00.0", "network", ids[-1], ("eth2",), "15b3:1017", "mlx5_core"),
                Device("0000:01:00.0", "storage", ids[0], ("nvme0n1",), "144d:a808", "nvme"),
                Device("0000:c1:00.0", "accelerator", ids[-1], ("renderD128",), "10de:20b2", "nvidia"),
            ),
            hostname="node-07",
            arch="aarch64",
            kernel="6.6.0",
            os="openEuler 24.03",
            model="Kunpeng 920",
        ),
        kubelet=kubelet(of.online - CpuSet([0, 1])),
        containers=containers,
        usage=usage,
        rates=Rates(2.0, busy(of, phase), uses, {}),
    )


S = TypeVar("S", bound=msgspec.Struct)


def replaced(of: S, **changes: object) -> S:
    """The same with other fields."""
    return msgspec.structs.replace(of, **changes)
