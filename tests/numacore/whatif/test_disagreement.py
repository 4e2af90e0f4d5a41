"""Why Volcano and the kubelet answer otherwise on the same pod and node."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from numacore.cpuset import CpuSet
from numacore.kubelet import errors
from numacore.kubelet.verdict import Failure
from numacore.kubeletstate import CpuManagerState, MemoryManagerState, MemoryTable, Setting
from numacore.volcano.topology import Cpu
from numacore.whatif.candidate import Candidate
from numacore.whatif.disagreement import Disagreement, disagreement
from numacore.workload import MemoryBlock
from tests.numacore.whatif.nodes import GIB, kubelet, named
from tests.numacore.whatif.test_devices import ALL, NIC
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


def test_devices_that_volcano_does_not_know() -> None:
    """Only NUMA node 1 has three free CPUs, and both devices lie on NUMA node 0."""
    single = Setting("single-numa-node", "file")
    node = named("n1", kubelet(topologyManagerPolicy=single, allocatable_devices=ALL[:1]))
    app = {"name": "app", "resources": {"limits": {"cpu": "3", "memory": "1Gi", NIC: "1"}}}
    answer = one(volcano(policy="single-numa-node", containers=[app]), node)
    assert answer.disagreement == Disagreement("kubelet-refuses", "devices")


def test_devices_of_init_containers_count_as_devices() -> None:
    single = Setting("single-numa-node", "file")
    node = named("n1", kubelet(topologyManagerPolicy=single, allocatable_devices=ALL[:1]))
    init = INIT | {"resources": {"limits": {"cpu": "3", "memory": "1Gi", NIC: "1"}}}
    answer = one(volcano(cpu="3", policy="single-numa-node", initContainers=[init]), node)
    assert answer.disagreement == Disagreement("kubelet-refuses", "devices")


def test_a_pod_that_container_scope_would_refuse_too_is_not_refused_for_its_scope() -> None:
    node = named(
        "n1",
        kubelet(
            reservedSystemCPUs=Setting("4-7", "file"),
            topologyManagerPolicy=Setting("single-numa-node", "file"),
            topologyManagerScope=Setting("pod", "file"),
        ),
    )
    node = msgspec.structs.replace(node, room={})
    assert one(volcano(cpu="3", policy="single-numa-node"), node).disagreement == Disagreement(
        "kubelet-refuses", "reserved-cpus"
    )


def told_of(verdict: dict[str, Any], node: Candidate | None = None) -> Disagreement | None:
    """Where Volcano, which guesses the reserved CPU right, takes a pod of nine CPUs that this node has not, and the kubelet says this of
    it."""
    seen = named("n1").volcano
    assert seen is not None
    fits = one(
        volcano(cpu="3"),
        msgspec.structs.replace(named("n1"), volcano=msgspec.structs.replace(seen, reserved=Fraction(1))),
    )
    assert fits.first is not None
    assert fits.volcano is not None
    refused = msgspec.structs.replace(fits.first, outcome="refused", reason=errors.TOPOLOGY_AFFINITY)
    return disagreement(
        volcano(cpu="9"), node or named("n1"), msgspec.structs.replace(refused, **verdict), fits.volcano
    )


@pytest.mark.parametrize(
    ("verdict", "cause"),
    [
        ({"failure": Failure("web", "memory")}, "memory"),
        ({"failure": Failure("web", "device")}, "devices"),
        ({"reason": errors.SMT_ALIGNMENT, "failure": Failure("web", "cpu")}, "full-pcpus-only"),
        ({"failure": Failure("web", None)}, "merge"),
        ({"failure": None}, "merge"),
        ({"reason": errors.UNEXPECTED, "failure": Failure("web", "cpu")}, "rules"),
    ],
)
def test_where_the_kubelet_failed_says_what_volcano_does_not_know(
    verdict: dict[str, Any], cause: Any
) -> None:
    assert told_of(verdict) == Disagreement("kubelet-refuses", cause)


def test_without_a_topology_manager_no_merge_is_to_blame() -> None:
    none = named("n1", kubelet(topologyManagerPolicy=Setting("none", "file")))
    verdict = {"reason": errors.UNEXPECTED, "failure": Failure("web", "cpu")}
    assert told_of(verdict, none) == Disagreement("kubelet-refuses", "rules")


@pytest.mark.parametrize("outcome", ["panics", "hangs"])
def test_a_kubelet_that_falls_over_is_the_loudest_disagreement(outcome: str) -> None:
    assert told_of({"outcome": outcome, "reason": errors.PANIC}) == Disagreement("kubelet-crashes", "crash")


def test_of_a_node_that_cannot_be_judged_no_disagreement_is_told() -> None:
    unknown = msgspec.structs.replace(named("n1"), kubelet=None)
    assert told_of({}, unknown) is None


def test_a_node_whose_cpu_manager_pins_nobody() -> None:
    none = CpuManagerState("none", CpuSet(), {})
    node = named("n1", kubelet(cpuManagerPolicy=Setting("none", "file"), cpu_state=none))
    assert one(volcano(cpu="1"), node).disagreement == Disagreement("volcano-refuses", "not-static")


def guessing(reserved: int, allocatable: str, cores: dict[int, int] | None = None) -> Candidate:
    """What Volcano is told of a node: an amount of reserved CPUs, what may be given away, and perhaps other core ids."""
    node = named("n1")
    assert node.volcano is not None
    cpus = {
        cpu: msgspec.structs.replace(each, core=(cores or {}).get(cpu, each.core))
        for cpu, each in node.volcano.cpus.items()
    }
    told = msgspec.structs.replace(
        node.volcano, reserved=Fraction(reserved), allocatable=CpuSet.parse(allocatable), cpus=cpus
    )
    return msgspec.structs.replace(node, volcano=told)


@pytest.mark.parametrize(
    ("node", "cause"),
    [
        (guessing(5, "0,3-7"), "reserved-cpus"),
        (guessing(1, "0,3-5"), "rules"),
        (guessing(5, "0,3-7", {4: 0}), "core-ids"),
    ],
)
def test_what_volcano_is_told_and_is_otherwise(node: Candidate, cause: Any) -> None:
    """The kubelet has four CPUs on NUMA node 1: Volcano takes some of them for reserved, was told that they are taken, or mistakes them."""
    assert one(volcano(cpu="4"), node).disagreement == Disagreement("volcano-refuses", cause)
