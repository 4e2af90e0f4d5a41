"""Devices of a live node: judged where its kubelet tells all that it has, left open where it does not."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from numacore.kubelet.pod import Container as Asking
from numacore.kubelet.pod import Pod
from numacore.kubeletstate import Setting
from numacore.manifest import Group
from numacore.whatif import advising, candidate, explaining, judging
from numacore.whatif.candidate import Candidate
from numacore.workload import DeviceClaim
from tests.numacore.whatif import nodes

NIC = "vendor.com/nic"
ALL = (DeviceClaim(NIC, ("a", "b"), (0,)), DeviceClaim(NIC, ("c",), (1,)))


def asking(number: str, name: str = NIC) -> Group:
    amounts = {"cpu": "1", "memory": "64Mi", name: number}
    pod = Pod("p", (Asking("main", amounts, dict(amounts)),))
    return Group(kind="Pod", name="p", replicas=1, where="spec", pod=pod)


def node(
    all_devices: tuple[DeviceClaim, ...] | None, *held: str, policy: str = "single-numa-node"
) -> Candidate:
    """`held`: devices of the pod that runs there."""
    told = nodes.kubelet(allocatable_devices=all_devices, topologyManagerPolicy=Setting(policy, "file"))
    known = nodes.facts(told)
    (web,) = known.containers
    claims = (DeviceClaim(NIC, held, (0,)),) if held else ()
    return candidate.of_facts(
        "n1", msgspec.structs.replace(known, containers=(msgspec.structs.replace(web, devices=claims),))
    )


def test_a_free_device_is_given_from_its_numa_node() -> None:
    answer = judging.judge_node(asking("1"), node(ALL, "a", "b"), wanted=1)
    assert answer.first is not None
    held = answer.first.placements["main"].devices[NIC]
    assert (held.ids, held.numa) == (("c",), ((1,),))
    assert answer.admitted


def test_devices_that_lie_apart_refuse_the_pod_with_the_numa_node_and_amounts() -> None:
    answer = judging.judge_node(asking("3"), node(ALL), wanted=1)
    assert answer.first is not None
    (why,) = explaining.why(answer.first, "single-numa-node")
    assert (why.code, why.values["resource"]) == ("numa-lacks", NIC)
    assert (why.values["free"], why.values["total"], why.values["asked"]) == (2, 2, 3)


def test_devices_in_use_are_missing_and_a_smaller_request_is_advised() -> None:
    known = node(ALL, "a", policy="none")
    answer = judging.judge_node(asking("3"), known, wanted=1)
    assert answer.shortage == judging.Shortage(NIC, Fraction(3), Fraction(2))
    less, leaves = advising.advice(asking("3"), known, answer).fits
    assert (less.kind, less.name, less.value, less.step) == ("request", NIC, "2", "1")
    assert (leaves.kind, leaves.value) == ("leaving", "u1")
    assert judging.judge_node(asking("2"), known, wanted=1).admitted


def test_a_device_of_no_plugin_is_one_that_the_node_does_not_have() -> None:
    answer = judging.judge_node(asking("1", "vendor.com/gpu"), node(ALL), wanted=1)
    assert (answer.admitted, answer.shortage) == (
        False,
        judging.Shortage("vendor.com/gpu", Fraction(1), Fraction(0)),
    )


def test_where_the_kubelet_does_not_tell_nothing_is_claimed_of_devices() -> None:
    known = node(None, "a")
    assert not known.devices_known
    assert judging.judge_node(asking("9"), known, wanted=1).admitted


def test_how_many_fit_ends_where_the_devices_end() -> None:
    assert judging.judge_node(asking("1"), node(ALL, "a"), wanted=5).fits == 2


def test_which_numa_nodes_device_is_given_is_open_without_a_policy() -> None:
    """Two of the three devices lie on the same NUMA node and count as the same."""
    known = node(ALL, policy="none")
    assert known.kubelet is not None
    first = judging.judge_node(asking("1"), known, wanted=1).first
    (other,) = judging.open_choices(asking("1"), known.kubelet)
    assert first is not None
    assert {each.placements["main"].devices[NIC].numa for each in (first, other)} == {((0,),), ((1,),)}
