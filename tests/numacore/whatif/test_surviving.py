"""Would a node's kubelet survive a restart now, read from what its exporter tells."""

from __future__ import annotations

import msgspec
import pytest

from numacore.cpuset import CpuSet
from numacore.kubeletstate import CpuManagerState, Kubelet, Setting
from numacore.whatif.surviving import Outlook, outlook
from tests.numacore.whatif import nodes


def asked(told: Kubelet) -> Outlook:
    return outlook(nodes.facts(told))


def test_a_node_as_it_should_be_survives() -> None:
    found = asked(nodes.kubelet())
    assert found.survival is not None
    assert found.survival.survives
    assert found.problem is None


def test_a_changed_policy_beside_the_old_state_file_keeps_the_kubelet_from_starting() -> None:
    found = asked(nodes.kubelet(cpuManagerPolicy=Setting("none", "file")))
    assert found.survival is not None
    assert not found.survival.survives
    words = 'could not restore state from checkpoint: configured policy "none" differs from state checkpoint policy "static"'
    assert found.survival.refusal.startswith(words)


def test_a_cpu_that_is_gone_keeps_it_from_starting() -> None:
    state = CpuManagerState("static", CpuSet.parse("0,3-9"), nodes.HELD)
    found = asked(nodes.kubelet(cpu_state=state))
    assert found.survival is not None
    words = 'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-9"'
    assert found.survival.refusal == words


def test_a_pod_that_the_new_policy_refuses_is_named() -> None:
    """web holds CPUs of both sockets; single-numa-node would not give them so."""
    state = CpuManagerState("static", CpuSet.parse("0,2-6"), {"u1": {"web": CpuSet.parse("1,7")}})
    known = nodes.facts(
        nodes.kubelet(cpu_state=state, topologyManagerPolicy=Setting("single-numa-node", "file"))
    )
    (web,) = known.containers
    named = msgspec.structs.replace(web, namespace="shop", pod="web-0", exclusive=CpuSet.parse("1,7"))
    found = outlook(msgspec.structs.replace(known, containers=(named,)))
    assert found.survival is not None
    assert [found.running[each.pod.uid] for each in found.survival.lost] == ["shop/web-0"]
    assert found.survival.lost[0].verdict.reason == "TopologyAffinityError"


@pytest.mark.parametrize(
    ("told", "code"),
    [
        (Kubelet(), "kubelet-unknown"),
        (Kubelet(present=False), "no-kubelet"),
        (nodes.kubelet(cpu_state=None), "state-unknown"),
        (nodes.kubelet(evictionHard=Setting({"memory.available": "much"}, "file")), "settings-wrong"),
    ],
)
def test_where_too_little_is_known_it_says_so(told: Kubelet, code: str) -> None:
    found = asked(told)
    assert found.survival is None
    assert found.problem is not None
    assert found.problem.code == code
