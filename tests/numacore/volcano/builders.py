"""Machines and pods for the tests of this folder."""

from collections.abc import Iterable
from fractions import Fraction

from numacore.cpuset import CpuSet
from numacore.volcano.pods import Container, Pod
from numacore.volcano.topology import Cpu, Index, Numatopology

GIB = Fraction(1 << 30)


def machine(
    numa_nodes: int, cores: int, *, threads: int = 1, sockets: int | None = None, unique: bool = True
) -> dict[int, Cpu]:
    """`cores` per NUMA node, numbered node by node; second threads come after all first ones.

    `unique`: core ids as the kubelet makes them (the lowest CPU of the core); else as the kernel's files have them, from 0 in each socket.
    """
    sockets = sockets or numa_nodes
    total = numa_nodes * cores
    cpus = {}
    for number in range(total * threads):
        core = number % total
        numa = core // cores
        socket = numa * sockets // numa_nodes
        first = socket * (total // sockets)
        cpus[number] = Cpu(numa, socket, core if unique else core - first)
    return cpus


def index(cpus: dict[int, Cpu]) -> Index:
    return Index(cpus)


def bits(text: str) -> int:
    return CpuSet.parse(text).bits


def shown(cpus: int | None) -> str | None:
    return None if cpus is None else str(CpuSet.of_bits(cpus))


def container(cpu: str | Fraction | int | None = 2, name: str = "c0") -> Container:
    amounts = {"memory": GIB} if cpu is None else {"cpu": Fraction(cpu), "memory": GIB}
    return Container(name, amounts, amounts)


def pod(*cpus: str | Fraction | int | None, policy: str = "single-numa-node") -> Pod:
    return Pod(tuple(container(cpu, f"c{number}") for number, cpu in enumerate(cpus)), policy)


def node(
    cpus: dict[int, Cpu],
    free: str | Iterable[int] | None = None,
    *,
    policy: str = "single-numa-node",
    reserved: str | None = None,
    cpu_manager: str = "static",
) -> Numatopology:
    allocatable = CpuSet.parse(free) if isinstance(free, str) else CpuSet(cpus if free is None else free)
    return Numatopology(
        cpu_manager, policy, cpus, allocatable, None if reserved is None else Fraction(reserved)
    )
