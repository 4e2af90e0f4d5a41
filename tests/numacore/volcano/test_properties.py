"""What holds for every machine and every pod."""

from hypothesis import given
from hypothesis import strategies as st

from numacore.cpuset import CpuSet
from numacore.volcano import plugin
from numacore.volcano.topology import Cpu, Numatopology
from tests.numacore.volcano.builders import machine, node, pod

POLICIES = ["best-effort", "restricted", "single-numa-node"]


@st.composite
def machines(draw: st.DrawFn, *, unique: bool | None = None) -> dict[int, Cpu]:
    numa_nodes = draw(st.sampled_from([1, 2, 4]))
    return machine(
        numa_nodes,
        draw(st.integers(1, 6)),
        threads=draw(st.sampled_from([1, 2])),
        sockets=draw(st.sampled_from([1, numa_nodes])),
        unique=draw(st.booleans()) if unique is None else unique,
    )


@st.composite
def nodes(draw: st.DrawFn, *, unique: bool | None = None) -> Numatopology:
    cpus = draw(machines(unique=unique))
    free = draw(st.sets(st.sampled_from(sorted(cpus)), min_size=1))
    reserved = draw(st.sampled_from([None, "0", "0.5", "1", "2"]))
    return node(cpus, free, policy=draw(st.sampled_from(POLICIES)), reserved=reserved)


REQUESTS = st.lists(st.integers(1, 12), min_size=1, max_size=3)


@given(on=nodes(), requests=REQUESTS)
def test_no_cpu_is_given_twice_or_from_outside(on: Numatopology, requests: list[int]) -> None:
    for outcome in plugin.predicate(pod(*requests, policy=on.topology_manager), on):
        seen = CpuSet()
        for step in outcome.steps:
            assert step.cpus <= on.allocatable
            assert not step.cpus & seen
            seen = seen | step.cpus


@given(on=nodes(unique=True), requests=REQUESTS)
def test_with_unique_core_ids_a_container_gets_what_it_asks_or_nothing(
    on: Numatopology, requests: list[int]
) -> None:
    for outcome in plugin.predicate(pod(*requests, policy=on.topology_manager), on):
        assert all(len(step.cpus) in {0, step.request} for step in outcome.steps)


@given(on=nodes(), requests=REQUESTS)
def test_single_numa_node_means_it(on: Numatopology, requests: list[int]) -> None:
    strict = node(dict(on.cpus), on.allocatable, policy="single-numa-node")
    for outcome in plugin.predicate(pod(*requests), strict):
        for step in outcome.steps:
            assert len({strict.cpus[cpu].numa for cpu in step.cpus}) <= 1


@given(on=nodes(), request=st.integers(1, 12))
def test_a_stricter_policy_admits_no_more(on: Numatopology, request: int) -> None:
    fits = [
        plugin.predicate(
            pod(request, policy=policy), node(dict(on.cpus), on.allocatable, policy=policy, reserved="1")
        )[0].fit
        for policy in POLICIES
    ]
    assert fits == sorted(fits, reverse=True)


@given(on=nodes(), request=st.integers(1, 12), policy=st.sampled_from(POLICIES))
def test_more_free_cpus_refuse_nobody(on: Numatopology, request: int, policy: str) -> None:
    asked = pod(request, policy=policy)
    (before, *_), (after, *_) = (
        plugin.predicate(asked, node(dict(on.cpus), free, policy=policy))
        for free in (on.allocatable, on.cpus)
    )
    assert before.fit <= after.fit


@given(on=nodes(), requests=REQUESTS)
def test_it_answers_the_same_again(on: Numatopology, requests: list[int]) -> None:
    asked = pod(*requests, policy=on.topology_manager)
    assert plugin.judge_node(asked, on) == plugin.judge_node(asked, on)
