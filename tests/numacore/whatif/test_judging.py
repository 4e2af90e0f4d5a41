"""Pods judged on nodes: how many fit, what the scheduler counts first, Volcano's score, other policies."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec

from numacore import manifest
from numacore.cpuset import CpuSet
from numacore.diagnosis import Reason
from numacore.kubelet import node
from numacore.kubelet.machine import Machine
from numacore.kubeletstate import CpuManagerState, Setting
from numacore.manifest import Group
from numacore.whatif import judging
from numacore.whatif.candidate import Candidate, Room
from numacore.whatif.judging import NodeAnswer
from tests.numacore.kubelet import builders
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


def test_the_kubelets_answer_is_said_beside_a_shortage_for_volcano_too() -> None:
    answer = one(volcano(cpu="6"))
    assert answer.shortage is not None
    assert answer.volcano is not None
    assert answer.score is None, "what the scheduler lacks is no candidate for a score"


def test_a_manifest_without_replicas_asks_for_one_pod() -> None:
    without = msgspec.structs.replace(group(), replicas=None)
    assert [judging.wanted_of(without, each) for each in (None, 0, 7)] == [1, 1, 7]


# Workloads one after the other


def test_pods_that_come_first_stand_on_the_node_when_the_next_is_asked() -> None:
    """Two CPUs of NUMA node 1 go to the first workload; the next finds two more there, and Volcano sees them gone as well."""
    before = named("n1")
    later = judging.after(group(cpu="2"), before, 1)
    assert later.kubelet is not None
    assert before.kubelet is not None
    assert later.kubelet.state.pods.keys() - before.kubelet.state.pods.keys() == {"before-1-0"}
    assert node.shared_pool(later.kubelet) == CpuSet.parse("0,3,6-7")
    assert later.volcano is not None
    assert later.volcano.allocatable == CpuSet.parse("0,3,6-7")
    assert {name: each.requested for name, each in later.room.items()} == {
        "cpu": before.room["cpu"].requested + 2,
        "memory": before.room["memory"].requested + (1 << 30),
    }
    answer = one(group(cpu="2"), later)
    assert answer.first is not None
    assert answer.first.placements["app"].cpus == CpuSet.parse("6-7")


def test_a_third_workload_finds_both_before_it() -> None:
    twice = judging.after(group(cpu="1"), judging.after(group(cpu="2"), named("n1"), 1), 2)
    assert twice.kubelet is not None
    assert set(twice.kubelet.state.pods) == {"u1", "before-1-0", "before-2-0", "before-2-1"}
    assert node.shared_pool(twice.kubelet) == CpuSet.parse("0,7"), (
        "4-5 first, then the last of NUMA node 0 and 6"
    )
    assert twice.room["cpu"].requested == 2 + 2 + 1 + 1


def test_only_as_many_stand_there_as_the_scheduler_has_room_for() -> None:
    """Five CPUs are not requested yet."""
    later = judging.after(group(cpu="2"), named("n1"), 4)
    assert later.kubelet is not None
    assert len(later.kubelet.state.pods) == 1 + 2
    assert later.room["cpu"].requested == 2 + 4


def test_only_as_many_stand_there_as_the_kubelet_admits() -> None:
    single = named("n1", kubelet(topologyManagerPolicy=Setting("single-numa-node", "file")))
    one_fits = judging.after(group(cpu="3"), msgspec.structs.replace(single, room={}), 3)
    assert one_fits.kubelet is not None
    assert len(one_fits.kubelet.state.pods) == 1 + 1
    none_fits = judging.after(group(cpu="5"), single, 3)
    assert none_fits.kubelet is not None
    assert node.shared_pool(none_fits.kubelet) == CpuSet.parse("0,3-7")
    assert none_fits.room == single.room


def test_a_workload_on_shared_cpus_takes_none_from_volcanos_sight() -> None:
    before = named("n1")
    later = judging.after(group(cpu="500m"), before, 1)
    assert before.volcano is not None
    assert later.volcano is not None
    assert later.volcano.allocatable == before.volcano.allocatable
    assert judging.after(group(), msgspec.structs.replace(before, volcano=None), 1).volcano is None


def test_a_kubelet_that_would_die_of_what_comes_first_cannot_be_judged_any_more() -> None:
    """The second NUMA node lists no pages of 2 MiB."""
    first, second = builders.machine().nodes
    dying = builders.running(on=Machine((first, msgspec.structs.replace(second, hugepages={}))))
    assumed = (Reason("version-assumed", {"version": "1.37"}),)
    pages = {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "2Mi"}
    asked = group(containers=[{"name": "app", "resources": {"limits": pages}}])
    later = judging.after(asked, Candidate(name="n1", kubelet=dying, assumed=assumed), 2)
    assert later == Candidate(
        name="n1", assumed=assumed, problem=Reason("crashed-before", {"workload": asked.title})
    )


def test_a_node_that_cannot_be_judged_stays_as_it_is() -> None:
    blind = Candidate(name="blind", problem=Reason("no-data"))
    assert judging.after(group(), blind, 1) == blind


def without_count(policy: str) -> Candidate:
    """A node of which the scheduler knows nothing that is scarce."""
    found = named("n1", kubelet(topologyManagerPolicy=Setting(policy, "file")))
    return msgspec.structs.replace(found, room={})


def test_the_first_pod_that_does_not_fit_any_more_says_why() -> None:
    answer = one(group(cpu="3", replicas=3), without_count("single-numa-node"))
    assert (answer.fits, answer.admitted) == (1, True)
    assert answer.last is not None
    assert answer.last.reason == "TopologyAffinityError"


def test_each_pod_takes_its_own_cpus() -> None:
    """Five CPUs are free: the third pod of two CPUs finds one."""
    assert one(group(cpu="2", replicas=5), without_count("none")).fits == 2


def test_a_resource_that_is_given_away_twice_is_no_shortage_to_whoever_asks_for_none() -> None:
    room = {"vendor.example/x": Room(Fraction(5), Fraction(3)), "cpu": Room(Fraction(7), Fraction(7))}
    full = msgspec.structs.replace(without_count("none"), room=room)
    assert one(group(cpu="0", memory="0"), full).shortage is None
    assert one(group(cpu="1"), full).shortage == judging.Shortage("cpu", Fraction(1), Fraction(0))
    over = msgspec.structs.replace(full, room={"cpu": Room(Fraction(9), Fraction(7))})
    assert one(group(cpu="1"), over).shortage == judging.Shortage("cpu", Fraction(1), Fraction(0))


def test_of_a_pod_that_asks_as_a_whole_that_is_what_counts() -> None:
    asked = group(cpu="1", memory="3Gi", resources={"requests": {"cpu": "6"}, "limits": {"cpu": "6"}})
    assert judging.asked_for(asked, "cpu") == 6
    assert judging.asked_for(asked, "memory") == 3 << 30
    assert one(asked).shortage == judging.Shortage("cpu", Fraction(6), Fraction(5))


def test_only_devices_can_lack_a_plugin() -> None:
    known = msgspec.structs.replace(without_count("none"), devices_known=True)
    limits = {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "2Mi", "vendor.example/x": "0"}
    none = group(containers=[{"name": "app", "resources": {"limits": limits}}])
    assert one(none, known).shortage is None


def test_an_init_container_without_limits_makes_a_pod_that_volcano_does_not_look_at() -> None:
    answer = one(volcano(initContainers=[{"name": "setup"}]))
    assert answer.volcano is not None
    assert answer.volcano.skipped == "not-guaranteed"


def test_a_policy_with_which_the_kubelet_would_not_start_is_told_beside_the_others() -> None:
    """align-by-socket excludes single-numa-node."""
    told = kubelet(
        cpuManagerPolicyOptions=Setting({"align-by-socket": "true"}, "file"),
        featureGates=Setting({"CPUManagerPolicyAlphaOptions": True}, "file"),
    )
    alternatives = judging.under_policies(group(cpu="2"), named("n1", told))
    assert [(each.policy, each.scope) for each in alternatives if each.verdict is None] == [
        ("single-numa-node", "container"),
        ("single-numa-node", "pod"),
    ]
    for each in alternatives:
        assert (each.verdict is None) == ("incompatible with CPUManager align-by-socket" in each.problem)


def test_of_pods_on_shared_cpus_the_scheduler_counts_how_many_there_may_be() -> None:
    """Five CPUs are not requested yet, and a kubelet takes any number of pods on its shared CPUs."""
    later = judging.after(group(cpu="1500m", memory="64Mi"), named("n1"), 10)
    assert later.kubelet is not None
    assert len(later.kubelet.state.pods) == 1 + 3
    assert one(group(cpu="1500m", memory="64Mi", replicas=10)).fits == 3


def test_a_kubelet_that_would_hang_on_what_comes_first_cannot_be_judged_any_more() -> None:
    """tests/oracle/written.py, never-comes-back."""
    hanging = builders.running(
        on=builders.machine(4, cores=3),
        reserved_system_cpus="0,11,12,23",
        reservation={"cpu": "4", "memory": "1Gi"},
        cpu_manager_policy_options={"distribute-cpus-across-numa": "true", "full-pcpus-only": "true"},
    )
    later = judging.after(group(cpu="14"), Candidate(name="n1", kubelet=hanging), 1)
    assert later.kubelet is None
    assert later.problem is not None
    assert later.problem.code == "crashed-before"
    assert one(group(cpu="14"), Candidate(name="n1", kubelet=hanging)).admitted is False
