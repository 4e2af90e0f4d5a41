"""The static policy where nothing else decides: single rules, found by changing each of them on purpose.

Which CPUs a container gets was asked of the real kubelets 1.36.3 and 1.37.2.
"""

from __future__ import annotations

from typing import Any

import pytest

from numacore.hints import mask_of, nodes_of
from numacore.kubelet import errors, node, options
from numacore.kubelet.cpu_manager import CpuState, StaticPolicy
from numacore.kubelet.errors import StartError
from numacore.kubelet.machine import Core, Machine, Node
from numacore.kubelet.pod import Container, demand
from tests.numacore.kubelet.builders import GIBI, container, machine, pod, running

ALPHA = {"CPUManagerPolicyAlphaOptions": True}
EQUAL, WHOLE, BY_SOCKET = options.DISTRIBUTE_ACROSS_NUMA, options.FULL_PCPUS_ONLY, options.ALIGN_BY_SOCKET
UNCORE = options.PREFER_ALIGN_UNCORE


def policy(on: Machine, *chosen: str, **changes: Any) -> StaticPolicy:
    given: dict[str, Any] = {
        "cpu_manager_policy_options": dict.fromkeys(chosen, "true"),
        "feature_gates": ALPHA,
    } | changes
    found = running(on=on, **given).cpu
    assert found is not None
    return found


def unequal(*sizes: int) -> Machine:
    """A NUMA node and socket for each number of cores with one thread."""
    firsts = [sum(sizes[:at]) for at in range(len(sizes))]
    distances = tuple(10 for _ in sizes)
    return Machine(
        tuple(
            Node(
                at,
                8 * GIBI,
                {2048: 0},
                distances,
                tuple(Core(first + n, at, (first + n,)) for n in range(size)),
            )
            for at, (first, size) in enumerate(zip(firsts, sizes, strict=True))
        )
    )


SMT4 = Machine(
    (
        Node(
            0,
            8 * GIBI,
            {2048: 0},
            (10,),
            tuple(Core(at, 0, tuple(range(4 * at, 4 * at + 4)), at // 2) for at in range(4)),
        ),
    )
)
"""Four threads a core, two cores a cache."""
FOUR = machine(4, sockets=2)
FLAT = machine(4, threads=1, sockets=2)
SMALL = machine(4, cores=2, sockets=2)
THREE = machine(3, cores=2)


@pytest.mark.parametrize(
    ("on", "chosen", "minor", "free", "number", "given"),
    [
        (FOUR, (EQUAL, BY_SOCKET), 36, [3, 4, 11, 18, 22, 25, 27, 28], 4, [3, 4, 25, 27]),
        (FOUR, (EQUAL, BY_SOCKET), 37, [3, 4, 11, 18, 22, 25, 27, 28], 4, [18, 22, 25, 27]),
        (FOUR, (EQUAL,), 37, [3, 4, 11, 18, 22, 25, 27, 28], 4, [3, 4, 25, 27]),
        (FOUR, (EQUAL, BY_SOCKET), 37, [0, 2, 5, 7, 10, 12, 15, 16, 18, 19, 25, 28], 6, [0, 2, 5, 10, 12, 15]),
        (SMALL, (EQUAL, BY_SOCKET), 37, [0, 2, 4, 5, 6, 7, 8, 9, 12, 14], 6, [0, 2, 4, 5, 6, 7]),
        (FLAT, (EQUAL, BY_SOCKET, WHOLE), 37, [3, 7, 9], 2, [3, 7]),
        (THREE, (EQUAL, BY_SOCKET), 37, [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11], 7, [0, 1, 2, 3, 8, 9, 10]),
        (machine(2), (EQUAL, BY_SOCKET, WHOLE), 37, [4, 5, 6, 8, 10, 12, 13, 14, 15], 8, [4, 5, 8, 10, 12, 13, 14, 15]),
        (unequal(9, 3, 3, 3), (EQUAL,), 37, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16], 8, [1, 2, 3, 4, 9, 10, 12, 13]),
        (unequal(9, 3, 3, 3), (EQUAL,), 37, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16], 6, [1, 2, 9, 10, 12, 13]),
        (SMT4, (UNCORE,), 37, [5, 6, 7, 8, 9, 10, 11, 12, 13], 2, [12, 13]),
    ],
)  # fmt: skip
def test_a_container_gets_these_cpus(
    on: Machine, chosen: tuple[str, ...], minor: int, free: list[int], number: int, given: list[int]
) -> None:
    assert nodes_of(policy(on, *chosen, minor=minor).take_by_topology(mask_of(free), number)) == given


@pytest.mark.parametrize(
    ("number", "preferred"),
    [
        (2, [0b1, 0b10, 0b11, 0b100, 0b1000, 0b1100]),
        (6, [0b11, 0b101, 0b110, 0b1001, 0b1010, 0b1100]),
        (9, [0b111, 0b1011, 0b1101, 0b1110, 0b1111]),
    ],
)
def test_with_align_by_socket_all_of_a_socket_is_preferred_too(number: int, preferred: list[int]) -> None:
    of = policy(SMALL, BY_SOCKET)
    assert list(of.generate(of.topology.all, 0, number).preferred) == preferred


@pytest.mark.parametrize("scope", ["container", "pod"])
def test_a_pod_admitted_again_is_offered_what_it_has_or_nothing_where_it_asks_for_another_number(
    scope: str,
) -> None:
    same, other = (pod("p", container("x", cpu=cpu), container("y", cpu="1")) for cpu in "23")
    now = node.restart(node.admit(running("restricted", scope), same)[0])
    offers = [node.admit(now, each)[1].alignments[0].offers[0] for each in (same, other)]
    assert [each.resource for each in offers] == ["cpu", "cpu"]
    assert [list(each.hints.masks) if each.hints else None for each in offers] == [[1, 3], []]
    assert node.admit(now, other)[1].reason == errors.TOPOLOGY_AFFINITY


def test_a_pod_of_which_one_container_has_cpus_is_offered_their_numa_node() -> None:
    now = running("restricted", "pod")
    assert now.cpu is not None
    held = mask_of([8, 9])
    state = CpuState(now.cpu.topology.all & ~held)
    state.assign("p", "x", held)
    asked = demand(pod("p", container("x", cpu="2"), container("y", cpu="1")), now.settings)
    offer = now.cpu.pod_hints(state, asked)
    assert offer is not None
    assert offer.hints is not None
    assert list(offer.hints.masks) == [2, 3]


def test_a_pod_without_cpus_left_for_those_who_share_is_offered_none() -> None:
    now = running("restricted", "pod", feature_gates={"PodLevelResourceManagers": True})
    asked = pod("p", container("own", "4"), Container("rest"), whole={"cpu": "4", "memory": "1Gi"})
    _, verdict = node.admit(now, asked)
    offers = {each.resource: each.hints for each in verdict.alignments[0].offers}
    assert offers["cpu"] is not None
    assert (verdict.reason, list(offers["cpu"].masks)) == (errors.TOPOLOGY_AFFINITY, [])


def test_a_container_gives_back_what_no_other_of_its_pod_uses() -> None:
    of = policy(machine())
    state = CpuState(mask_of([0, 1]))
    state.assign("p", "init", mask_of([2, 3]))
    state.assign("p", "app", mask_of([2]))
    of.remove(state, "p", "init", False)
    assert nodes_of(state.default) == [0, 1, 3]
    of.remove(state, "p", "app", False)
    assert (nodes_of(state.default), state.assignments) == ([0, 1, 2, 3], {})


@pytest.mark.parametrize(
    ("whole", "after"), [(True, [[0, 1], [0, 1, 2, 3]]), (False, [[0, 1, 2], [0, 1, 2, 3]])]
)
def test_a_pod_that_asked_as_a_whole_gives_back_all_with_its_last_container(
    whole: bool, after: list[list[int]]
) -> None:  # fmt: skip
    of = policy(machine())
    state = CpuState(mask_of([0, 1]), pods={"p": mask_of([2, 3])})
    state.assign("p", "a", mask_of([2]))
    state.assign("p", "b", mask_of([3]))
    given = []
    for name in "ab":
        of.remove(state, "p", name, whole)
        given.append(nodes_of(state.default))
    assert given == after
    assert state.pods == ({} if whole else {"p": mask_of([2, 3])})


def test_each_container_whose_cpus_are_in_the_shared_pool_may_be_the_one_that_is_named() -> None:
    state = CpuState(mask_of(range(5)))
    for uid in "ba":
        for name in "zy":
            state.assign(uid, name, mask_of([2, 3]))
    with pytest.raises(StartError) as refused:
        policy(machine()).validate(state, False)
    assert [str(refused.value), *refused.value.alternatives] == [
        f'pod: {uid}, container: {name} cpuset: "2-3" overlaps with default cpuset "0-4"'
        for uid in "ab"
        for name in "yz"
    ]


@pytest.mark.parametrize(
    ("init", "containers", "given"),
    [
        ((Container("side", sidecar=True),), (container("own", "2"),), {"own": "2-3", "side": "4-5"}),
        (
            (),
            (container("own", "2"), container("more", "1"), Container("rest")),
            {"own": "2-3", "more": "4", "rest": "5"},
        ),
    ],
)
def test_who_has_cpus_of_a_whole_pod_and_who_shares_the_rest(
    init: tuple[Container, ...], containers: tuple[Container, ...], given: dict[str, str]
) -> None:
    now = running("best-effort", "pod", feature_gates={"PodLevelResourceManagers": True})
    asked = pod("p", *containers, init=init, whole={"cpu": "4", "memory": "1Gi"})
    _, verdict = node.admit(now, asked)
    assert {name: str(each.cpus) for name, each in verdict.placements.items()} == given


def test_a_sidecar_that_shares_is_not_forgotten_over_one_that_does_not() -> None:
    now = running("best-effort", "pod", feature_gates={"PodLevelResourceManagers": True})
    init = (Container("shares", sidecar=True), container("own", "1", sidecar=True))
    asked = pod("p", container("main", "3"), init=init, whole={"cpu": "4", "memory": "1Gi"})
    assert node.admit(now, asked)[1].reason == errors.EMPTY_POD_SHARED_POOL


def test_cpus_that_only_a_whole_pod_holds_count_where_pods_are_held_as_a_whole() -> None:
    of = policy(machine())
    state = CpuState(of.topology.all & ~mask_of([2, 3]), pods={"p": mask_of([2, 3])})
    state.assign("p", "a", mask_of([2]))
    of.validate(state, True)
    with pytest.raises(StartError, match="doesn't match with CPUs in state"):
        of.validate(state, False)


@pytest.mark.parametrize(("reserved", "number"), [("1", 1), ("1001m", 2), ("500m", 1)])
def test_a_part_of_a_cpu_reserves_a_whole_one(reserved: str, number: int) -> None:
    assert policy(machine(), reservation={"cpu": reserved, "memory": "1Gi"}).reserved.bit_count() == number


def test_each_cpu_that_is_not_there_may_be_the_one_that_is_named() -> None:
    with pytest.raises(StartError) as refused:
        policy(machine(), reserved_system_cpus="90-92", reservation={"cpu": "3", "memory": "1Gi"})
    named = [str(refused.value), *refused.value.alternatives]
    assert [each.rpartition(" ")[2] for each in named] == ["90", "91", "92"]


def test_a_list_of_cpus_that_is_none_is_refused() -> None:
    with pytest.raises(StartError, match=r'parsing "x": invalid syntax'):
        policy(machine(), reserved_system_cpus="0-x")
