"""Machines written down by hand for the tests of the core."""

from numacore.cpuset import CpuSet, union
from numacore.topology import Attributes, Cache, Cpu, NumaNode, Topology

GIB = 2**30


def topology(
    nodes: dict[int, str],
    distances: list[list[int]] | None = None,
    *,
    offline: str = "",
    threads: int = 1,
    node_sockets: dict[int, int] | None = None,
    caches: tuple[Cache, ...] = (),
) -> Topology:
    """A machine from its NUMA nodes' CPU lists.

    A core has `threads` neighbouring ids. A node's socket is the node's id unless `node_sockets` says otherwise.
    """
    sets = {node: CpuSet.parse(text) for node, text in nodes.items()}
    home = {cpu: node for node, cpus in sets.items() for cpu in cpus}
    gone = CpuSet.parse(offline)
    cpus = tuple(
        Cpu(
            cpu,
            socket=None if cpu in gone else (node_sockets or {}).get(home[cpu], home[cpu]),
            core=None if cpu in gone else cpu // threads,
            numa=home.get(cpu),
            online=cpu not in gone,
        )
        for cpu in union([*sets.values(), gone])
    )
    rows = distances or [[10 if a == b else 20 for b in nodes] for a in nodes]
    return Topology(
        cpus=cpus,
        nodes=tuple(
            NumaNode(node, owned - gone, tuple(row))
            for (node, owned), row in zip(sets.items(), rows, strict=True)
        ),
        caches=caches,
    )


TWO = topology({0: "0-3", 1: "4-7"}, [[10, 21], [21, 10]])
"""Two sockets with four CPUs each."""
HBM = topology({0: "0-3", 1: "4-7", 2: ""}, [[10, 21, 14], [21, 10, 24], [14, 24, 10]])
"""Two sockets and a NUMA node of memory alone."""
CUT_OFF = topology({0: "0-1", 1: "2-3"}, [[10, 255], [255, 10]])
"""Two NUMA nodes that cannot reach each other."""
LOPSIDED = topology({0: "0-1", 1: "2-3"}, [[10, 30], [20, 10]])
"""Distances that are not the same both ways."""


def attributes(topology: Topology, each: int = 16 * GIB) -> Attributes:
    return Attributes(memory=dict.fromkeys(topology.numa_ids, each))
