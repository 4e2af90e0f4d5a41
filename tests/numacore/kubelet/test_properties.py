"""What holds of every kubelet, whatever pods come and go."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore.kubelet import node, options, topology_manager
from numacore.kubelet.device_manager import Device
from numacore.kubelet.node import Node
from numacore.kubelet.pod import Container, Pod, demand
from numacore.kubelet.settings import Settings
from numacore.kubelet.verdict import Verdict
from tests.numacore.kubelet.builders import container, machine
from tests.numacore.kubelet.builders import settings as kubelet_settings

GPU = "example.com/gpu"
CPU_OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {options.FULL_PCPUS_ONLY: "true"},
    {options.DISTRIBUTE_ACROSS_NUMA: "true"},
    {options.FULL_PCPUS_ONLY: "true", options.DISTRIBUTE_ACROSS_NUMA: "true"},
    {options.PREFER_ALIGN_UNCORE: "true"},
    {options.STRICT_RESERVATION: "true"},
)


@st.composite
def containers(draw: st.DrawFn, name: str) -> Container:
    memory = draw(st.sampled_from(["64Mi", "1Gi", "3Gi", "9Gi"]))
    cpu = draw(st.sampled_from(["1", "2", "3", "6", "500m"]))
    more = draw(st.sampled_from(({}, {}, {}, {"hugepages_2Mi": "64Mi"}, {"gpu": "1"}, {"gpu": "2"})))
    return container(name, cpu, memory, sidecar=draw(st.booleans()), **more)


@st.composite
def pods(draw: st.DrawFn, uid: str) -> Pod:
    init = tuple(draw(containers(f"i{at}")) for at in range(draw(st.integers(0, 2))))
    return Pod(uid, tuple(draw(containers(f"c{at}")) for at in range(draw(st.integers(1, 2)))), init)


@st.composite
def kubelets(draw: st.DrawFn) -> Node:
    nodes = draw(st.sampled_from([1, 2, 4]))
    on = machine(nodes, cores=draw(st.integers(2, 4)), sockets=draw(st.sampled_from([1, nodes])), pages=64)
    chosen: Settings = kubelet_settings(
        draw(st.sampled_from(topology_manager.POLICIES)),
        draw(st.sampled_from(["container", "pod"])),
        cpu_manager_policy_options=draw(st.sampled_from(CPU_OPTIONS)),
    )
    gpus = tuple(Device(f"gpu{at}", (at % nodes,)) for at in range(draw(st.integers(0, 5))))
    return node.report_devices(node.start(chosen, on), {GPU: gpus})


@st.composite
def lives(draw: st.DrawFn) -> tuple[Node, list[Pod | str]]:
    """A kubelet, and pods that come (a Pod) and go (a uid)."""
    steps: list[Pod | str] = []
    for at in range(draw(st.integers(1, 8))):
        come = [each.uid for each in steps if isinstance(each, Pod)]
        if come and draw(st.integers(0, 3)) == 0:
            steps.append(draw(st.sampled_from(come)))
        else:
            steps.append(draw(pods(f"p{at}")))
    return draw(kubelets()), steps


def live(now: Node, steps: list[Pod | str]) -> Node:
    for step in steps:
        now = node.admit(now, step)[0] if isinstance(step, Pod) else node.remove(now, step)
    return now


def swept(now: Node) -> Node:
    """The node after a pod that takes nothing: what gone pods held is free."""
    return node.remove(node.admit(now, Pod("sweep", (Container("none"),)))[0], "sweep")


@given(lives())
def test_a_cpu_never_has_two_owners(life: tuple[Node, list[Pod | str]]) -> None:
    """Within a pod an init container's CPUs go on to the next; the shared pool owns what nobody else does."""
    now = swept(live(*life))
    owners: Counter[int] = Counter()
    for containers_ in now.state.cpu.assignments.values():
        pod_cpus = 0
        for cpus in containers_.values():
            pod_cpus |= cpus
        owners.update(at for at in range(pod_cpus.bit_length()) if pod_cpus >> at & 1)
    assert now.cpu is not None
    assert not [cpu for cpu, times in owners.items() if times > 1 or now.state.cpu.default >> cpu & 1]
    assert not [cpu for cpu in owners if now.cpu.reserved >> cpu & 1]
    strict = now.cpu.reserved if now.cpu.options.strict_reservation else 0
    assert now.state.cpu.default | sum(1 << cpu for cpu in owners) | strict == now.cpu.topology.all


@given(lives())
def test_a_device_never_has_two_owners(life: tuple[Node, list[Pod | str]]) -> None:
    now = swept(live(*life))
    held = Counter(
        gpu
        for containers_ in now.state.devices.pods.values()
        for gpu in {each for resources in containers_.values() for each in resources.get(GPU, ())}
    )
    assert not [gpu for gpu, times in held.items() if times > 1]
    assert held.keys() == now.state.devices.allocated.get(GPU, frozenset())


@given(lives())
def test_admitted_pods_get_what_they_ask(life: tuple[Node, list[Pod | str]]) -> None:
    now, steps = life
    for step in steps:
        if not isinstance(step, Pod):
            now = node.remove(now, step)
            continue
        now, verdict = node.admit(now, step)
        assert verdict.admitted == (step.uid in now.state.pods)
        if not verdict.admitted:
            assert verdict.message
            continue
        wanted = demand(step, now.settings)
        for each in step.in_order():
            placed = verdict.placements.get(each.name)
            held = placed.cpus if placed else None
            assert (len(held) if held is not None else 0) == wanted.guaranteed_cpus(each)
            gpus = placed.devices.get(GPU) if placed else None
            assert (len(gpus.ids) if gpus else 0) == int(each.limits.get(GPU, "0"))
        for each in step.containers:
            blocks = (
                verdict.placements[each.name].memory
                if wanted.memory(each) and wanted.qos == "Guaranteed"
                else ()
            )
            assert {block.kind: block.size for block in blocks} == (wanted.memory(each) if blocks else {})


@given(lives(), st.data())
def test_a_pod_that_goes_gives_back_exactly_its_own(
    life: tuple[Node, list[Pod | str]], data: st.DataObject
) -> None:
    before = swept(live(*life))
    pod = data.draw(pods("new"))
    after, _ = node.admit(before, pod)
    restored = swept(node.remove(after, "new"))
    assert restored.state.cpu.default == before.state.cpu.default
    assert restored.state.cpu.assignments == before.state.cpu.assignments
    assert restored.state.memory.assignments == before.state.memory.assignments
    assert restored.state.devices.allocated == before.state.devices.allocated
    assert free_memory(restored) == free_memory(before)
    if not groups(after):
        assert restored.state.memory.nodes == before.state.memory.nodes


def free_memory(now: Node) -> Counter[str]:
    """Bytes free on all NUMA nodes, by kind. Where a group's share lies is the kubelet's choice, how much it is is not."""
    free: Counter[str] = Counter()
    for each in now.state.memory.nodes.values():
        free.update({kind: table.free for kind, table in each.memory.items()})
    return free


def groups(now: Node) -> bool:
    """Whether a container's memory spans NUMA nodes."""
    pods_ = now.state.memory.assignments.values()
    return any(len(block.numa) > 1 for held in pods_ for blocks in held.values() for block in blocks)


@given(lives())
def test_judging_leaves_the_node_that_was_asked_as_it_was(life: tuple[Node, list[Pod | str]]) -> None:
    now, steps = life
    seen = node.state_files(now)
    live(now, steps)
    assert node.state_files(now) == seen


@given(lives())
def test_a_kubelet_without_groups_of_numa_nodes_restarts_on_what_it_left(
    life: tuple[Node, list[Pod | str]],
) -> None:
    """With groups that pods left again the kubelet itself may not (its memory does not add up then)."""
    now = swept(live(*life))
    if groups(now):
        return
    again = node.restart(now)
    assert again.state.cpu.assignments == now.state.cpu.assignments
    assert again.state.memory.nodes == now.state.memory.nodes


@given(lives(), st.data())
def test_best_effort_refuses_no_alignment_and_none_never_asks(
    life: tuple[Node, list[Pod | str]], data: st.DataObject
) -> None:
    """What a stricter policy refuses for alignment, best-effort lets through the merge."""
    now = live(*life)
    pod = data.draw(pods("new"))
    assert under("best-effort", now, pod).reason != "TopologyAffinityError"
    assert under("none", now, pod).alignments == ()


@given(lives(), st.data())
def test_what_a_stricter_policy_admits_a_laxer_one_places_alike(
    life: tuple[Node, list[Pod | str]], data: st.DataObject
) -> None:
    """On the same state, whatever the pod: policies refuse merged hints, they do not choose others."""
    now = live(*life)
    pod = data.draw(pods("new"))
    verdicts = [under(policy, now, pod) for policy in ("single-numa-node", "restricted", "best-effort")]
    for stricter, laxer in pairwise(verdicts):
        if stricter.admitted:
            assert laxer.admitted
            assert laxer.placements == stricter.placements


@given(lives(), st.data())
def test_a_container_that_any_policy_admits_is_admitted_without_one(
    life: tuple[Node, list[Pod | str]], data: st.DataObject
) -> None:
    now = live(*life)
    pod = Pod("new", (data.draw(containers("c0")),))
    if under("best-effort", now, pod).admitted:
        assert under("none", now, pod).admitted


def test_several_containers_may_be_refused_without_a_policy_and_admitted_with_one() -> None:
    """The exception, which is the kubelet's own (tests/oracle/found/refused-without-a-policy.json): each container on its own
    spoils the groups of NUMA nodes that the pod as a whole would have shared."""
    now = node.start(kubelet_settings("none", "pod"), machine(4))
    pod = Pod("p", (container("a"), container("b", memory="9Gi"), container("c", memory="9Gi")))
    assert under("best-effort", now, pod).admitted
    assert "no NUMA nodes with enough memory" in under("none", now, pod).message


def under(policy: str, now: Node, pod: Pod) -> Verdict:
    """The verdict on the same state under another policy."""
    other = node.resume(with_policy(now.settings, policy), now.machine, now.state)
    return node.admit(other, pod)[1]


def with_policy(given_settings: Settings, policy: str) -> Settings:
    return kubelet_settings(
        policy,
        given_settings.topology_manager_scope,
        cpu_manager_policy_options=given_settings.cpu_manager_policy_options,
    )


@pytest.mark.parametrize("policy", topology_manager.POLICIES)
def test_a_pod_admitted_again_keeps_what_it_has(policy: str) -> None:
    now = node.start(kubelet_settings(policy), machine(2))
    pod = Pod("p", (container("a", "2"), container("b", "1")))
    now, first = node.admit(now, pod)
    _, again = node.admit(node.restart(now), pod)
    assert again.placements == first.placements
