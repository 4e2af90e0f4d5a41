"""What would make a refused pod fit: applied it fits, one step less and it does not."""

from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore.kubelet import node, options, resource, topology_manager
from numacore.kubelet.advice import Advice, Fit, advice, asking_for, fits, with_setting
from numacore.kubelet.device_manager import Device
from numacore.kubelet.node import Node
from numacore.kubelet.pod import Container, Pod, PodResources
from numacore.kubelet.resource import parse
from tests.numacore.kubelet.builders import GIBI, container, machine, pod, running

FULL = {options.FULL_PCPUS_ONLY: "true"}
GPUS = {"example.com/gpu": tuple(Device(f"g{at}", (at % 2,)) for at in range(4))}


def filled(policy: str, *pods: Pod, scope: str = "container", **changes: Any) -> Node:
    now = node.report_devices(running(policy, scope, **changes), GPUS)
    for each in pods:
        now, verdict = node.admit(now, each)
        assert verdict.admitted, verdict
    return now


WHOLE = {"PodLevelResources": True, "PodLevelResourceManagers": True}
FIVE, FOUR = pod("a", container(cpu="5")), pod("b", container(cpu="4"))
REFUSED: dict[str, tuple[Node, Pod]] = {
    "no NUMA node has as many CPUs left": (filled("restricted", FIVE, FOUR), pod("c", container(cpu="6"))),
    "no NUMA node has as much memory left": (
        filled("single-numa-node", pod("a", container(memory="5Gi"))),
        pod("b", container(memory="8500Mi")),
    ),
    "odd number of CPUs": (filled("none", cpu_manager_policy_options=FULL), pod("a", container(cpu="3"))),
    "too few CPUs at all": (filled("best-effort", FIVE, FOUR), pod("c", container(cpu="8"))),
    "too few huge pages": (filled("restricted"), pod("a", container(hugepages_2Mi="130Mi"))),
    "devices on two NUMA nodes": (filled("single-numa-node"), pod("a", container(gpu="3"))),
    "the init container is in the way": (
        filled("single-numa-node", FIVE),
        pod("b", container("app", "7"), init=(container("first", "1"),)),
    ),
    "huge pages and memory on different NUMA nodes": (
        filled(
            "restricted",
            pod("a", container(memory="6Gi")),
            pod("b", container(memory="3Gi", hugepages_2Mi="120Mi")),
        ),
        pod("c", container(memory="3Gi", hugepages_2Mi="100Mi")),
    ),
    "memory of NUMA nodes that serve others": (
        filled("none", pod("a", container(memory="5Gi")), pod("b", container(memory="5Gi"))),
        pod("c", container(memory="9Gi")),
    ),
    "odd number of CPUs in one of two containers": (
        filled("restricted", cpu_manager_policy_options=FULL),
        pod("a", container("even", cpu="2"), container("odd", cpu="3")),
    ),
    "the pod as a whole, by what its containers ask for": (
        filled("single-numa-node", scope="pod"),
        pod("a", container("x", cpu="5"), container("y", cpu="4")),
    ),
    "the pod as a whole, by what it asks for itself": (
        filled("single-numa-node", scope="pod", feature_gates=WHOLE),
        pod("a", container("x", cpu="3"), whole={"cpu": "9", "memory": "1Gi"}),
    ),
    "the reserved CPUs are missing": (
        filled(
            "single-numa-node", FIVE, reserved_system_cpus="0-3", reservation={"cpu": "4", "memory": "1Gi"}
        ),
        pod("b", container(cpu="5")),
    ),
    "no more devices at all": (
        filled("none", pod("a", container(gpu="3"))),
        pod("b", container(gpu="2")),
    ),
    "a sidecar keeps what it has": (
        filled("single-numa-node", scope="pod"),
        pod("b", container("app", "5"), init=(container("beside", "4", sidecar=True),)),
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_each_piece_of_advice_makes_the_pod_fit_and_a_step_less_does_not(why: str) -> None:
    now, refused = REFUSED[why]
    _, verdict = node.admit(now, refused)
    assert not verdict.admitted
    given = advice(now, refused, verdict).fits
    assert given
    for piece in given:
        assert holds(now, refused, piece), piece


def holds(now: Node, refused: Pod, piece: Fit) -> bool:
    if piece.kind == "leaving":
        return fits(node.remove(now, piece.value), refused)
    if piece.kind == "setting":
        changed = with_setting(now.settings, piece.name, piece.value)
        return fits(node.resume(changed, now.machine, now.state), refused)
    amount, step = parse(piece.value).value, parse(piece.step).value
    less = asking_for(refused, piece.container, piece.name, amount)
    more = asking_for(refused, piece.container, piece.name, amount + step)
    return fits(now, less) and not fits(now, more)


@pytest.mark.parametrize(
    ("why", "piece"),
    [
        ("no NUMA node has as many CPUs left", Fit("request", "cpu", "4", "c", "1")),
        ("no NUMA node has as many CPUs left", Fit("setting", "topologyManagerPolicy", "best-effort")),
        ("no NUMA node has as many CPUs left", Fit("leaving", "pod", "a")),
        ("no NUMA node has as much memory left", Fit("request", "memory", "8064Mi", "c", "1Mi")),
        ("no NUMA node has as much memory left", Fit("setting", "memoryManagerPolicy", "None")),
        ("odd number of CPUs", Fit("request", "cpu", "2", "c", "1")),
        ("odd number of CPUs", Fit("setting", "cpuManagerPolicyOptions.full-pcpus-only", "")),
        ("too few CPUs at all", Fit("request", "cpu", "6", "c", "1")),
        ("too few huge pages", Fit("request", "hugepages-2Mi", "128Mi", "c", "2Mi")),
        ("devices on two NUMA nodes", Fit("request", "example.com/gpu", "2", "c", "1")),
        ("the init container is in the way", Fit("setting", "topologyManagerScope", "pod")),
    ],
)
def test_what_is_advised(why: str, piece: Fit) -> None:
    now, refused = REFUSED[why]
    assert piece in advice(now, refused, node.admit(now, refused)[1]).fits


@pytest.mark.parametrize(
    ("why", "piece"),
    [
        ("the pod as a whole, by what its containers ask for", Fit("request", "cpu", "4", "x", "1")),
        ("the pod as a whole, by what it asks for itself", Fit("request", "cpu", "8", "", "1")),
        ("odd number of CPUs in one of two containers", Fit("request", "cpu", "2", "odd", "1")),
        ("no more devices at all", Fit("leaving", "pod", "a")),
    ],
)
def test_what_is_advised_to_pods_of_several_containers(why: str, piece: Fit) -> None:
    now, refused = REFUSED[why]
    assert piece in advice(now, refused, node.admit(now, refused)[1]).fits


def test_less_is_not_advised_where_the_next_whole_number_would_do_as_well() -> None:
    """2.5 CPUs are refused, 2 and 3 admitted: it cannot be said that a step more than 2 is refused."""
    now = running("restricted", "pod", machine(4, cores=2, threads=1))
    asking = pod("a", container("odd", "2500m", "8500001Ki"), container("one"))
    _, verdict = node.admit(now, asking)
    assert not verdict.admitted
    assert [fits(now, asking_for(asking, "odd", "cpu", cpus)) for cpus in (1, 2, 3, 4)] == [
        False,
        True,
        True,
        False,
    ]
    assert not [each for each in advice(now, asking, verdict).fits if each.name == "cpu"]


CPU_OPTIONS: tuple[dict[str, str], ...] = (
    {},
    FULL,
    {options.DISTRIBUTE_ACROSS_NUMA: "true"},
    {options.STRICT_RESERVATION: "true"},
)


@st.composite
def askings(draw: st.DrawFn, name: str) -> Container:
    more: dict[str, str] = {}
    if draw(st.integers(0, 3)) == 0:
        more["hugepages_2Mi"] = draw(st.sampled_from(["2Mi", "100Mi", "130Mi", "300Mi"]))
    if draw(st.integers(0, 3)) == 0:
        more["gpu"] = str(draw(st.integers(1, 5)))
    cpu = draw(st.sampled_from(["1", "2", "3", "5", "7", "12", "500m", "2500m"]))
    memory = draw(st.sampled_from(["64Mi", "3Gi", "7500Mi", "9Gi", "5000000001", "20Gi"]))
    return container(name, cpu, memory, sidecar=draw(st.booleans()), **more)


@st.composite
def pods(draw: st.DrawFn, uid: str) -> Pod:
    init = tuple(draw(askings(f"i{at}")) for at in range(draw(st.integers(0, 1))))
    return Pod(uid, tuple(draw(askings(f"c{at}")) for at in range(draw(st.integers(1, 2)))), init)


@st.composite
def refusals(draw: st.DrawFn) -> tuple[Node, Pod]:
    """A kubelet with some pods, and a pod that it may refuse: every policy, both scopes, with devices."""
    nodes = draw(st.sampled_from([1, 2, 4]))
    on = machine(nodes, cores=draw(st.integers(2, 4)), threads=draw(st.sampled_from([1, 2])), memory=8 * GIBI)
    now = running(
        draw(st.sampled_from(topology_manager.POLICIES)),
        draw(st.sampled_from(["container", "pod"])),
        on,
        cpu_manager_policy_options=draw(st.sampled_from(CPU_OPTIONS)),
    )
    gpus = {name: devices for name, devices in GPUS.items() if draw(st.booleans())}
    now = node.report_devices(now, gpus if nodes > 1 else {})
    for at in range(draw(st.integers(0, 4))):
        now, _ = node.admit(now, draw(pods(f"p{at}")))
    return now, draw(pods("new"))


@given(refusals())
def test_advice_holds_on_any_node_for_any_pod(case: tuple[Node, Pod]) -> None:
    now, asking = case
    _, verdict = node.admit(now, asking)
    for piece in advice(now, asking, verdict).fits:
        assert holds(now, asking, piece), piece


@given(refusals())
def test_no_smaller_request_that_helps_is_kept_back(case: tuple[Node, Pod]) -> None:
    """Where up to three CPUs or devices, half or a quarter of an amount would let the pod in, some smaller request is advised."""
    now, asking = case
    _, verdict = node.admit(now, asking)
    if verdict.admitted or any(each.kind == "request" for each in advice(now, asking, verdict).fits):
        return
    for each in asking.in_order():
        for name in each.limits:
            asked = parse(each.limits[name]).value
            step = 2 << 20 if resource.is_memory(name) else 1
            few = () if resource.is_memory(name) else range(1, min(asked, 4))
            for amount in {asked // 2, asked // 4, *few}:
                less = amount // step * step
                assert not less or not fits(now, asking_for(asking, each.name, name, less)), name


@cache
def sixteen(policy: str) -> Node:
    """16 NUMA nodes of 16 CPUs and 8 GiB less huge pages; four serve a pod already, each with another amount of memory."""
    now = running(
        policy,
        on=machine(16, cores=8),
        topology_manager_policy_options={"max-allowable-numa-nodes": "16"},
    )
    for at in range(4):
        now, verdict = node.admit(now, pod(f"p{at}", container(cpu="3", memory=f"{6000 - 100 * at}Mi")))
        assert verdict.admitted
    return now


@pytest.mark.parametrize(
    ("asked", "piece"),
    [
        (container(cpu="60"), Fit("request", "cpu", "16", "c", "1")),
        (container(cpu="14", memory="33Gi"), Fit("request", "memory", "8064Mi", "c", "1Mi")),
    ],
)
def test_sixteen_numa_nodes_are_searched_to_the_end(asked: Container, piece: Fit) -> None:
    """Although a trial is dear there: what the refusal tells needs none."""
    now, asking = sixteen("single-numa-node"), pod("z", asked)
    given = advice(now, asking, node.admit(now, asking)[1])
    assert given.complete
    assert [each for each in given.fits if each.kind == "request"] == [piece]
    assert holds(now, asking, piece)


def test_a_search_that_ends_early_says_so_and_what_it_found_holds() -> None:
    now = sixteen("restricted")
    asking = pod("z", container("big", "20", "70Gi"), container("also", "40", "33Gi"))
    given = advice(now, asking, node.admit(now, asking)[1])
    assert not given.complete
    assert all(holds(now, asking, each) for each in given.fits if each.kind == "request")


def test_an_admitted_pod_needs_no_advice() -> None:
    now = filled("restricted")
    assert advice(now, FIVE, node.admit(now, FIVE)[1]) == Advice()


NEVER_BACK = running(
    on=machine(4, cores=3),
    reserved_system_cpus="0,11,12,23",
    reservation={"cpu": "4", "memory": "1Gi"},
    cpu_manager_policy_options=FULL | {options.DISTRIBUTE_ACROSS_NUMA: "true"},
)


def settings_advised(now: Node, refused: Pod) -> list[tuple[str, str]]:
    given = advice(now, refused, node.admit(now, refused)[1]).fits
    return [(each.name, each.value) for each in given if each.kind == "setting"]


def test_either_option_is_advised_against_where_both_together_hang_the_kubelet() -> None:
    asked = pod("wide", container(cpu="14"))
    assert node.admit(NEVER_BACK, asked)[1].outcome == "hangs"
    assert settings_advised(NEVER_BACK, asked) == [
        ("cpuManagerPolicyOptions.full-pcpus-only", ""),
        ("cpuManagerPolicyOptions.distribute-cpus-across-numa", ""),
        ("cpuManagerPolicy", "none"),
    ]


def test_laxer_policies_are_advised_from_the_nearest_on() -> None:
    now = running("single-numa-node", memory_manager_policy="None", reserved_memory=())
    assert settings_advised(now, pod("a", container(cpu="9")))[:3] == [
        ("topologyManagerPolicy", "restricted"),
        ("topologyManagerPolicy", "best-effort"),
        ("topologyManagerPolicy", "none"),
    ]


def test_the_other_scope_and_no_pinning_are_advised_where_they_help() -> None:
    now, refused = REFUSED["the pod as a whole, by what its containers ask for"]
    assert ("topologyManagerScope", "container") in settings_advised(now, refused)
    now, refused = REFUSED["too few CPUs at all"]
    assert settings_advised(now, refused) == [("cpuManagerPolicy", "none")]


def test_a_pod_that_runs_is_not_advised_to_leave_for_itself() -> None:
    """After a restart under a stricter policy the pod is asked again; only others can make room."""
    wide = pod("wide", container(cpu="10"))
    now = filled("best-effort", wide)
    stricter = node.restart(
        now, msgspec.structs.replace(now.settings, topology_manager_policy="single-numa-node")
    )
    refused = node.admit(stricter, wide)[1]
    assert not refused.admitted
    assert [each.value for each in advice(stricter, wide, refused).fits if each.kind == "leaving"] == []


def test_changed_amounts_are_those_of_the_container_that_is_named() -> None:
    asked = pod(
        "p",
        container("a", "2"),
        container("b", "2"),
        init=(container("i", "2"),),
        whole={"cpu": "6", "memory": "1Gi"},
    )
    less = asking_for(asked, "b", "cpu", 1)
    assert [each.requests["cpu"] for each in less.in_order()] == ["2", "2", "1"]
    assert [each.limits["cpu"] for each in less.in_order()] == ["2", "2", "1"]
    first = asking_for(asked, "i", "memory", 3 << 30)
    assert [each.limits["memory"] for each in first.in_order()] == ["3Gi", "64Mi", "64Mi"]
    whole = asking_for(asked, "", "cpu", 5)
    assert whole.resources == PodResources({"cpu": "5", "memory": "1Gi"}, {"cpu": "5", "memory": "1Gi"})
    assert whole.containers == asked.containers
