"""Pods judged on nodes: how many fit, what the scheduler counts first, Volcano's score, other policies."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from numacore import manifest
from numacore.cpuset import CpuSet
from numacore.kubeletstate import CpuManagerState, Setting
from numacore.manifest import Group
from numacore.whatif import judging
from numacore.whatif.candidate import Candidate
from numacore.whatif.judging import NodeAnswer
from tests.numacore.whatif.nodes import HELD, kubelet, named


def group(cpu: str = "3", memory: str = "1Gi", policy: str = "", replicas: int = 1, **spec: Any) -> Group:
    amounts = {"cpu": cpu, "memory": memory}
    template = {
        "metadata": {"annotations": {manifest.POLICY_ANNOTATION: policy} if policy else {}},
        "spec": {"containers": [{"name": "app", "resources": {"limits": amounts}}]} | spec,
    }
    (made,) = manifest.read([{"kind": "Deployment", "spec": {"replicas": replicas, "template": template}}])
    return made


def volcano(**fields: Any) -> Group:
    return group(schedulerName="volcano", **({"policy": "restricted"} | fields))


def one(asked: Group, candidate: Candidate | None = None) -> NodeAnswer:
    (answer,) = judging.judge(asked, [candidate or named("n1")])
    return answer


def test_it_shows_the_cpus_of_the_first_pod_and_how_many_fit() -> None:
    answer = one(group(cpu="2", replicas=5))
    assert answer.first is not None
    assert answer.first.placements["app"].cpus == CpuSet.parse("4-5")
    assert answer.fits == 2
    assert answer.last is None, "the third is short of CPUs before any NUMA question"


def test_a_pod_that_fits_no_numa_node_now_is_refused_in_the_kubelets_words() -> None:
    answer = one(group(cpu="3", replicas=2), named("n1"))
    assert answer.fits == 1
    wide = one(group(cpu="4", replicas=1), named("n1"))
    assert wide.admitted is True
    full = named("n1", kubelet(topologyManagerPolicy=Setting("single-numa-node", "file")))
    refused = one(group(cpu="5"), full)
    assert refused.admitted is False
    assert refused.last is not None
    assert (refused.last.reason, refused.last.message) == (
        "TopologyAffinityError",
        "Resources cannot be allocated with Topology locality",
    )


def test_what_the_scheduler_counts_comes_before_any_numa_question() -> None:
    answer = one(group(cpu="6"))
    assert answer.shortage == judging.Shortage("cpu", Fraction(6), Fraction(5))
    assert (answer.fits, answer.admitted, answer.first) == (0, False, None)


def test_no_replica_at_all_is_still_judged_once() -> None:
    assert one(group(cpu="2", replicas=0)).fits == 1


def test_it_puts_no_endless_number_of_pods_onto_a_node() -> None:
    answer = one(group(cpu="0", memory="0", replicas=100_000))
    assert answer.fits == judging.MOST_REPLICAS


def test_a_node_that_cannot_be_judged_says_why() -> None:
    blind = named("n1", kubelet(cpu_state=None))
    answer = one(group(), blind)
    assert answer.problem is not None
    assert (answer.problem.code, answer.fits, answer.admitted) == ("state-unknown", None, None)


def test_volcano_is_asked_only_about_pods_that_it_schedules() -> None:
    assert one(group()).volcano is None
    answer = one(volcano())
    assert answer.volcano is not None
    assert answer.volcano.outcomes[0].fit


def test_volcano_scores_nodes_against_one_another() -> None:
    """On the first node four CPUs of NUMA node 1 are free, on the second only three; the third has another policy."""
    best_effort = {"topologyManagerPolicy": Setting("best-effort", "file")}
    state = CpuManagerState("static", CpuSet.parse("0,3,5-7"), HELD | {"u2": {"db": CpuSet.parse("4")}})
    candidates = [
        named("free", kubelet(**best_effort)),
        named("split", kubelet(cpu_state=state, **best_effort)),
        named("other"),
    ]
    answers = judging.judge(volcano(cpu="4", policy="best-effort"), candidates, weight=10)
    assert [each.score.value if each.score else None for each in answers] == [500, 0, None]


def test_the_same_pod_under_every_policy() -> None:
    candidate = named("n1")
    told = {
        (each.policy, each.scope): each.verdict.admitted if each.verdict else each.problem
        for each in judging.under_policies(group(cpu="5"), candidate)
    }
    assert told == {
        ("none", "container"): True,
        ("best-effort", "container"): True,
        ("best-effort", "pod"): True,
        ("restricted", "container"): True,
        ("restricted", "pod"): True,
        ("single-numa-node", "container"): False,
        ("single-numa-node", "pod"): False,
    }
    assert judging.under_policies(group(), Candidate(name="blind")) == ()
