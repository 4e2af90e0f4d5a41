"""Who is let through, and with which words."""

from fractions import Fraction

import msgspec
import pytest

from numacore.volcano import plugin
from numacore.volcano.pods import Container, Pod, qos, whole_cpus
from numacore.volcano.topology import Numatopology
from tests.numacore.volcano.builders import container, machine, node, pod

TWO = machine(2, 4)


def verdict(of: Pod, on: Numatopology | None) -> tuple[bool, str, str, bool]:
    judged = plugin.judge_node(of, on)
    (outcome,) = judged.outcomes
    return outcome.fit, outcome.reason, outcome.cause or judged.skipped, outcome.scored


@pytest.mark.parametrize(
    ("on", "reason", "cause"),
    [
        (None, "numa info is empty", "no-numatopology"),
        (node(TWO, cpu_manager="none"), "cpu manager policy isn't static", "not-static"),
        (node(TWO, cpu_manager="Static"), "cpu manager policy isn't static", "not-static"),
        (
            node(TWO, policy="restricted"),
            "task topology policy[single-numa-node] is different with node[restricted]",
            "other-policy",
        ),
        (
            node(TWO, policy=""),
            "task topology policy[single-numa-node] is different with node[]",
            "other-policy",
        ),
        (node(TWO, ""), "cpu allocatable map is empty", "no-cpus"),
        (node(TWO, "0,4"), "container c0 cannot be assigned by numa", "container"),
    ],
)
def test_a_pod_with_a_policy_is_refused(on: Numatopology | None, reason: str, cause: str) -> None:
    assert verdict(pod(2), on) == (False, reason, cause, False)


def test_policies_are_compared_as_texts() -> None:
    refused = verdict(pod(2, policy="Restricted"), node(TWO, policy="restricted"))
    assert refused[1] == "task topology policy[Restricted] is different with node[restricted]"


@pytest.mark.parametrize("policy", ["", "none"])
@pytest.mark.parametrize(
    ("on", "cause"),
    [
        (None, "no-numatopology"),
        (node(TWO, cpu_manager=""), "not-static"),
        (node(TWO, policy="none"), "no-policy"),
        (node(TWO, policy=""), "no-policy"),
    ],
)
def test_a_pod_without_a_policy_passes_unseen(policy: str, on: Numatopology | None, cause: str) -> None:
    assert verdict(pod(2, policy=policy), on) == (True, "", cause, False)


@pytest.mark.parametrize("policy", ["", "none"])
def test_the_policy_of_the_node_is_enforced_on_a_pod_without_one(policy: str) -> None:
    assert verdict(pod(5, policy=policy), node(TWO))[1] == "container c0 cannot be assigned by numa"
    assert verdict(pod(4, policy=policy), node(TWO)) == (True, "", "", True)


def test_a_pod_that_is_not_guaranteed_passes_whatever_its_policy() -> None:
    burstable = Pod((Container("c0", {"cpu": Fraction(9)}, {"cpu": Fraction(9)}),), "single-numa-node")
    assert verdict(burstable, None) == (True, "", "not-guaranteed", False)


@pytest.mark.parametrize("cpu", ["1.5", "0.5", None])
@pytest.mark.parametrize("policy", ["best-effort", "restricted", "single-numa-node"])
def test_a_request_that_is_not_whole_fits_every_policy_with_no_cpu(cpu: str | None, policy: str) -> None:
    amounts = {"memory": Fraction(1)} | ({"cpu": Fraction(cpu)} if cpu else {})
    asked = Pod((Container("c0", amounts, amounts | {"cpu": Fraction(cpu or 1)}),), policy)
    if cpu is None:  # a limit alone is Burstable, so a second container asks for the difference
        asked = Pod(
            (*asked.containers, Container("c1", {"cpu": Fraction(1), "memory": Fraction(1)}, amounts)), policy
        )
    (outcome,) = plugin.predicate(asked, node(TWO, "0", policy=policy))
    assert outcome.steps[0].hints is None
    assert outcome.steps[0].admitted
    assert not outcome.steps[0].cpus


@pytest.mark.parametrize(
    ("amount", "cpus", "why"),
    [("2", 2, ""), ("1.5", 0, "fraction"), ("0", 0, "zero"), ("0.9999", 1, ""), ("0.999", 0, "fraction")],
)
def test_whole_means_that_roundings_agree(amount: str, cpus: int, why: str) -> None:
    assert whole_cpus(container(amount)) == (cpus, why)


def test_no_request_is_not_zero() -> None:
    assert whole_cpus(container(None)) == (0, "no-request")


def test_init_containers_count_for_quality_and_for_nothing_else() -> None:
    asked = pod(2)
    with_init = Pod(asked.containers, asked.policy, (container(64, "i0"),))
    assert verdict(with_init, node(TWO)) == (True, "", "", True)
    careless = Pod(asked.containers, asked.policy, (Container("i0"),))
    assert verdict(careless, node(TWO))[2] == "not-guaranteed"


def test_quality_compares_sums_over_containers() -> None:
    one, two = {"cpu": Fraction(1), "memory": Fraction(1)}, {"cpu": Fraction(2), "memory": Fraction(1)}
    assert qos(Pod((Container("a", one, two), Container("b", two, one)))) == "Guaranteed"
    assert qos(Pod((Container("a", one, two), Container("b", one, one)))) == "Burstable"
    assert qos(Pod((Container("a"),))) == "BestEffort"


def test_reserved_cpus_are_guessed_from_their_number() -> None:
    """A reservation of 1.5 takes two CPUs away, the first ones, whatever the kubelet reserved."""
    (outcome,) = plugin.predicate(pod(3), node(TWO, reserved="1.5"))
    assert str(outcome.steps[0].reserved) == "0-1"
    assert str(outcome.cpus) == "4-6"


def test_a_node_that_fits_a_whole_numa_node_is_refused_for_its_core_ids() -> None:
    """20 CPUs of NUMA node 1 are free, but the guess at the reserved ones reaches into it."""
    by_socket = node(machine(2, 10, threads=2, unique=False), reserved="2")
    by_machine = node(machine(2, 10, threads=2), reserved="2")
    assert verdict(pod(20), by_socket)[1] == "container c0 cannot be assigned by numa"
    assert verdict(pod(20), by_machine)[0]


def test_containers_are_judged_in_order_on_what_is_left() -> None:
    (outcome,) = plugin.predicate(pod(3, 4, 2), node(TWO))
    assert [str(step.cpus) for step in outcome.steps] == ["0-2", "4-7", ""]
    assert outcome.reason == "container c2 cannot be assigned by numa"
    assert [str(step.free) for step in outcome.steps] == ["0-7", "3-7", "3"]


def test_an_allocation_that_fails_is_no_refusal() -> None:
    (outcome,) = plugin.predicate(pod(9, policy="best-effort"), node(TWO, policy="best-effort"))
    assert outcome.fit
    assert not outcome.cpus
    assert outcome.numa_nodes == 0


def test_a_verdict_can_be_explained() -> None:
    judged = plugin.judge_node(pod(4), node(TWO, "1-7", reserved="1"))
    (step,) = judged.outcomes[0].steps
    assert (judged.qos, judged.pod_policy, judged.node_policy) == (
        "Guaranteed",
        "single-numa-node",
        "single-numa-node",
    )
    assert [(hint.mask, hint.preferred) for hint in step.hints or ()] == [(0b10, True), (0b11, False)]
    assert (step.best.mask, str(step.free), str(step.cpus)) == (0b10, "1-7", "4-7")
    assert msgspec.json.decode(msgspec.json.encode(step, enc_hook=str))["cpus"] == "4-7"
