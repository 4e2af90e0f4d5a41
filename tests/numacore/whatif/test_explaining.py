"""A refusal names the NUMA node, the resource, what it has and what is asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numacore import manifest
from numacore.hints import IMPOSSIBLE, Hint, Hints
from numacore.kubelet import errors
from numacore.kubelet.offers import Offer
from numacore.kubelet.verdict import Alignment, Failure, Verdict
from numacore.whatif import explaining, judging
from numacore.whatif.candidate import Candidate
from tests.numacore.whatif import nodes


def group(cpus: str, memory: str = "1Gi", **more: str) -> manifest.Group:
    limits = {"cpu": cpus, "memory": memory} | more
    return manifest.read(
        [{"kind": "Pod", "spec": {"containers": [{"name": "web", "resources": {"limits": limits}}]}}]
    )[0]


def reasons(asked: manifest.Group, policy: str) -> list[tuple[str, dict[str, Any]]]:
    candidate = judging.set_otherwise(nodes.named("n1"), policy=policy)
    verdict = judging.judge_node(asked, candidate, 1).first
    assert verdict is not None
    return [(each.code, each.values) for each in explaining.why(verdict, policy)]


def test_it_names_the_numa_node_that_comes_nearest() -> None:
    """CPUs 1 and 2 of NUMA node 0 are taken and 0 is reserved; NUMA node 1 has all four free."""
    ((code, values),) = reasons(group("5"), "single-numa-node")
    assert code == "numa-lacks"
    assert values == {
        "container": "web",
        "policy": "single-numa-node",
        "resource": "cpu",
        "numa": "1",
        "asked": 5,
        "free": 4,
        "total": 4,
    }


def test_an_admitted_pod_needs_no_reason() -> None:
    assert reasons(group("2"), "restricted") == []


def refused(message: str, reason: str = errors.UNEXPECTED, outcome: str = "refused") -> Verdict:
    found = Verdict(
        outcome="refused", qos="Guaranteed", reason=reason, message=message, failure=Failure("web", "cpu")
    )
    return msgspec.structs.replace(found, outcome=outcome)


@pytest.mark.parametrize(
    ("message", "code", "values"),
    [
        (
            "SMT Alignment Error: requested 7 cpus not multiple cpus per core = 2",
            "smt-multiple",
            {"asked": 7, "per_core": 2},
        ),
        (
            "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 4, requested CPUs = 8, CPUs per core = 2",
            "smt-short",
            {"asked": 8, "free": 4},
        ),
        (
            "Allocate failed due to not enough cpus available to satisfy request: requested=8, available=3, which is unexpected",
            "cpus-short",
            {"asked": 8, "free": 3},
        ),
        (
            "Allocate failed due to requested number of devices unavailable for vendor.example/gpu. Requested: 2, Available: 1, which is unexpected",
            "devices-short",
            {"resource": "vendor.example/gpu", "asked": 2, "free": 1},
        ),
        (
            "Allocate failed due to cannot allocate unregistered device vendor.example/gpu, which is unexpected",
            "devices-unregistered",
            {"resource": "vendor.example/gpu"},
        ),
        (
            "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices vendor.example/gpu, which is unexpected",
            "devices-unhealthy",
            {"resource": "vendor.example/gpu"},
        ),
        ("Allocate failed due to [memorymanager] preferred hint violates NUMA node allocation, which is unexpected", "memory-groups", {}),
        ("Allocate failed due to [memorymanager] failed to represent quantity as int64, which is unexpected", "memory-amount", {}),
    ],
)  # fmt: skip
def test_it_reads_the_kubelets_own_words(message: str, code: str, values: dict[str, Any]) -> None:
    (found,) = explaining.why(refused(message), "restricted")
    assert (found.code, found.values) == (code, {"container": "web"} | values)


def test_words_that_it_does_not_know_are_handed_on() -> None:
    (found,) = explaining.why(refused("something new", "NewError"), "restricted")
    assert (found.code, found.values["reason"], found.values["message"]) == (
        "refused-otherwise",
        "NewError",
        "something new",
    )


@pytest.mark.parametrize("outcome", ["panics", "hangs"])
def test_a_kubelet_that_falls_over_is_a_reason_of_its_own(outcome: str) -> None:
    (found,) = explaining.why(refused("boom", errors.PANIC, outcome), "none")
    assert (found.code, found.values) == (f"kubelet-{outcome}", {"message": "boom"})


def test_another_policy_is_imagined_for_volcano_too() -> None:
    changed = judging.set_otherwise(nodes.named("n1"), policy="single-numa-node", scope="pod")
    assert changed.kubelet is not None
    assert changed.kubelet.settings.topology_manager_scope == "pod"
    assert changed.volcano is not None
    assert changed.volcano.topology_manager == "single-numa-node"


def test_settings_that_no_kubelet_starts_with_are_said_to_be_so() -> None:
    changed = judging.set_otherwise(nodes.named("n1"), policy="Restricted")
    assert changed.problem is not None
    assert changed.problem.code == "would-not-start"


def test_nothing_imagined_changes_nothing() -> None:
    candidate: Candidate = nodes.named("n1")
    assert judging.set_otherwise(candidate) is candidate


def test_one_answer_is_not_open() -> None:
    candidate = nodes.named("n1")
    assert candidate.kubelet is not None
    assert judging.open_choices(group("2"), candidate.kubelet) == ()


def offer(name: str, requested: int, free: dict[int, int], total: dict[int, int]) -> Offer:
    return Offer(name, requested, Hints((1,), (1,)), free, total)


def not_aligned(*offers: Offer, policy: str = "restricted") -> tuple[str, dict[str, Any]]:
    alignment = Alignment("web", offers, Hint(None, False), accepted=False)
    verdict = msgspec.structs.replace(refused("", errors.TOPOLOGY_AFFINITY), alignments=(alignment,))
    (found,) = explaining.why(verdict, policy)
    return found.code, found.values


def test_restricted_wants_all_resources_equally_wide() -> None:
    code, values = not_aligned(
        offer("cpu", 12, {0: 8, 1: 8}, {0: 8, 1: 8}), offer("memory", 10, {0: 20, 1: 20}, {0: 20, 1: 20})
    )
    assert code == "widths-differ"
    assert (values["wide"], values["most"], values["narrow"], values["fewest"]) == ("cpu", 2, "memory", 1)


def test_a_set_of_numa_nodes_is_named_where_the_request_needs_several() -> None:
    code, values = not_aligned(offer("cpu", 12, {0: 8, 1: 3, 2: 0, 3: 2}, dict.fromkeys(range(4), 8)))
    assert (code, values["numa"], values["free"], values["total"]) == ("numa-set-lacks", "0, 1", 11, 16)


def test_resources_that_each_fit_but_never_together_are_named() -> None:
    code, values = not_aligned(
        offer("cpu", 4, {0: 8}, {0: 8}),
        offer("vendor.example/gpu", 1, {0: 1}, {0: 1}),
        policy="single-numa-node",
    )
    assert (code, values["resources"]) == ("no-common-numa", "cpu, vendor.example/gpu")


def test_it_says_what_is_free_altogether_where_no_set_of_numa_nodes_would_do() -> None:
    code, values = not_aligned(Offer("cpu", 6, IMPOSSIBLE, {0: 1, 1: 4}, {0: 4, 1: 4}))
    assert (code, values["asked"], values["free"], values["total"]) == ("not-enough-free", 6, 5, 8)
