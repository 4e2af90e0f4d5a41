"""A change of the kubelet, from the preview to the node: what numaweb says before is what the real kubelet does after."""

import pytest

from numacore.change import order as orders
from numacore.change.wish import Wish
from tests.appliers.contract import code
from tests.node import exporter, pods
from tests.node.applier import Applier
from tests.node.lab import Lab, until

NONE = (
    ("cpuManagerPolicy: static", "cpuManagerPolicy: none"),
    (
        "topologyManagerPolicy: single-numa-node",
        "topologyManagerPolicy: none   # until the new machines come",
    ),
    ("memoryManagerPolicy: Static", "memoryManagerPolicy: None"),
)
"""How most clusters begin."""


@pytest.fixture
def plain(shared_lab: Lab) -> Lab:
    """A node whose kubelet aligns nothing."""
    shared_lab.fresh(*NONE)
    return shared_lab


def running(lab: Lab, *pinned: tuple[str, int]) -> dict[str, str]:
    """Pods with so many CPUs each, made one after the other; their uids."""
    for name, cpus in pinned:
        lab.plane.api.create(pods.pinned(name, cpus=cpus))
        lab.until_phase(name, "Running")
    return {name: lab.pod(name)["metadata"]["uid"] for name, _ in pinned}


def test_none_to_single_numa_node_and_back_to_the_original(plain: Lab) -> None:
    lab, applier = plain, Applier(plain)
    own = exporter.deploy(lab)
    uids = running(lab, ("one", 2), ("two", 3))
    # With the exporter's share nothing is left: the Job has to fit in all the same, and nobody has to go for it.
    lab.plane.api.create(pods.waiting("rest", resources={"requests": {"cpu": "980m"}}))
    lab.until_phase("rest", "Running")
    everybody = ("one", "two", "rest")
    original, containers = lab.settings(), lab.containers(*everybody)

    change = exporter.preview(
        lab, exporter.knowing(own, *everybody), Wish(topology_policy="single-numa-node")
    )
    assert change.refusals == ()
    assert change.changed is not None
    assert change.changed.survives
    assert [each.file for each in change.state_files] == ["cpu_manager_state"]
    answer = applier.give(applier.planned(change))
    assert (answer.outcome, answer.words, answer.source) == ("applied", "", "configz")
    assert answer.in_force is not None
    assert {name: answer.in_force[name] for name in change.keys} == change.keys
    assert answer.removed_state == ("cpu_manager_state",)
    assert lab.settings() == change.new_text
    assert "topologyManagerPolicy: single-numa-node   # until the new machines come\n" in change.new_text
    assert lab.configz()["topologyManagerPolicy"] == "single-numa-node"
    assert lab.kubelet_process() == (answer.main_pid, 0)
    assert lab.containers(*everybody) == containers
    entries = {uids["one"]: {"main": "2-3"}, uids["two"]: {"main": "4-6"}}
    assert lab.state("cpu_manager_state")["entries"] == entries
    assert applier.leftovers() == ""

    restore = applier.order(
        {},
        act="restore",
        removed=tuple(change.keys),
        after=orders.sha256(original),
        state_files=("cpu_manager_state",),
    )
    answer = applier.give(restore)
    assert (answer.outcome, answer.words) == ("applied", "")
    assert lab.settings() == original
    assert lab.configz()["topologyManagerPolicy"] == "none"
    assert lab.containers(*everybody) == containers
    assert applier.leftovers() == ""


@pytest.mark.short
def test_a_kubelet_that_does_not_start_goes_back(lab: Lab) -> None:
    applier = Applier(lab)
    running(lab, ("one", 2))
    settings, containers = lab.settings(), lab.containers("one")
    states = {name: lab.state(name) for name in ("cpu_manager_state", "memory_manager_state")}
    too_little = [{"numaNode": each, "limits": {"memory": "200Mi"}} for each in (0, 1)]
    order = applier.order(
        {"reservedMemory": too_little}, state_files=("cpu_manager_state", "memory_manager_state")
    )
    answer = applier.give(order)
    assert (answer.outcome, code(answer)) == ("restored", "kubelet-dies"), answer.words
    assert lab.settings() == settings
    assert {name: lab.state(name) for name in states} == states
    assert lab.kubelet_process()[0] == answer.main_pid
    assert lab.containers("one") == containers
    assert applier.leftovers() == ""


@pytest.mark.short
def test_a_pod_across_numa_nodes_is_lost_as_the_preview_says(shared_lab: Lab) -> None:
    lab = shared_lab
    lab.fresh(
        ("topologyManagerPolicy: single-numa-node", "topologyManagerPolicy: best-effort"),
        ("memoryManagerPolicy: Static", "memoryManagerPolicy: None"),
        ('reservedSystemCPUs: "0-1"', 'reservedSystemCPUs: "0"'),
    )
    applier, own = Applier(lab), exporter.deploy(lab)
    uids = running(lab, ("stays", 1), ("wide", 5))
    containers = lab.containers("stays")

    told = exporter.knowing(own, "stays", "wide")
    change = exporter.preview(lab, told, Wish(topology_policy="single-numa-node"))
    assert change.refusals == ()
    assert change.changed is not None
    lost = {each.pod.uid: each.verdict.reason for each in change.changed.lost}
    assert lost == {uids["wide"]: "TopologyAffinityError"}
    assert change.state_files == ()
    answer = applier.give(applier.planned(change))
    assert (answer.outcome, answer.words) == ("applied", "")
    # Its phase may be either: the program ends with 0 when it is told to.
    until(lambda: lab.pod("wide")["status"]["phase"] in ("Failed", "Succeeded"), "the end of the pod across")
    assert "TopologyAffinityError" in {event["reason"] for event in lab.events("wide")}
    assert lab.containers("stays") == containers
    assert set(lab.state("cpu_manager_state")["entries"]) == {uids["stays"]}
