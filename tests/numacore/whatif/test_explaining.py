"""A refusal names the NUMA node, the resource, what it has and what is asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numacore import manifest
from numacore.diagnosis import Reason
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
    known = msgspec.structs.replace(nodes.named("n1"), assumed=(Reason("version-assumed"),))
    changed = judging.set_otherwise(known, policy="Restricted")
    problem = Reason("would-not-start", {"message": 'unknown policy: "Restricted"'})
    assert changed == Candidate(name="n1", assumed=known.assumed, problem=problem)


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


def failed_in_memory(*offers: Offer, provider: Any = "memory") -> tuple[str, dict[str, Any]]:
    """A container whose hints were accepted and whose memory could not be had all the same."""
    message = "Allocate failed due to [memorymanager] preferred hint violates NUMA node allocation, which is unexpected"
    alignment = Alignment("web", offers, Hint(None, False), accepted=True)
    verdict = msgspec.structs.replace(
        refused(message), alignments=(alignment,), failure=Failure("web", provider)
    )
    (found,) = explaining.why(verdict, "best-effort")
    return found.code, found.values


def test_where_memory_fails_the_fullest_numa_node_is_named_with_its_amounts() -> None:
    cpu = offer("cpu", 9, {0: 4, 1: 4}, {0: 4, 1: 4})
    memory = offer("memory", 9, {0: 3, 1: 7, 2: 5}, {0: 8, 1: 16, 2: 8})
    assert failed_in_memory(cpu, memory) == (
        "memory-lacks",
        {"container": "web", "resource": "memory", "numa": "1", "asked": 9, "free": 7, "total": 16},
    )


def test_of_several_kinds_of_memory_the_one_that_no_numa_node_has_enough_of_is_named() -> None:
    memory = offer("memory", 7, {0: 3, 1: 7}, {0: 8, 1: 8})
    pages = offer("hugepages-2Mi", 4, {0: 2, 1: 3}, {0: 4, 1: 4})
    code, values = failed_in_memory(memory, pages)
    assert (code, values["resource"], values["numa"], values["free"]) == (
        "memory-lacks",
        "hugepages-2Mi",
        "1",
        3,
    )


def test_where_one_numa_node_has_enough_memory_the_kubelets_own_words_count() -> None:
    assert failed_in_memory(offer("memory", 7, {0: 3, 1: 7}, {0: 8, 1: 8})) == (
        "memory-groups",
        {"container": "web"},
    )
    assert failed_in_memory(offer("memory", 7, {}, {}))[0] == "memory-groups"
    assert failed_in_memory(offer("memory", 9, {0: 1}, {0: 8}), provider="cpu")[0] == "memory-groups"


def test_memory_that_fails_without_a_topology_manager_has_no_amounts_to_name() -> None:
    message = "Allocate failed due to [memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available, which is unexpected"
    verdict = msgspec.structs.replace(refused(message), failure=Failure("web", "memory"))
    assert [each.code for each in explaining.why(verdict, "none")] == ["memory-nowhere"]
    assert [each.code for each in explaining.why(msgspec.structs.replace(verdict, failure=None), "none")] == [
        "memory-nowhere"
    ]


def test_a_pod_whose_containers_have_nothing_left_to_share() -> None:
    (found,) = explaining.why(refused("any words", errors.EMPTY_POD_SHARED_POOL), "restricted")
    assert (found.code, found.values) == ("empty-shared-pool", {"container": "web"})


@pytest.mark.parametrize("failure", [None, Failure(None, "cpu")])
def test_a_refusal_of_no_single_container_names_the_pod(failure: Failure | None) -> None:
    verdict = msgspec.structs.replace(refused("failed to allocate cpus"), failure=failure)
    (found,) = explaining.why(verdict, "none")
    assert (found.code, found.values) == ("cpus-not-divisible", {"container": ""})


def test_an_alignment_of_the_whole_pod_names_no_container() -> None:
    alignment = Alignment(None, (offer("cpu", 9, {0: 8}, {0: 8}),), Hint(None, False), accepted=False)
    verdict = msgspec.structs.replace(refused("", errors.TOPOLOGY_AFFINITY), alignments=(alignment,))
    (found,) = explaining.why(verdict, "single-numa-node")
    assert (found.code, found.values["container"]) == ("numa-lacks", "")


def test_a_refusal_for_alignment_without_evidence_is_told_in_the_kubelets_words() -> None:
    (found,) = explaining.why(refused("not aligned", errors.TOPOLOGY_AFFINITY), "restricted")
    assert (found.code, found.values["message"]) == ("refused-otherwise", "not aligned")


def test_alignments_of_containers_that_were_admitted_say_nothing_of_another_refusal() -> None:
    alignment = Alignment("web", (offer("cpu", 2, {0: 8}, {0: 8}),), Hint(1, True), accepted=True)
    verdict = msgspec.structs.replace(refused("failed to allocate cpus"), alignments=(alignment,))
    assert [each.code for each in explaining.why(verdict, "restricted")] == ["cpus-not-divisible"]


def test_resources_without_an_opinion_or_without_amounts_do_not_explain_a_refusal() -> None:
    """No hints = no preference; hints without amounts = a device manager of an older trace."""
    opinionless = Offer("vendor.example/nic", 1, None, {0: 0}, {0: 4})
    uncounted = Offer("vendor.example/gpu", 1, IMPOSSIBLE, {}, {})
    code, values = not_aligned(
        opinionless, uncounted, offer("cpu", 9, {0: 8, 1: 4}, {0: 8, 1: 8}), policy="single-numa-node"
    )
    assert (code, values["resource"], values["numa"]) == ("numa-lacks", "cpu", "0")


def test_what_is_lacking_altogether_counts_only_where_no_hint_is_left() -> None:
    scarce = Offer("cpu", 6, Hints((1,), ()), {0: 1, 1: 4}, {0: 4, 1: 4})
    assert not_aligned(scarce)[0] == "numa-set-lacks"
    enough = Offer("cpu", 5, IMPOSSIBLE, {0: 1, 1: 4}, {0: 4, 1: 4})
    assert not_aligned(enough)[0] == "no-common-numa"


def test_a_width_is_counted_with_the_largest_numa_nodes_first() -> None:
    """12 CPUs need two of these NUMA nodes, 8 and 4, not three; one node is enough for exactly 8."""
    uneven = offer("cpu", 12, {0: 2, 1: 4, 2: 7}, {0: 2, 1: 4, 2: 8})
    code, values = not_aligned(uneven, policy="best-effort")
    assert (code, values["numa"], values["free"]) == ("numa-set-lacks", "1, 2", 11)
    exact = offer("cpu", 8, {0: 2, 1: 4, 2: 7}, {0: 2, 1: 4, 2: 8})
    code, values = not_aligned(exact)
    assert (code, values["numa"], values["free"]) == ("numa-lacks", "2", 7)


def test_nothing_offered_at_all_is_no_common_numa_node() -> None:
    for policy in ("restricted", "single-numa-node", "best-effort"):
        assert not_aligned(policy=policy) == (
            "no-common-numa",
            {"container": "web", "policy": policy, "resources": ""},
        )


def test_scope_alone_may_be_imagined_and_of_an_unknown_node_nothing() -> None:
    changed = judging.set_otherwise(nodes.named("n1"), scope="pod")
    assert changed.kubelet is not None
    assert (
        changed.kubelet.settings.topology_manager_policy,
        changed.kubelet.settings.topology_manager_scope,
    ) == (
        "restricted",
        "pod",
    )
    blind = Candidate(name="blind")
    assert judging.set_otherwise(blind, policy="restricted") is blind


def test_a_numa_node_of_memory_alone_has_no_cpus_to_give() -> None:
    cpu = offer("cpu", 4, {0: 1}, {0: 4})
    memory = offer("memory", 10, {0: 2, 1: 20}, {0: 20, 1: 20})
    code, values = not_aligned(cpu, memory, policy="single-numa-node")
    assert (code, values["resource"], values["numa"], values["free"], values["total"]) == (
        "numa-lacks",
        "cpu",
        "1",
        0,
        0,
    )
