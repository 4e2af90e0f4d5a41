"""What is advised where a group's pod does not fit on a node: by the kubelet's word, and where the scheduler counts too little already."""

from __future__ import annotations

import msgspec

from numacore.cpuset import CpuSet
from numacore.kubelet.advice import Advice, Fit
from numacore.kubelet.pod import Container as Asking
from numacore.kubelet.pod import Pod
from numacore.kubeletstate import CpuManagerState, Kubelet, Setting
from numacore.manifest import Group
from numacore.whatif import advising, candidate, judging
from numacore.whatif.candidate import Candidate
from numacore.workload import Container, DeviceClaim
from tests.numacore import machines
from tests.numacore.whatif import nodes

NIC, SSD = "vendor.com/nic", "vendor.com/ssd"
ALL = (
    DeviceClaim(NIC, ("a", "b"), (0,)),
    DeviceClaim(NIC, ("c",), (1,)),
    DeviceClaim(SSD, ("x",), (0,)),
)


def asking(cpu: str = "1", **devices: str) -> Group:
    amounts = {"cpu": cpu, "memory": "64Mi"} | {f"vendor.com/{name}": each for name, each in devices.items()}
    pod = Pod("p", (Asking("main", amounts, amounts),))
    return Group(kind="Pod", name="p", replicas=1, where="spec", pod=pod)


def node(policy: str = "none", **held: tuple[str, ...]) -> Candidate:
    """`held`: NICs by the uid of the pod that has them."""
    told = nodes.kubelet(allocatable_devices=ALL, topologyManagerPolicy=Setting(policy, "file"))
    known = nodes.facts(told)
    (web,) = known.containers
    containers = tuple(
        Container(
            id=uid, pod_uid=uid, name="c", qos="Burstable", devices=(DeviceClaim(NIC, ids),) if ids else ()
        )
        for uid, ids in held.items()
    )
    return candidate.of_facts("n1", msgspec.structs.replace(known, containers=(web, *containers)))


def advised(group: Group, on: Candidate) -> Advice:
    return advising.advice(group, on, judging.judge_node(group, on, wanted=1))


def test_where_the_kubelet_refuses_its_own_advice_is_given() -> None:
    """Two of the three NICs lie on one NUMA node."""
    given = advised(asking(nic="3"), node("single-numa-node")).fits
    assert Fit("request", NIC, "2", "main", "1") in given
    assert Fit("setting", "topologyManagerPolicy", "none") in given


def test_nothing_is_advised_where_the_pod_fits_or_nobody_can_judge() -> None:
    assert advised(asking(nic="3"), node()) == Advice()
    assert advised(asking(nic="3"), nodes.named("n1", Kubelet())) == Advice()


def test_each_pod_whose_leaving_frees_enough_devices_is_named() -> None:
    """Of three NICs one is left. Whoever has only another resource is not named, and the rest of the node is judged as well."""
    busy = node(u3=("b",), u2=("a",), u4=())
    assert advised(asking(nic="2", ssd="1"), busy).fits == (
        Fit("request", NIC, "1", "main", "1"),
        Fit("leaving", "pod", "u2"),
        Fit("leaving", "pod", "u3"),
    )
    assert advised(asking(nic="3"), busy).fits == (Fit("request", NIC, "1", "main", "1"),)


def test_a_search_that_ends_early_says_so() -> None:
    """On 16 NUMA nodes of two CPUs no number of NICs helps a container that asks for three CPUs: not every one is tried."""
    wide = machines.topology({at: f"{2 * at}-{2 * at + 1}" for at in range(16)})
    told = nodes.kubelet(
        allocatable_devices=(DeviceClaim(NIC, tuple(map(str, range(40))), (0,)),),
        cpu_state=CpuManagerState("static", CpuSet.parse("0-31"), {}),
        topologyManagerPolicy=Setting("single-numa-node", "file"),
        topologyManagerPolicyOptions=Setting({"max-allowable-numa-nodes": "16"}, "file"),
    )
    known = nodes.facts(told)
    on = candidate.of_facts(
        "n1",
        msgspec.structs.replace(known, topology=wide, attributes=machines.attributes(wide), containers=()),
    )
    assert on.problem is None
    assert advised(asking(cpu="3", nic="70"), on) == Advice((), complete=False)
