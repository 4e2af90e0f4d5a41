"""Why Volcano and the kubelet answer otherwise on the same pod and node."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from numacore.cpuset import CpuSet
from numacore.kubeletstate import MemoryManagerState, MemoryTable, Setting
from numacore.volcano.topology import Cpu
from numacore.whatif.candidate import Candidate
from numacore.whatif.disagreement import Disagreement
from numacore.workload import MemoryBlock
from tests.numacore.whatif.nodes import GIB, kubelet, named
from tests.numacore.whatif.test_judging import one, volcano

INIT = {"name": "setup", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}


def half_full_memory() -> Candidate:
    """NUMA node 1 has free CPUs and no memory left; NUMA node 0 the reverse."""
    small = 100 << 20
    used = {"memory": MemoryTable(16 * GIB, 0, 16 * GIB, 16 * GIB, 0)}
    free = {"memory": MemoryTable(16 * GIB, small, 16 * GIB - small, 0, 16 * GIB - small)}
    state = MemoryManagerState(
        "Static",
        {0: free, 1: used},
        {0: (0,), 1: (1,)},
        {"u1": {"web": (MemoryBlock("memory", 16 * GIB, (1,)),)}},
    )
    reserved = Setting([{"numaNode": 0, "limits": {"memory": "100Mi"}}], "file")
    policy = Setting("Static", "file")
    found = named("n1", kubelet(memory_state=state, memoryManagerPolicy=policy, reservedMemory=reserved))
    return msgspec.structs.replace(found, room={})


def test_memory_that_volcano_does_not_know() -> None:
    answer = one(volcano(cpu="3", memory="4Gi"), half_full_memory())
    assert answer.disagreement == Disagreement("kubelet-refuses", "memory")


def test_scope_pod_that_volcano_does_not_know() -> None:
    scope = Setting("pod", "file")
    single = Setting("single-numa-node", "file")
    node = named("n1", kubelet(topologyManagerScope=scope, topologyManagerPolicy=single))
    second = {"name": "log", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    first = {"name": "app", "resources": {"limits": {"cpu": "4", "memory": "1Gi"}}}
    asked = volcano(policy="single-numa-node", containers=[first, second])
    assert one(asked, node).disagreement == Disagreement("kubelet-refuses", "scope")


def test_init_containers_that_volcano_does_not_know() -> None:
    single = named("n1", kubelet(topologyManagerPolicy=Setting("single-numa-node", "file")))
    init = INIT | {"resources": {"limits": {"cpu": "5", "memory": "1Gi"}}}
    asked = volcano(cpu="1", policy="single-numa-node", initContainers=[init])
    assert one(asked, single).disagreement == Disagreement("kubelet-refuses", "init-containers")


def test_reserved_cpus_that_volcano_does_not_know() -> None:
    """The kubelet keeps CPUs 4-7 for the system; the exporter tells of no reservation at all."""
    node = named(
        "n1",
        kubelet(
            reservedSystemCPUs=Setting("4-7", "file"),
            topologyManagerPolicy=Setting("single-numa-node", "file"),
        ),
    )
    node = msgspec.structs.replace(node, room={})
    assert one(volcano(cpu="3", policy="single-numa-node"), node).disagreement == Disagreement(
        "kubelet-refuses", "reserved-cpus"
    )


@pytest.mark.parametrize(
    ("policy", "cause"), [("best-effort", "policy-names"), ("Restricted", "policy-names")]
)
def test_policies_that_volcano_compares_as_texts(policy: str, cause: Any) -> None:
    answer = one(volcano(policy=policy))
    assert answer.disagreement == Disagreement("volcano-refuses", cause)


def test_a_node_without_numatopology() -> None:
    node = msgspec.structs.replace(named("n1"), volcano=None)
    assert one(volcano(), node).disagreement == Disagreement("volcano-refuses", "no-numatopology")


def test_core_ids_that_repeat_in_every_socket() -> None:
    """The report of a reservation of one CPU takes the same core id in both sockets away."""
    node = named("n1")
    assert node.volcano is not None
    cpus = {cpu: Cpu(cpu // 4, cpu // 4, cpu % 4 // 2) for cpu in range(8)}
    told = msgspec.structs.replace(
        node.volcano, cpus=cpus, reserved=Fraction(2), allocatable=CpuSet.parse("0,3-7")
    )
    answer = one(volcano(cpu="4"), msgspec.structs.replace(node, volcano=told))
    assert answer.disagreement == Disagreement("volcano-refuses", "core-ids")


def test_where_both_agree_nothing_is_said() -> None:
    assert one(volcano(cpu="4")).disagreement is None
