"""Small machines, settings and pods, said in one line."""

from typing import Any

from numacore.kubelet import node
from numacore.kubelet.machine import Core, Machine, Node
from numacore.kubelet.pod import Container, Pod, PodResources
from numacore.kubelet.settings import MemoryReservation, Settings

GIBI = 1 << 30


def machine(
    nodes: int = 2,
    *,
    cores: int = 4,
    threads: int = 2,
    sockets: int | None = None,
    memory: int = 8 * GIBI,
    pages: int = 64,
    ids: tuple[int, ...] = (),
) -> Machine:
    """NUMA nodes of equal size with CPUs numbered core by core; `pages` of 2 MiB on each."""
    sockets = sockets or nodes
    return Machine(
        tuple(
            Node(
                id=ids[at] if ids else at,
                memory=memory,
                hugepages={2048: pages},
                distances=tuple(10 if other == at else 20 for other in range(nodes)),
                cores=tuple(
                    Core(
                        id=at * cores + core,
                        socket=at * sockets // nodes,
                        threads=tuple((at * cores + core) * threads + thread for thread in range(threads)),
                    )
                    for core in range(cores)
                ),
            )
            for at in range(nodes)
        )
    )


def settings(policy: str = "none", scope: str = "container", **changes: Any) -> Settings:
    """CPU manager static with one CPU reserved, memory manager Static with 1 GiB on NUMA node 0."""
    given: dict[str, Any] = {
        "topology_manager_policy": policy,
        "topology_manager_scope": scope,
        "cpu_manager_policy": "static",
        "reservation": {"cpu": "1", "memory": "1Gi"},
        "memory_manager_policy": "Static",
        "reserved_memory": (MemoryReservation(0, {"memory": "1Gi"}),),
    }
    return Settings(**given | changes)


def container(
    name: str = "c", cpu: str = "1", memory: str = "64Mi", *, sidecar: bool = False, **more: str
) -> Container:
    """A container with equal requests and limits; `hugepages_2Mi="64Mi"` asks for huge pages, `gpu="1"` for devices."""
    amounts = {"cpu": cpu, "memory": memory} | {
        "hugepages-2Mi" if name == "hugepages_2Mi" else f"example.com/{name}": value
        for name, value in more.items()
    }
    return Container(name, amounts, amounts, sidecar)


def pod(
    uid: str, *containers: Container, init: tuple[Container, ...] = (), whole: dict[str, str] | None = None
) -> Pod:
    resources = PodResources(whole, whole) if whole else None
    return Pod(uid, containers or (container(),), init, resources)


def running(
    policy: str = "none", scope: str = "container", on: Machine | None = None, **changes: Any
) -> node.Node:
    return node.start(settings(policy, scope, **changes), on or machine())
