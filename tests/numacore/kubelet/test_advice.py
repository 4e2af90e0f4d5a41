"""What would make a refused pod fit: applied it fits, one step less and it does not."""

from typing import Any

import pytest

from numacore.kubelet import node, options
from numacore.kubelet.advice import Fit, advice, asking_for, fits, with_setting
from numacore.kubelet.device_manager import Device
from numacore.kubelet.node import Node
from numacore.kubelet.pod import Pod
from numacore.kubelet.resource import parse
from tests.numacore.kubelet.builders import container, pod, running

FULL = {options.FULL_PCPUS_ONLY: "true"}
GPUS = {"example.com/gpu": tuple(Device(f"g{at}", (at % 2,)) for at in range(4))}


def filled(policy: str, *pods: Pod, scope: str = "container", **changes: Any) -> Node:
    now = node.report_devices(running(policy, scope, **changes), GPUS)
    for each in pods:
        now, verdict = node.admit(now, each)
        assert verdict.admitted, verdict
    return now


FIVE, FOUR = pod("a", container(cpu="5")), pod("b", container(cpu="4"))
REFUSED: dict[str, tuple[Node, Pod]] = {
    "no NUMA node has as many CPUs left": (filled("restricted", FIVE, FOUR), pod("c", container(cpu="6"))),
    "no NUMA node has as much memory left": (
        filled("single-numa-node", pod("a", container(memory="5Gi"))),
        pod("b", container(memory="8500Mi")),
    ),
    "odd number of CPUs": (filled("none", cpu_manager_policy_options=FULL), pod("a", container(cpu="3"))),
    "too few CPUs at all": (filled("best-effort", FIVE, FOUR), pod("c", container(cpu="8"))),
    "too few huge pages": (filled("restricted"), pod("a", container(hugepages_2Mi="130Mi"))),
    "devices on two NUMA nodes": (filled("single-numa-node"), pod("a", container(gpu="3"))),
    "the init container is in the way": (
        filled("single-numa-node", FIVE),
        pod("b", container("app", "7"), init=(container("first", "1"),)),
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_each_piece_of_advice_makes_the_pod_fit_and_a_step_less_does_not(why: str) -> None:
    now, refused = REFUSED[why]
    _, verdict = node.admit(now, refused)
    assert not verdict.admitted
    given = advice(now, refused, verdict)
    assert given
    for piece in given:
        assert holds(now, refused, piece), piece


def holds(now: Node, refused: Pod, piece: Fit) -> bool:
    if piece.kind == "leaving":
        return fits(node.remove(now, piece.value), refused)
    if piece.kind == "setting":
        changed = with_setting(now.settings, piece.name, piece.value)
        return fits(node.resume(changed, now.machine, now.state), refused)
    amount, step = parse(piece.value).value, parse(piece.step).value
    less = asking_for(refused, piece.container, piece.name, amount)
    more = asking_for(refused, piece.container, piece.name, amount + step)
    return fits(now, less) and not fits(now, more)


@pytest.mark.parametrize(
    ("why", "piece"),
    [
        ("no NUMA node has as many CPUs left", Fit("request", "cpu", "4", "c", "1")),
        ("no NUMA node has as many CPUs left", Fit("setting", "topologyManagerPolicy", "best-effort")),
        ("no NUMA node has as many CPUs left", Fit("leaving", "pod", "a")),
        ("no NUMA node has as much memory left", Fit("request", "memory", "8064Mi", "c", "1Mi")),
        ("no NUMA node has as much memory left", Fit("setting", "memoryManagerPolicy", "None")),
        ("odd number of CPUs", Fit("request", "cpu", "2", "c", "1")),
        ("odd number of CPUs", Fit("setting", "cpuManagerPolicyOptions.full-pcpus-only", "")),
        ("too few CPUs at all", Fit("request", "cpu", "6", "c", "1")),
        ("too few huge pages", Fit("request", "hugepages-2Mi", "128Mi", "c", "2Mi")),
        ("devices on two NUMA nodes", Fit("request", "example.com/gpu", "2", "c", "1")),
        ("the init container is in the way", Fit("setting", "topologyManagerScope", "pod")),
    ],
)
def test_what_is_advised(why: str, piece: Fit) -> None:
    now, refused = REFUSED[why]
    assert piece in advice(now, refused, node.admit(now, refused)[1])


def test_an_admitted_pod_needs_no_advice() -> None:
    now = filled("restricted")
    assert advice(now, FIVE, node.admit(now, FIVE)[1]) == ()
