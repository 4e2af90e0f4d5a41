"""Everybody's word about a node beside each other; what contradicts is named, what only one says does not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from monitoring.models import KubernetesNode, Node, SourceView
from monitoring.selectors import node_state, sources
from monitoring.selectors.sources import Fact
from tests.monitoring import planned

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def node() -> Node:
    return Node.objects.select_related("cluster").get(cluster=planned.cluster(), name="strict")


def say(node: Node, source: str, **values: Any) -> None:
    SourceView.objects.create(node=node, source=source, changed=NOW - timedelta(minutes=5), values=values)


def facts(node: Node) -> dict[str, Fact]:
    state = node_state(node.cluster, node.name, NOW)
    said = sources.voices(node, state.facts, state.report, 2.0, NOW)
    return {fact.name: fact for fact in sources.facts_of(said)}


def test_the_exporter_is_believed_and_others_stand_beside_it(node: Node) -> None:
    say(node, "numatopology", topology_policy="single-numa-node", reserved_cpus=1.0)
    found = facts(node)
    policy = found["topology_policy"]
    assert [(each.source, each.value, each.age) for each in policy.told] == [
        ("exporter", "single-numa-node", 2.0),
        ("numatopology", "single-numa-node", 300.0),
    ]
    assert not policy.contradicted
    assert [each.source for each in found["reserved_cpus"].told] == ["numatopology"]


@pytest.mark.parametrize(
    ("fact", "value", "contradicted"),
    [
        ("topology_policy", "restricted", True),
        ("topology_policy", "Single-Numa-Node", True),
        ("cpus", {"0": "0,1,2,3", "1": "4-7"}, False),
        ("cpus", {"0": "0-3"}, True),
        ("cpus", {"0": "zero"}, True),
        ("free_cpus", "0,3-7", False),
        ("free_cpus", "0-7", True),
        ("distances", {"0": {"0": 10}}, False),
        ("distances", {"0": {"0": 10, "1": 99}}, True),
    ],
)
def test_it_names_what_contradicts(node: Node, fact: str, value: object, contradicted: bool) -> None:
    say(node, "noderesourcetopology", **{fact: value})
    assert facts(node)[fact].contradicted is contradicted


def test_what_changes_all_the_time_is_no_contradiction(node: Node) -> None:
    say(node, "noderesourcetopology", cpu_available={"0": 1.0})
    say(node, "numatopology", cpu_available={"0": 3.0})
    assert not facts(node)["cpu_available"].contradicted


def test_a_node_without_an_exporter_is_what_others_say(node: Node) -> None:
    say(node, "numatopology", topology_policy="restricted")
    KubernetesNode.objects.create(node=node, kubelet_version="v1.37.2", updated=NOW)
    said = sources.voices(node, None, None, None, NOW)
    found = {fact.name: [each.source for each in fact.told] for fact in sources.facts_of(said)}
    assert found == {"topology_policy": ["numatopology"], "kubelet_version": ["api"]}
