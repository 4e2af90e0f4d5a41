"""Rules that show in a corner only: what each of them decides where nothing else does."""

from typing import Any

import msgspec
import pytest

from numacore.hints import Hint, Hints, mask_of, nodes_of
from numacore.kubelet import errors, node, options
from numacore.kubelet.device_manager import Device
from numacore.kubelet.errors import StartError, UnsupportedError
from numacore.kubelet.settings import MemoryReservation, Settings, of_configuration
from numacore.kubelet.verdict import Failure
from tests.numacore.kubelet.builders import GIBI, container, machine, pod, running

WHOLE_PODS = {"PodLevelResourceManagers": True}


def test_every_field_of_a_configuration_reaches_its_manager() -> None:
    fields = {
        "topologyManagerPolicy": "restricted",
        "topologyManagerScope": "pod",
        "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "12"},
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        "reservedSystemCPUs": "0-1",
        "kubeReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "0"},
        "memoryManagerPolicy": "Static",
        "reservedMemory": [{"numaNode": 1, "limits": {"memory": "1Gi"}}],
        "featureGates": {"MemoryManager": True},
    }
    assert of_configuration(fields, 36, 8 * GIBI) == Settings(
        minor=36,
        topology_manager_policy="restricted",
        topology_manager_scope="pod",
        topology_manager_policy_options={"max-allowable-numa-nodes": "12"},
        cpu_manager_policy="static",
        cpu_manager_policy_options={"full-pcpus-only": "true"},
        reserved_system_cpus="0-1",
        reservation={"cpu": "2", "memory": "1Gi"},
        memory_manager_policy="Static",
        reserved_memory=(MemoryReservation(1, {"memory": "1Gi"}),),
        feature_gates={"MemoryManager": True},
    )


def test_an_empty_configuration_leaves_every_manager_at_its_default() -> None:
    assert of_configuration({}, 36, 8 * GIBI) == Settings(minor=36, reservation={"memory": "100Mi"})


def test_the_trace_of_an_impossible_alignment_has_no_preferred_hint() -> None:
    wide = pod("p", container(cpu="10"))
    _, verdict = node.admit(running("single-numa-node"), wide)
    (alignment,) = verdict.alignments
    assert (alignment.best, alignment.accepted) == (Hint(None, False), False)


def test_equal_shares_with_a_rest_that_fits_exactly_touch_no_further_numa_node() -> None:
    cpu = running(
        on=machine(3, cores=2), cpu_manager_policy_options={options.DISTRIBUTE_ACROSS_NUMA: "true"}
    ).cpu
    assert cpu is not None
    free = mask_of([1, 2, 3, 4, 5, 8, 9])
    assert nodes_of(cpu.take_by_topology(free, 5)) == [1, 2, 3, 4, 5]


def test_a_container_that_shares_stands_before_one_that_uses_up_the_pods_memory() -> None:
    now = running("best-effort", "pod", feature_gates=WHOLE_PODS)
    shared, own = container("a", "0", "0"), container("b", "2", "1Gi")
    _, refused = node.admit(now, pod("p", shared, own, whole={"cpu": "4", "memory": "1Gi"}))
    assert refused.reason == errors.EMPTY_POD_SHARED_POOL
    assert "sum of exclusive container memory requests equals pod budget" in refused.message
    _, fine = node.admit(now, pod("q", shared, own, whole={"cpu": "4", "memory": "2Gi"}))
    assert fine.admitted


def test_a_running_pod_offers_what_it_has_when_it_is_admitted_again() -> None:
    asked = pod("p", container(cpu="9", memory="2Gi"))
    now, _ = node.admit(running("best-effort"), asked)
    _, again = node.admit(node.restart(now), asked)
    both = mask_of([0, 1])
    assert {offer.resource: offer.hints for offer in again.alignments[0].offers} == {
        "cpu": Hints([both], [both]),
        "memory": Hints([both], [both]),
    }


def test_no_numa_node_is_asked_for_more_than_it_has_where_sockets_stay_whole() -> None:
    both = {options.DISTRIBUTE_ACROSS_NUMA: "true", options.ALIGN_BY_SOCKET: "true"}
    cpu = running(
        on=machine(2, sockets=1),
        cpu_manager_policy_options=both,
        feature_gates={"CPUManagerPolicyAlphaOptions": True},
    ).cpu
    assert cpu is not None
    assert nodes_of(cpu.take_by_topology(mask_of([1, 8, 9, 10, 11]), 5)) == [1, 8, 9, 10, 11]


def test_a_kubelet_without_pod_level_memory_and_cpus_writes_no_entries_for_them() -> None:
    now, _ = node.admit(running(minor=36, feature_gates=WHOLE_PODS), pod("p", container(cpu="2")))
    files = node.state_files(now)
    assert '"entries"' in (files.cpu or "")
    assert "podEntries" not in (files.cpu or "") + (files.memory or "")


def test_which_of_two_wrong_sums_of_reserved_memory_is_named_is_open() -> None:
    limits = {"memory": "2Gi", "hugepages-2Mi": "4Mi"}
    with pytest.raises(StartError) as refused:
        running(reserved_memory=(MemoryReservation(0, limits),))
    assert [str(refused.value), *refused.value.alternatives] == [
        'the total amount "4Mi" of type "hugepages-2Mi" is not equal to the value "0" determined by Node Allocatable feature',
        'the total amount "2Gi" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable feature',
    ]


def test_a_pod_that_asks_as_a_whole_needs_whole_cores_too() -> None:
    now = running(
        "best-effort",
        "pod",
        feature_gates=WHOLE_PODS,
        cpu_manager_policy_options={options.FULL_PCPUS_ONLY: "true"},
    )
    odd, even = (
        pod(number, container("c", "0", "0"), whole={"cpu": number, "memory": "1Gi"}) for number in "34"
    )
    assert node.admit(now, odd)[1].reason == errors.SMT_ALIGNMENT
    assert node.admit(now, even)[1].admitted


@pytest.mark.parametrize(
    ("sidecar", "words"),
    [
        (("4", "64Mi"), "pod rejected, pod has shared init containers but no cpus available for them"),
        (("1", "1Gi"), "pod rejected, pod has shared init containers but no memory available for them"),
    ],
)
def test_an_init_container_that_shares_needs_something_left_to_share(
    sidecar: tuple[str, str], words: str
) -> None:
    now = running("best-effort", "pod", feature_gates=WHOLE_PODS)
    init = (container("s", *sidecar, sidecar=True), container("i", "0", "0"))
    asked = pod("p", container("c", "0", "0"), init=init, whole={"cpu": "4", "memory": "1Gi"})
    _, verdict = node.admit(now, asked)
    assert (verdict.reason, verdict.message) == (errors.EMPTY_POD_SHARED_POOL, words)


def test_a_request_that_changed_in_one_kind_of_memory_leaves_no_preference() -> None:
    before = pod("p", container(memory="1Gi", hugepages_2Mi="2Mi"))
    after = pod("p", container(memory="1Gi", hugepages_2Mi="4Mi"))
    now, _ = node.admit(running("restricted"), before)
    now = node.restart(now)
    offered = [
        [offer.resource for offer in node.admit(now, each)[1].alignments[0].offers]
        for each in (before, after)
    ]
    assert offered == [["cpu", "hugepages-2Mi", "memory"], ["cpu"]]


def test_the_file_of_a_memory_manager_that_gave_nothing_yet() -> None:
    text = node.state_files(running(on=machine(1), minor=34)).memory
    content, _, _ = (text or "").partition(',"checksum"')
    assert content == (
        '{"policyName":"Static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"hugepages-2Mi":{"total":134217728,'
        '"systemReserved":0,"allocatable":134217728,"reserved":0,"free":134217728},"memory":{"total":8589934592,'
        '"systemReserved":1073741824,"allocatable":7381975040,"reserved":0,"free":7381975040}},"cells":[0]}}'
    )


@pytest.mark.parametrize(("minor", "on", "kept"), [(37, True, True), (37, False, False), (36, True, False)])
def test_cpus_at_admission_are_kept_where_they_may_be_resized(minor: int, on: bool, kept: bool) -> None:
    gates = {"InPlacePodVerticalScalingExclusiveCPUs": on}
    now, _ = node.admit(running(minor=minor, feature_gates=gates), pod("p", container(cpu="2")))
    text = node.state_files(now).cpu or ""
    assert ('\\"baselines\\":{\\"p\\":{\\"c\\":{\\"baseline\\":\\"2-3\\"}}}' in text) is kept


GPU = "example.com/gpu"
ONE_EACH: dict[str, tuple[Device, ...]] = {GPU: (Device("b", (1,)), Device("a", (0,)))}


def test_where_admission_failed_is_told_with_the_manager_that_failed() -> None:
    asked = pod("p", container("web", cpu="99", memory="99Gi", gpu="9"))
    all_lack = node.report_devices(running(), ONE_EACH)
    enough: dict[str, tuple[Device, ...]] = {GPU: tuple(Device(str(at), (0,)) for at in range(9))}
    cpus_lack = node.report_devices(running(), enough)
    memory_lacks = node.report_devices(running(cpu_manager_policy="none"), enough)
    at = [node.admit(each, asked)[1].failure for each in (all_lack, cpus_lack, memory_lacks)]
    assert at == [Failure("web", "device"), Failure("web", "cpu"), Failure("web", "memory")]


def test_where_admission_of_a_pod_as_a_whole_failed_no_container_is_named() -> None:
    sidecar, last = container("s", "4", "1Gi", sidecar=True), container("c", "0", "0")
    failures: list[tuple[dict[str, str], Failure]] = [
        ({"cpu": "4", "memory": "8Gi"}, Failure(None, "cpu")),
        ({"cpu": "8", "memory": "1Gi"}, Failure(None, "memory")),
    ]
    for whole, failure in failures:
        asked = pod("p", last, init=(sidecar,), whole=whole)
        now = running("best-effort", "pod", feature_gates=WHOLE_PODS)
        assert node.admit(now, asked)[1].failure == failure


def test_devices_of_a_container_stand_by_id_with_their_numa_nodes() -> None:
    asked = pod("p", container(gpu="2"))
    _, verdict = node.admit(node.report_devices(running("best-effort"), ONE_EACH), asked)
    held = verdict.placements["c"].devices[GPU]
    assert (held.ids, held.numa) == (("a", "b"), ((0,), (1,)))


def test_offers_of_devices_stand_by_name() -> None:
    nic: dict[str, tuple[Device, ...]] = {"example.com/nic": (Device("x", (1,)),)}
    now = node.report_devices(running("best-effort"), ONE_EACH | nic)
    for scope in ("container", "pod"):
        assert now.topology is not None
        changed = msgspec.structs.replace(now.topology, scope=scope)
        _, verdict = node.admit(
            msgspec.structs.replace(now, topology=changed), pod("p", container(nic="1", gpu="1"))
        )
        assert [offer.resource for offer in verdict.alignments[0].offers] == [
            GPU,
            "example.com/nic",
            "cpu",
            "memory",
        ]


def test_what_devices_offer_is_told_by_numa_node() -> None:
    devices: dict[str, tuple[Device, ...]] = {
        GPU: (Device("a", (0,)), Device("b", (0,)), Device("c", (1,)), Device("d", (0, 1), healthy=False))
    }
    now = node.report_devices(running("best-effort"), devices)
    now, _ = node.admit(now, pod("p", container(gpu="1")))
    _, verdict = node.admit(now, pod("q", container(gpu="3")))
    offered = verdict.alignments[0].offers[0]
    assert (offered.resource, offered.requested) == (GPU, 3)
    assert (offered.free, offered.total) == ({0: 1, 1: 1}, {0: 3, 1: 2})


def test_a_device_that_an_init_container_leaves_counts_as_free_for_the_next() -> None:
    now = node.report_devices(running("best-effort"), ONE_EACH)
    asked = pod("p", container(gpu="1"), init=(container("i", gpu="2"),))
    _, verdict = node.admit(now, asked)
    assert [each.offers[0].free for each in verdict.alignments] == [{0: 1, 1: 1}, {0: 1, 1: 1}]


def test_of_devices_far_away_and_those_that_are_nowhere_the_far_ones_come_first() -> None:
    """NUMA node 1 is full, so that the CPUs say NUMA node 0, where no device lies."""
    now = running("best-effort", minor=35)
    now = node.report_devices(now, {GPU: (Device("a"), Device("b", (1,)))})
    now, _ = node.admit(now, pod("q", container(cpu="8")))
    _, verdict = node.admit(now, pod("p", container(cpu="2", gpu="1")))
    assert verdict.placements["c"].devices[GPU].ids == ("b",)


MANY = 17
"""More NUMA nodes than anybody can enumerate."""


def test_more_numa_nodes_than_can_be_enumerated_are_said_to_be_unjudged() -> None:
    options_ = {options.MAX_ALLOWABLE_NODES: str(MANY)}
    many = machine(MANY, cores=1, threads=1)
    tried: tuple[dict[str, Any], ...] = (
        {
            "policy": "best-effort",
            "topology_manager_policy_options": options_,
            "memory_manager_policy": "None",
        },
        {"policy": "none"},
    )
    for changes in tried:
        with pytest.raises(UnsupportedError, match=r"17 NUMA nodes: .* at most 16 can be judged"):
            running(on=many, **changes)
    alone = running("none", on=many, memory_manager_policy="None", reserved_memory=())
    assert node.admit(alone, pod("p", container(cpu="2")))[1].admitted
