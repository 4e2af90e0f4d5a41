"""Single rules of the kubelet, each in the smallest case that shows it."""

from typing import Any

import pytest

from numacore.cpuset import CpuSet
from numacore.hints import Hint, mask_of
from numacore.kubelet import errors, node, options, resource
from numacore.kubelet.device_manager import Device
from numacore.kubelet.errors import PanicError, StartError
from numacore.kubelet.machine import Core, Machine, Node
from numacore.kubelet.pod import Container, demand
from numacore.kubelet.settings import (
    MemoryReservation,
    Settings,
    UnknownVersionError,
    minor_of,
    of_configuration,
)
from numacore.kubelet.verdict import Failure, Verdict
from tests.numacore.kubelet.builders import GIBI, container, machine, pod, running, settings

WHOLE_PODS = {"PodLevelResourceManagers": True}
ALPHA = {"CPUManagerPolicyAlphaOptions": True}


def admitted(now: node.Node, *pods_: object) -> tuple[node.Node, list[Verdict]]:
    verdicts = []
    for each in pods_:
        now, verdict = node.admit(now, each)  # type: ignore[arg-type]
        verdicts.append(verdict)
    return now, verdicts


# Quantities


@pytest.mark.parametrize(
    ("text", "shown", "int64"),
    [
        ("1124Mi", "1124Mi", 1124 << 20),
        ("1536Mi", "1536Mi", 1536 << 20),
        ("1.5Gi", "1536Mi", None),
        ("100Ti", "100Ti", None),
        ("10Ti", "10Ti", 10 << 40),
        ("1023", "1023", 1023),
        ("1Ki", "1Ki", 1024),
        ("2500m", "2500m", None),
        ("1e3", "1e3", 1000),
        ("64M", "64M", 64_000_000),
        ("0", "0", 0),
        ("0.5", "500m", None),
    ],
)
def test_quantities_print_and_fit_as_in_go(text: str, shown: str, int64: int | None) -> None:
    parsed = resource.parse(text)
    assert (str(parsed), parsed.int64) == (shown, int64)


@pytest.mark.parametrize(
    ("size", "name"), [(2 << 20, "hugepages-2Mi"), (1 << 30, "hugepages-1Gi"), (64 << 10, "hugepages-64Ki")]
)
def test_huge_pages_are_a_resource_by_size(size: int, name: str) -> None:
    assert resource.huge_page_resource(size) == name


# Requests of a pod


@pytest.mark.parametrize(
    ("init", "apps", "cpus"),
    [
        ((), ("1", "2"), 3),
        ((("5", False),), ("1", "2"), 5),
        ((("2", True),), ("1", "2"), 5),
        ((("10", True), ("200", False)), ("100",), 210),
        ((("200", False), ("10", True)), ("100",), 200),
        ((("3", True), ("4", False), ("2", True)), ("1",), 7),
        ((), ("1500m", "2"), 2),
    ],
)
def test_a_pod_asks_for_what_runs_at_once(
    init: tuple[tuple[str, bool], ...], apps: tuple[str, ...], cpus: int
) -> None:
    asked = pod(
        "p",
        *(container(f"c{at}", cpu) for at, cpu in enumerate(apps)),
        init=tuple(container(f"i{at}", cpu, sidecar=sidecar) for at, (cpu, sidecar) in enumerate(init)),
    )
    assert demand(asked, settings()).pod_guaranteed_cpus() == cpus


@pytest.mark.parametrize(
    ("containers", "qos"),
    [
        ((container(),), "Guaranteed"),
        ((Container("c"),), "BestEffort"),
        ((container("a"), Container("b")), "Burstable"),
        ((Container("c", {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}),), "Burstable"),
        ((Container("c", {"memory": "1Gi"}, {"memory": "1Gi"}),), "Burstable"),
        (
            (Container("c", {"cpu": "1000m", "memory": "1Gi"}, {"cpu": "1", "memory": "1024Mi"}),),
            "Guaranteed",
        ),
    ],
)
def test_the_class_of_a_pod(containers: tuple[Container, ...], qos: str) -> None:
    assert demand(pod("p", *containers), settings()).qos == qos


def test_a_pod_level_request_makes_it_guaranteed_but_nothing_is_pinned() -> None:
    _, (verdict,) = admitted(
        running("restricted"), pod("p", Container("c"), whole={"cpu": "2", "memory": "1Gi"})
    )
    assert (verdict.outcome, verdict.qos, verdict.placements) == ("admitted", "Guaranteed", {})


@pytest.mark.parametrize(("minor", "message"), [(36, "Allocate failed due to [memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available, which is unexpected"), (37, "")])  # fmt: skip
def test_a_container_without_memory_in_such_a_pod_is_refused_by_1_36_alone(minor: int, message: str) -> None:
    now = running(minor=minor, feature_gates=WHOLE_PODS)
    _, (verdict,) = admitted(now, pod("p", Container("c"), whole={"cpu": "2", "memory": "1Gi"}))
    assert (verdict.admitted, verdict.message) == (not message, message)


def whole_pod(*containers: Container, init: tuple[Container, ...] = ()) -> Verdict:
    """Four CPUs for the pod, at scope `pod`."""
    now = running("best-effort", "pod", feature_gates=WHOLE_PODS)
    _, (verdict,) = admitted(now, pod("p", *containers, init=init, whole={"cpu": "4", "memory": "1Gi"}))
    return verdict


def test_init_containers_of_such_a_pod_may_use_all_of_it_and_sidecars_keep_theirs() -> None:
    verdict = whole_pod(
        container("own", "2"),
        Container("rest"),
        init=(Container("prepare"), container("side", "1", sidecar=True)),
    )
    assert {name: str(each.cpus) for name, each in verdict.placements.items()} == {
        "prepare": "2-5",
        "side": "2",
        "own": "4-5",
        "rest": "3",
    }


NOTHING_LEFT = "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers"


@pytest.mark.parametrize(
    ("containers", "init", "message"),
    [
        ((container("own", "4"),), (), ""),
        ((container("own", "3"), Container("rest")), (), ""),
        ((container("own", "4"), Container("rest")), (), NOTHING_LEFT),
        ((container("own", "3"), Container("rest")), (container("side", "1", sidecar=True),), NOTHING_LEFT),
        ((container("own", "4"),), (Container("side", sidecar=True),), NOTHING_LEFT),
        ((container("own", "1"),), (container("side", "3", sidecar=True), Container("prepare")), ""),
        (
            (Container("rest"),),
            (container("side", "4", sidecar=True), Container("prepare")),
            "pod rejected, pod has shared init containers but no cpus available for them",
        ),
    ],
)
def test_who_shares_in_such_a_pod_needs_cpus_that_others_leave(
    containers: tuple[Container, ...], init: tuple[Container, ...], message: str
) -> None:
    assert message in (told := whole_pod(*containers, init=init).message)
    assert bool(message) == bool(told)


def test_with_its_gate_the_containers_of_such_a_pod_share_the_pods_cpus() -> None:
    now = running("single-numa-node", "pod", feature_gates=WHOLE_PODS)
    asks = pod("p", container("own", "2"), Container("rest"), whole={"cpu": "4", "memory": "1Gi"})
    _, (verdict,) = admitted(now, asks)
    assert {name: str(each.cpus) for name, each in verdict.placements.items()} == {
        "own": "2-3",
        "rest": "4-5",
    }
    assert str(verdict.shared) == "0-1,6-15"


def test_such_a_pod_gets_none_of_its_devices() -> None:
    now = running("restricted", "pod", feature_gates=WHOLE_PODS)
    now = node.report_devices(now, {"example.com/gpu": (Device("g", (0,)),)})
    own = container("own", gpu="1")
    _, verdicts = admitted(now, pod("plain", own), pod("whole", own, whole={"cpu": "4", "memory": "1Gi"}))
    assert verdicts[0].placements["own"].devices["example.com/gpu"].ids == ("g",)
    _, (alone,) = admitted(now, pod("whole", own, whole={"cpu": "1", "memory": "1Gi"}))
    assert (alone.outcome, alone.placements["own"].devices) == ("admitted", {})


# Alignment


def test_restricted_counts_what_an_empty_machine_would_need() -> None:
    """Six CPUs would fit one empty NUMA node, so two are never preferred (kubernetes/kubernetes#84597)."""
    empty = running("restricted", memory_manager_policy="None")
    now, _ = admitted(empty, pod("a", container(cpu="5")), pod("b", container(cpu="4")))
    _, (verdict,) = admitted(now, pod("c", container(cpu="6")))
    assert (verdict.reason, verdict.message) == (
        "TopologyAffinityError",
        "Resources cannot be allocated with Topology locality",
    )
    (alignment,) = verdict.alignments
    (offer,) = alignment.offers
    assert (offer.requested, offer.free, offer.total) == (6, {0: 2, 1: 4}, {0: 8, 1: 8})
    assert offer.hints is not None
    assert (list(offer.hints.masks), list(offer.hints.preferred)) == ([0b11], [])
    assert alignment.best == Hint(0b11, False)
    assert verdict.failure == Failure("c", None)


def test_init_containers_leave_their_cpus_and_memory_to_the_next_and_sidecars_do_not() -> None:
    asks = pod(
        "p",
        container("app", "2", "1Gi"),
        init=(container("first", "3", "2Gi"), container("side", "1", sidecar=True)),
    )
    _, (verdict,) = admitted(running(), asks)
    cpus = {name: each.cpus or CpuSet() for name, each in verdict.placements.items()}
    assert (cpus["side"] <= cpus["first"], cpus["app"] <= cpus["first"]) == (True, True)
    assert not cpus["side"] & cpus["app"]
    assert len(verdict.shared) == 16 - 3


@pytest.mark.parametrize(("scope", "outcome"), [("container", "refused"), ("pod", "admitted")])
def test_an_init_container_may_take_the_place_of_the_application(scope: str, outcome: str) -> None:
    """kubernetes/kubernetes#123816: it stays where it was pinned, and its CPUs have to be used again there."""
    now, _ = admitted(running("single-numa-node", scope), pod("a", container(cpu="5")))
    asks = pod("b", container("app", "7"), init=(container("first", "1", "64Mi"),))
    _, (verdict,) = admitted(now, asks)
    assert verdict.outcome == outcome


def test_one_numa_node_alone_is_any_numa_node() -> None:
    _, (verdict,) = admitted(running("single-numa-node", on=machine(1)), pod("p", container(cpu="2")))
    assert (verdict.outcome, verdict.alignments[0].best) == ("admitted", Hint(None, True))


def test_memory_on_several_numa_nodes_makes_them_a_group_of_their_own() -> None:
    now, (big, small, other) = admitted(
        running("best-effort", on=machine(3)),
        pod("big", container(memory="13Gi")),
        pod("small", container(memory="1Gi")),
        pod("other", container(memory="13Gi")),
    )
    assert big.placements["c"].memory[0].numa == (0, 1)
    assert small.placements["c"].memory[0].numa == (2,)
    assert other.outcome == "refused"
    assert [now.state.memory.nodes[at].cells for at in range(3)] == [(0, 1), (0, 1), (2,)]


def test_closest_numa_nodes_are_chosen_by_average_distance() -> None:
    rows = ((10, 40, 40, 20), (40, 10, 20, 40), (40, 20, 10, 40), (20, 40, 40, 10))
    on = Machine(
        tuple(Node(at, 8 * GIBI, {}, row, machine(4).nodes[at].cores) for at, row in enumerate(rows))
    )
    _, (verdict,) = admitted(running("restricted", on=on), pod("p", container(cpu="10")))
    assert verdict.alignments[0].best.mask == 0b0011
    closest = {options.PREFER_CLOSEST: "true"}
    _, (verdict,) = admitted(
        running("restricted", on=on, topology_manager_policy_options=closest), pod("p", container(cpu="10"))
    )
    assert verdict.alignments[0].best.mask == 0b0110


# Options of the CPU manager


@pytest.mark.parametrize(
    ("chosen", "per_node", "whole_cores"),
    [
        ({}, [2, 8, 0], True),
        ({options.DISTRIBUTE_ACROSS_NUMA: "true"}, [0, 5, 5], False),
        ({options.DISTRIBUTE_ACROSS_NUMA: "true", options.FULL_PCPUS_ONLY: "true"}, [0, 6, 4], True),
        ({options.DISTRIBUTE_ACROSS_CORES: "true"}, [2, 8, 0], False),
    ],
)
def test_options_choose_other_cpus(chosen: dict[str, str], per_node: list[int], whole_cores: bool) -> None:
    """Ten CPUs of three NUMA nodes with eight each, one of them reserved."""
    now = running(on=machine(3), cpu_manager_policy_options=chosen, feature_gates=ALPHA)
    _, (verdict,) = admitted(now, pod("p", container(cpu="10")))
    held = verdict.placements["c"].cpus or CpuSet()
    assert [sum(cpu // 8 == at for cpu in held) for at in range(3)] == per_node
    assert all((cpu ^ 1) in held for cpu in held) == whole_cores


def test_whole_cores_only_refuses_odd_numbers_and_half_free_cores() -> None:
    chosen = {options.FULL_PCPUS_ONLY: "true"}
    now = running(on=machine(1), cpu_manager_policy_options=chosen, reserved_system_cpus="0")
    _, (odd, many, fine) = admitted(
        now, pod("a", container(cpu="3")), pod("b", container(cpu="8")), pod("c", container(cpu="6"))
    )
    assert (odd.reason, odd.message) == (
        "SMTAlignmentError",
        "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
    )
    assert many.message == (
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, CPUs per core = 2"
    )
    assert str(fine.placements["c"].cpus) == "2-7"


@pytest.mark.parametrize(("minor", "outcome"), [(36, "refused"), (37, "admitted")])
def test_a_running_pod_of_odd_size_survives_whole_cores_only_since_1_37(minor: int, outcome: str) -> None:
    """kubernetes/kubernetes#129078."""
    odd = pod("p", container(cpu="3"))
    now, _ = admitted(running(minor=minor), odd)
    strict = settings(minor=minor, cpu_manager_policy_options={options.FULL_PCPUS_ONLY: "true"})
    _, (verdict,) = admitted(node.restart(now, strict), odd)
    assert verdict.outcome == outcome


@pytest.mark.parametrize(
    ("option", "known", "beta", "stable"),
    [
        (options.FULL_PCPUS_ONLY, 22, 23, 33),
        (options.DISTRIBUTE_ACROSS_NUMA, 23, 33, None),
        (options.ALIGN_BY_SOCKET, 25, None, None),
        (options.DISTRIBUTE_ACROSS_CORES, 31, None, None),
        (options.STRICT_RESERVATION, 32, 33, 35),
        (options.PREFER_ALIGN_UNCORE, 32, 34, 36),
    ],
)
def test_an_option_grows_up_by_minor_version(
    option: str, known: int, beta: int | None, stable: int | None
) -> None:
    assert options.cpu_maturity(option, known - 1) is None
    assert options.cpu_maturity(option, known) == "alpha"
    assert [options.cpu_maturity(option, minor) for minor in (beta, stable) if minor] == [
        word for word, minor in (("beta", beta), ("stable", stable)) if minor
    ]


# Starts that fail


def two(**changes: Any) -> Settings:
    return settings("restricted", **changes)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (two(cpu_manager_policy="dynamic"), 'unknown policy: "dynamic"'),
        (two(memory_manager_policy="static"), 'unknown policy: "static"'),
        (two(topology_manager_policy="strict"), 'unknown policy: "strict"'),
        (two(topology_manager_scope="node"), 'unknown scope: "node"'),
        (
            two(reservation={"memory": "1Gi"}),
            "[cpumanager] unable to determine reserved CPU resources for static policy",
        ),
        (
            two(reservation={"cpu": "0", "memory": "1Gi"}),
            "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero",
        ),
        (
            two(reserved_system_cpus="0-1"),
            "new static policy error: [cpumanager] unable to reserve the required amount of CPUs (size of 0-1 did not equal 1)",
        ),
        (
            two(reserved_system_cpus="99"),
            "new static policy error: [cpumanager] unable to build the reserved physical CPUs from the reserved set: "
            "unknown CPU ID: 99",
        ),
        (
            two(cpu_manager_policy="none", cpu_manager_policy_options={"b": "1", "a": "2"}),
            "new none policy error: None policy: received unsupported options=map[a:2 b:1]",
        ),
        (
            two(cpu_manager_policy_options={"faster": "true"}),
            'new static policy error: unknown CPU Manager Policy option: "faster"',
        ),
        (
            two(cpu_manager_policy_options={options.FULL_PCPUS_ONLY: "yes"}),
            'new static policy error: bad value for option "full-pcpus-only": strconv.ParseBool: parsing "yes": invalid syntax',
        ),
        (
            two(minor=34, cpu_manager_policy_options={options.STRICT_RESERVATION: "true"},
                feature_gates={"CPUManagerPolicyBetaOptions": False}),
            "new static policy error: CPU Manager Policy Beta-level Options not enabled, but option "
            '"strict-cpu-reservation" provided',
        ),
        (
            two(topology_manager_policy_options={options.MAX_ALLOWABLE_NODES: "7"}),
            'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
        ),
        (
            two(reserved_memory=(MemoryReservation(5, {"memory": "1Gi"}),)),
            "the reserved memory configuration references a NUMA node 5 that does not exist on this machine",
        ),
        (
            two(reserved_memory=(MemoryReservation(0, {"memory": "1000Mi"}),)),
            'the total amount "1000Mi" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable feature',
        ),
        (
            two(reservation={"cpu": "1"}, reserved_memory=()),
            "[memorymanager] you should specify the system reserved memory",
        ),
        (
            two(reservation={"cpu": "1", "memory": "1.5Gi"}, reserved_memory=(MemoryReservation(0, {"memory": "1.5Gi"}),)),
            "could not covert a variable of type Quantity to int64",
        ),
    ],
)  # fmt: skip
def test_the_managers_refuse_settings_in_the_kubelets_words(wrong: Settings, words: str) -> None:
    with pytest.raises(StartError) as refused:
        node.start(wrong, machine())
    assert str(refused.value) == words


def test_more_numa_nodes_than_allowed_and_more_than_can_be_enumerated() -> None:
    with pytest.raises(StartError, match="unsupported on machines with more than 8 NUMA Nodes"):
        running("restricted", on=machine(9))
    many = {options.MAX_ALLOWABLE_NODES: "20"}
    assert running("restricted", on=machine(16, cores=1), topology_manager_policy_options=many).topology
    with pytest.raises(errors.UnsupportedError, match="17 NUMA nodes"):
        running("restricted", on=machine(17, cores=1), topology_manager_policy_options=many)


def test_which_of_two_wrong_options_is_named_is_open() -> None:
    with pytest.raises(StartError) as refused:
        node.start(two(cpu_manager_policy_options={"a": "1", "b": "1"}), machine())
    assert {str(refused.value), *refused.value.alternatives} == {
        f'new static policy error: unknown CPU Manager Policy option: "{name}"' for name in "ab"
    }


# Crashes


def test_a_page_size_that_some_numa_node_does_not_list_ends_the_kubelet() -> None:
    bare = Machine(
        tuple(
            Node(each.id, each.memory, {} if each.id else each.hugepages, None, each.cores)
            for each in machine().nodes
        )
    )
    _, (verdict,) = admitted(running("best-effort", on=bare), pod("p", container(hugepages_2Mi="2Mi")))
    assert (verdict.outcome, verdict.reason, verdict.message) == ("panics", "Panic", errors.NIL_POINTER)


@pytest.mark.parametrize("last", [2, 3])
def test_distances_of_sparse_numa_nodes_end_the_kubelet_when_masks_are_compared(last: int) -> None:
    closest = {options.PREFER_CLOSEST: "true"}
    now = running(
        "best-effort",
        on=machine(2, ids=(0, last)),
        memory_manager_policy="None",
        topology_manager_policy_options=closest,
    )
    _, (small, large) = admitted(now, pod("p", container(cpu="2")), pod("q", container(cpu="10")))
    words = f"runtime error: index out of range [{last}] with length 2"
    assert (small.outcome, small.message) == ("panics", words)
    assert large.outcome == "admitted"


def test_numa_nodes_from_64_on_end_the_kubelet() -> None:
    _, (verdict,) = admitted(running("best-effort", on=machine(2, ids=(0, 64))), pod("p", container(cpu="2")))
    assert verdict.outcome == "panics"


def test_a_group_of_numa_nodes_with_unequal_page_sizes_ends_the_kubelet_at_its_next_start() -> None:
    uneven = Machine(
        tuple(
            Node(each.id, each.memory, {} if each.id else each.hugepages, None, each.cores)
            for each in machine().nodes
        )
    )
    now, (verdict,) = admitted(running("best-effort", on=uneven), pod("p", container(memory="12Gi")))
    assert verdict.placements["c"].memory[0].numa == (0, 1)
    with pytest.raises(PanicError, match="nil pointer"):
        node.restart(now)


# Machines and settings


def test_threads_offline_break_whole_cores_by_the_average() -> None:
    """kubernetes/kubernetes#124066: 7 CPUs on 4 cores count as one CPU a core."""
    cores = tuple(Core(at, 0, (2 * at, 2 * at + 1) if at else (0,)) for at in range(4))
    on = Machine((Node(0, 8 * GIBI, {}, None, cores),))
    assert on.topology.per_core == 1
    now = running(on=on, cpu_manager_policy_options={options.FULL_PCPUS_ONLY: "true"})
    _, (verdict,) = admitted(now, pod("p", container(cpu="3")))
    assert verdict.outcome == "admitted"


@pytest.mark.parametrize(
    ("fields", "reservation"),
    [
        ({}, {"memory": "100Mi"}),
        ({"kubeReserved": {"cpu": "500m", "memory": "1Gi"}, "systemReserved": {"cpu": "1"}}, {"cpu": "1500m", "memory": "1124Mi"}),
        ({"kubeReserved": {"cpu": "4"}, "reservedSystemCPUs": "0-1"}, {"cpu": "2", "memory": "100Mi"}),
        ({"evictionHard": {"memory.available": "1Gi"}}, {"memory": "1Gi"}),
        ({"evictionHard": {"nodefs.available": "10%"}}, {}),
        ({"evictionHard": {"memory.available": "50%"}}, {"memory": "4Gi"}),
        ({"evictionHard": {"memory.available": "100%"}}, {}),
    ],
)  # fmt: skip
def test_what_is_reserved_follows_from_the_configuration(
    fields: dict[str, object], reservation: dict[str, str]
) -> None:
    assert of_configuration(fields, 37, 8 * GIBI).reservation == reservation


def test_a_gate_holds_only_where_the_version_knows_it() -> None:
    assert Settings(minor=34, feature_gates=WHOLE_PODS).enabled("PodLevelResourceManagers") is False
    assert Settings(minor=36, feature_gates=WHOLE_PODS).enabled("PodLevelResourceManagers") is True
    assert Settings(minor=33).enabled("PodLevelResources") is False
    assert Settings(minor=34).enabled("PodLevelResources") is True


@pytest.mark.parametrize(
    ("text", "minor"), [("1.37", 37), ("v1.34.4", 34), ("1.21.0-rc.1", 21), ("v1.33.5+k3s1", 33)]
)
def test_a_version_is_read(text: str, minor: int) -> None:
    assert minor_of(text) == minor


@pytest.mark.parametrize("text", ["", "1.20", "1.38", "2.37", "1.x", "1.37x"])
def test_a_version_without_known_rules_is_refused(text: str) -> None:
    with pytest.raises(UnknownVersionError):
        minor_of(text)


def test_devices_come_from_the_numa_nodes_of_the_hint() -> None:
    gpus = tuple(Device(f"g{at}", (at % 2,)) for at in range(4))
    now = node.report_devices(running("restricted"), {"example.com/gpu": gpus})
    _, (two_, one, none) = admitted(
        now, pod("a", container(gpu="2")), pod("b", container(gpu="1")), pod("c", container(gpu="2"))
    )
    assert two_.placements["c"].devices["example.com/gpu"].numa == ((0,), (0,))
    assert one.placements["c"].devices["example.com/gpu"].numa == ((1,),)
    assert none.reason == "TopologyAffinityError"
    assert two_.alignments[0].best.mask == mask_of([0])
