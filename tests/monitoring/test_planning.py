"""Plans over the nodes of a cluster: who admits, who does not and why, in which order, and how far the time reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from monitoring.models import Cluster, KubernetesNode
from monitoring.selectors import planning
from monitoring.selectors.planning import Plan, Question
from monitoring.sources import manifest
from numacore import lint, report
from numacore.cpuset import CpuSet
from numacore.kubeletstate import Kubelet
from tests.monitoring import planned
from tests.monitoring.pages import seeds

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    planning.forget()
    yield
    planning.forget()


@pytest.fixture
def cluster() -> Cluster:
    return planned.cluster()


def plan(cluster: Cluster, text: str, seconds: float = 60.0, **asked: Any) -> Plan:
    (group,) = manifest.read(text)
    return planning.plan(cluster, group, Question(**asked), timezone.now(), seconds=seconds)


def states(found: Plan) -> dict[str, str]:
    return {row.node: row.state for row in found.rows}


@pytest.mark.parametrize(
    ("written", "taken"),
    [("10", (10, True)), ("010", (8, True)), ("5 # low", (5, True)), ("1:30", (1, False)), ("0x10", (16, True)), ("[", (1, False)), ("on", (1, False))],
)  # fmt: skip
def test_a_weight_is_read_as_volcanos_yaml_library_reads_it(written: str, taken: tuple[int, bool]) -> None:
    assert Question(weight=written).volcano_weight == taken


def test_it_says_of_every_node_what_would_become_of_the_pod(cluster: Cluster) -> None:
    found = plan(cluster, planned.job())
    assert states(found) == {
        "wide": "admitted",
        "strict": "admitted",
        "blind": "unknown",
        "silent": "unknown",
    }
    wide = found.rows[0]
    assert (wide.node, wide.cpus, wide.numa, wide.fits) == ("wide", CpuSet.parse("4-5"), (1,), 1)
    assert wide.policies == dict.fromkeys(planning.question.POLICIES, "admitted")
    assert [row.why[0].code for row in found.in_state("unknown")] == ["kubelet-unknown", "no-data"]


def test_the_best_node_is_one_that_volcano_would_choose(cluster: Cluster) -> None:
    best = plan(cluster, planned.job(policy="single-numa-node")).best
    assert best is not None
    assert (best.node, best.disagreement, best.score is not None) == ("strict", None, True)


def test_a_disagreement_is_named(cluster: Cluster) -> None:
    by_node = {row.node: row for row in plan(cluster, planned.job(policy="single-numa-node")).rows}
    found = by_node["wide"].disagreement
    assert found is not None
    assert (found.side, found.cause) == ("volcano-refuses", "policy-names")


def test_a_refusal_names_numa_node_resource_and_amounts(cluster: Cluster) -> None:
    found = plan(cluster, planned.job("5"))
    by_node = {row.node: row for row in found.rows}
    assert by_node["strict"].state == "refused"
    assert by_node["strict"].why[0].values["numa"] == "1"
    assert by_node["strict"].policies == {
        "none": "admitted",
        "best-effort": "admitted",
        "restricted": "admitted",
        "single-numa-node": "refused",
    }


def test_another_policy_is_imagined_everywhere(cluster: Cluster) -> None:
    found = plan(cluster, planned.job("5"), policy="single-numa-node")
    assert states(found) == {"wide": "refused", "strict": "refused", "blind": "unknown", "silent": "unknown"}


def test_it_counts_how_many_pods_fit(cluster: Cluster) -> None:
    found = plan(cluster, planned.job("2"), replicas=10_000, names=("wide",))
    assert (found.replicas, found.wanted, found.rows[0].fits) == (10_000, 200, 2)
    assert found.rows[0].last == ()


def test_nodes_are_chosen_by_name_and_policy(cluster: Cluster) -> None:
    assert set(states(plan(cluster, planned.job(), find="I"))) == {"blind", "silent", "strict", "wide"}
    assert set(states(plan(cluster, planned.job(), find="rict"))) == {"strict"}
    assert set(states(plan(cluster, planned.job(), on="single-numa-node"))) == {"strict"}


def test_a_node_that_is_not_there_is_named(cluster: Cluster) -> None:
    with pytest.raises(planning.UnknownNodesError) as caught:
        plan(cluster, planned.job(), names=("wide", "nowhere"))
    assert caught.value.names == ("nowhere",)


def test_without_time_it_judges_one_kind_of_node_and_goes_on_when_asked_again(cluster: Cluster) -> None:
    first = plan(cluster, planned.job(), seconds=-1.0)
    assert (len(first.rows), first.pending) == (2, 2)
    seen = [first.pending]
    while seen[-1]:
        seen.append(plan(cluster, planned.job(), seconds=-1.0).pending)
        assert len(seen) < 4
    assert states(plan(cluster, planned.job(), seconds=-1.0)) == states(plan(cluster, planned.job()))


def test_a_node_that_changed_is_judged_anew(cluster: Cluster) -> None:
    assert states(plan(cluster, planned.job("5"), names=("wide",))) == {"wide": "admitted"}
    row = cluster.nodes.get(name="wide")
    facts = planned.facts(topologyManagerPolicy="single-numa-node")
    seeds.live(row, facts, report.node_report(facts), timezone.now().timestamp())
    assert states(plan(cluster, planned.job("5"), names=("wide",))) == {"wide": "refused"}


def test_old_data_is_said_to_be_old(cluster: Cluster) -> None:
    seeds.node(cluster, "late", planned.facts(), heard=timezone.now().timestamp() - 3600)
    (row,) = plan(cluster, planned.job(), names=("late",)).rows
    assert row.stale
    assert row.age is not None
    assert row.age > 3000


def test_the_linter_learns_the_capacity_of_the_nodes(cluster: Cluster) -> None:
    (group,) = manifest.read(planned.job("5", "single-numa-node"))
    found = planning.capacities(cluster, Question(), timezone.now())
    assert [each.reason.code for each in lint.lint(group, found)] == ["larger-than-numa"]


def test_the_evidence_of_a_node_has_offers_alternatives_and_facts(cluster: Cluster) -> None:
    (group,) = manifest.read(planned.job("5"))
    found = planning.detail(cluster, group, Question(), "strict", timezone.now())
    assert found is not None
    assert found.row.state == "refused"
    assert found.answer.first is not None
    (offer,) = found.answer.first.alignments[-1].offers
    assert (offer.requested, offer.free, offer.total) == (5, {0: 1, 1: 4}, {0: 4, 1: 4})
    assert len(found.alternatives) == 7
    assert planning.detail(cluster, group, Question(), "silent", timezone.now()) is None


@pytest.mark.parametrize(
    ("version", "assumed"),
    [
        ("v1.36.3", []),
        ("v1.27.1", ["version-documents"]),
        ("", ["version-assumed"]),
        ("none", ["version-assumed"]),
    ],
)
def test_the_api_server_knows_the_version_of_a_kubelet_that_its_node_does_not_tell(
    cluster: Cluster, version: str, assumed: list[str]
) -> None:
    node = cluster.nodes.get(name="wide")
    silent = msgspec.structs.replace(planned.facts().kubelet or Kubelet(), version=None)
    facts = msgspec.structs.replace(planned.facts(), kubelet=silent)
    seeds.live(node, facts, report.node_report(facts), timezone.now().timestamp())
    KubernetesNode.objects.create(node=node, kubelet_version=version, updated=timezone.now())
    (row,) = plan(cluster, planned.job(), names=("wide",)).rows
    assert [each.code for each in row.assumed if each.code.startswith("version")] == assumed


def test_more_nodes_cost_no_more_queries(cluster: Cluster) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as caught:
            plan(cluster, planned.job())
        return len(caught)

    before = cost()
    for number in range(12):
        seeds.node(cluster, f"more-{number}", planned.facts())
    assert cost() == before
