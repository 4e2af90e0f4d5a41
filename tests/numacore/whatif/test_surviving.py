"""Would a node's kubelet survive a restart now, read from what its exporter tells."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numacore.cpuset import CpuSet
from numacore.kubelet.pod import Pod
from numacore.kubeletstate import CpuManagerState, Kubelet, MemoryManagerState, MemoryTable, Setting
from numacore.whatif.surviving import Outlook, ageless, outlook, running_pods
from numacore.workload import Container, MemoryBlock
from tests.numacore import machines
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
    ],
)
def test_where_too_little_is_known_it_says_so(told: Kubelet, code: str) -> None:
    found = asked(told)
    assert found.survival is None
    assert found.problem is not None
    assert found.problem.code == code


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("evictionHard", {"memory.available": "much"}, "much"),
        ("reservedSystemCPUs", "0-", "0-"),
        ("topologyManagerPolicy", 7, "topologyManagerPolicy"),
    ],
)
def test_settings_that_nobody_can_read_are_told_with_what_is_wrong(
    field: str, value: Any, words: str
) -> None:
    found = asked(nodes.kubelet(**{field: Setting(value, "file")}))
    assert found.survival is None
    assert found.problem is not None
    assert found.problem.code == "settings-wrong"
    assert words in str(found.problem.values["message"])


NEW = CpuManagerState("static", CpuSet.parse("0-7"), {})
"""The state of a kubelet that starts on none."""


def seen(uid: str, name: str = "c", qos: str | None = "Guaranteed", **more: Any) -> Container:
    fields: dict[str, Any] = {
        "id": f"{uid}-{name}",
        "pod_uid": uid,
        "name": name,
        "qos": qos,
        "cpu_request": 2.0,
        "memory_limit": nodes.GIB,
    }
    return Container(**fields | more)


def test_which_pod_is_lost_depends_on_who_came_first() -> None:
    """Two pods of two CPUs each, and the new settings leave three: the younger one finds none."""
    told = nodes.kubelet(
        cpuManagerPolicy=Setting("static", "file"), reservedSystemCPUs=Setting("0,4-7", "file"), cpu_state=NEW
    )
    known = msgspec.structs.replace(nodes.facts(told), containers=(seen("a"), seen("b")))
    for oldest, lost in (("a", "b"), ("b", "a")):
        found = outlook(known, {"a": 5.0, "b": 5.0} | {oldest: 1.0}).survival
        assert found is not None
        assert [each.pod.uid for each in found.lost] == [lost]


def pods_of(
    *containers: Container, told: Kubelet | None = None, ages: dict[str, float] | None = None
) -> list[Pod]:
    known = msgspec.structs.replace(nodes.facts(told), containers=containers)
    return running_pods(known, ages or {})


def test_the_oldest_pod_comes_first_and_those_of_unknown_age_last_by_uid() -> None:
    containers = [seen(uid) for uid in ("d", "b", "c", "a")]
    ages = {"c": 5.0, "d": 3.0}
    assert [each.uid for each in pods_of(*containers, ages=ages)] == ["d", "c", "a", "b"]


def test_a_pod_asks_for_what_it_holds() -> None:
    """CPUs and kinds of memory by the state files; of what they do not have, what the container asked for."""
    cpus = CpuManagerState("static", CpuSet.parse("0,4-7"), {"p": {"own": CpuSet.parse("1-3")}})
    blocks = (
        MemoryBlock("memory", 1 << 30, (0,)),
        MemoryBlock("memory", 2 << 30, (1,)),
        MemoryBlock("hugepages-2Mi", 4 << 20, (0,)),
    )
    memory = MemoryManagerState("Static", {}, {}, {"p": {"own": blocks}})
    told = nodes.kubelet(cpu_state=cpus, memory_state=memory)
    (found, other) = pods_of(
        seen("p", "own"),
        seen("p", "part", cpu_request=1.5),
        seen("p", "none", cpu_request=None, memory_limit=None),
        seen("q", "endless", memory_limit="max"),
        told=told,
    )
    assert {each.name: each.requests for each in (*found.containers, *other.containers)} == {
        "own": {"cpu": "3", "memory": str(3 << 30), "hugepages-2Mi": str(4 << 20)},
        "part": {"cpu": "1500m", "memory": str(1 << 30)},
        "none": {"cpu": "1m", "memory": "1"},
        "endless": {"cpu": "2000m", "memory": "1"},
    }
    assert all(each.limits == each.requests for each in (*found.containers, *other.containers))


def test_one_container_of_a_known_class_tells_the_class_of_its_pod() -> None:
    """Of a container that only the kubelet's socket knows, the class is unknown."""
    (found,) = pods_of(seen("p", "a"), seen("p", "b", qos=None))
    assert [each.requests["cpu"] for each in found.containers] == ["2000m", "2000m"]


def test_a_pod_that_is_not_guaranteed_asks_for_nothing_of_its_own() -> None:
    (found,) = pods_of(seen("p", "a", "Burstable"), seen("p", "b", "Burstable"))
    assert [(each.name, each.requests) for each in found.containers] == [("a", {}), ("b", {})]


def test_what_is_no_pod_does_not_compete() -> None:
    plain = Container(id="x", pod_uid="z", name="x", kubernetes=False)
    nameless = seen("q", name="")
    unjoined = Container(id="shop/web-0/app", name="app", qos="Guaranteed")
    assert [each.uid for each in pods_of(plain, nameless, unjoined, seen("p"))] == ["p"]
    assert running_pods(msgspec.structs.replace(nodes.facts(), kubelet=None)) == []


def test_pods_of_unknown_age_matter_only_where_several_compete() -> None:
    def unknown(*containers: Container, **ages: float) -> int:
        return ageless(msgspec.structs.replace(nodes.facts(), containers=containers), ages)

    a, b, c = seen("a"), seen("b"), seen("c", qos="Burstable")
    unjoined = Container(id="shop/web-0/app", name="app", qos="Guaranteed")
    assert (
        unknown(a, unjoined),
        unknown(a, c),
        unknown(a, b),
        unknown(a, b, c, a=1.0),
        unknown(a, b, a=1.0, b=2.0),
    ) == (0, 0, 2, 1, 0)


def test_an_unread_memory_file_leaves_the_answer_open() -> None:
    static = {
        "memoryManagerPolicy": Setting("Static", "file"),
        "reservedMemory": Setting([{"numaNode": 0, "limits": {"memory": "100Mi"}}], "file"),
    }
    found = asked(nodes.kubelet(**static))
    assert found.problem is not None
    assert (found.problem.code, found.problem.values) == ("state-unknown", {"manager": "memory"})
    cpu = asked(nodes.kubelet(cpu_state=None)).problem
    assert cpu is not None
    assert cpu.values == {"manager": "cpu"}
    nobody_pins = nodes.kubelet(cpuManagerPolicy=Setting("none", "file"), cpu_state=None)
    assert asked(nobody_pins).survival is not None


def test_what_it_takes_for_granted_is_said() -> None:
    found = asked(msgspec.structs.replace(nodes.kubelet(), version="v1.28.1"))
    assert [each.code for each in found.assumed] == ["version-documents"]
    for told in (
        nodes.kubelet(evictionHard=Setting({"memory.available": "much"}, "file")),
        nodes.kubelet(cpu_state=None),
    ):
        found = asked(msgspec.structs.replace(told, version=None))
        assert found.problem is not None
        assert [each.code for each in found.assumed] == ["version-assumed"]


def test_more_numa_nodes_than_can_be_judged_are_said_to_be_so() -> None:
    many = machines.topology({at: str(at) for at in range(17)})
    static = CpuManagerState("static", CpuSet.parse("0-16"), {})
    told = nodes.kubelet(
        cpu_state=static,
        topologyManagerPolicyOptions=Setting({"max-allowable-numa-nodes": "17"}, "file"),
    )
    told = msgspec.structs.replace(told, version="v1.33.1")
    known = msgspec.structs.replace(
        nodes.facts(told), topology=many, attributes=machines.attributes(many), containers=()
    )
    found = outlook(known)
    assert found.problem is not None
    assert found.problem.code == "would-not-start"
    assert [each.code for each in found.assumed] == ["version-documents"]
    assert "17 NUMA nodes" in str(found.problem.values["message"])


def test_memory_that_drifted_from_its_state_file_keeps_it_from_starting() -> None:
    """The file was written under Static and says that NUMA node 0 had 8 GiB; it has 16."""
    static = {
        "memoryManagerPolicy": Setting("Static", "file"),
        "reservedMemory": Setting([{"numaNode": 0, "limits": {"memory": "100Mi"}}], "file"),
    }

    def table(total: int, reserved: int = 0) -> dict[str, MemoryTable]:
        return {"memory": MemoryTable(total, reserved, total - reserved, 0, total - reserved)}

    def file(first: int) -> MemoryManagerState:
        tables = {0: table(first, 100 << 20), 1: table(16 * nodes.GIB)}
        return MemoryManagerState("Static", tables, {0: (0,), 1: (1,)}, {})

    same, drifted = (
        asked(nodes.kubelet(memory_state=file(total), **static)).survival
        for total in (16 * nodes.GIB, 8 * nodes.GIB)
    )
    assert same is not None
    assert drifted is not None
    assert same.survives
    assert {(each.node, each.field) for each in drifted.differences} >= {(0, "TotalMemSize")}
    of_none = msgspec.structs.replace(file(16 * nodes.GIB), policy="None")
    changed = asked(nodes.kubelet(memory_state=of_none, **static)).survival
    assert changed is not None
    assert 'configured policy "Static" differs from state checkpoint policy "None"' in changed.refusal


def test_pods_are_named_where_their_name_is_known() -> None:
    known = nodes.facts()
    named = seen("p", namespace="shop", pod="web-0")
    half, other = seen("q", namespace="shop"), seen("r", pod="web-0")
    service = Container(id="system.slice/sshd.service", name="sshd.service", kubernetes=False)
    found = outlook(
        msgspec.structs.replace(known, containers=(*known.containers, named, half, other, service))
    )
    assert found.running == {"u1": "u1", "p": "shop/web-0", "q": "q", "r": "r"}
