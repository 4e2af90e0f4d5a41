"""Which CPUs are exclusive, reserved, or may become exclusive, from what a node does and does not tell."""

import pytest

from numacore import facts
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.kubeletstate import CpuManagerState, Kubelet, Setting
from numacore.workload import Container
from tests.numacore import machines


def cpus(text: str | None) -> CpuSet | None:
    return None if text is None else CpuSet.parse(text)


def state(policy: str = "static", entries: dict[str, dict[str, str]] | None = None) -> CpuManagerState:
    owned = {
        pod: {name: CpuSet.parse(text) for name, text in each.items()}
        for pod, each in (entries or {}).items()
    }
    return CpuManagerState(policy, CpuSet.parse("0-7"), owned)


def pod(exclusive: str | None, kubernetes: bool = True) -> Container:
    return Container(id=f"c{exclusive}", exclusive=cpus(exclusive), kubernetes=kubernetes)


@pytest.mark.parametrize(
    ("kubelet", "containers", "expected"),
    [
        # a plain machine: nobody hands out CPUs
        (Kubelet(present=False), [pod(None, kubernetes=False)], ""),
        (None, [], ""),
        # pods without a word of who owns what
        (None, [pod(None)], None),
        (Kubelet(present=True), [pod("1"), pod(None)], None),
        # the socket tells of every container
        (Kubelet(present=True), [pod("1-2"), pod("")], "1-2"),
        # the state file tells, with or without containers that know
        (Kubelet(present=True, cpu_state=state(entries={"u": {"a": "1", "b": "2-3"}})), [], "1-3"),
        (Kubelet(present=True, cpu_state=state(entries={"u": {"a": "1"}})), [pod(None)], "1"),
        # both tell: what either knows counts
        (Kubelet(present=True, cpu_state=state(entries={"u": {"a": "1"}})), [pod("5")], "1,5"),
    ],
)
def test_exclusive_cpus(kubelet: Kubelet | None, containers: list[Container], expected: str | None) -> None:
    known = Facts(topology=machines.TWO, kubelet=kubelet, containers=tuple(containers))
    assert facts.exclusive_cpus(known) == cpus(expected)


@pytest.mark.parametrize(
    ("kubelet", "expected"),
    [
        (None, ""),
        (Kubelet(present=False), ""),
        (Kubelet(present=True), ""),
        (Kubelet(present=True, allocatable_cpus=CpuSet.parse("1-7")), "0"),
        # without the static policy the socket lists nothing as allocatable: that reserves nothing
        (Kubelet(present=True, allocatable_cpus=CpuSet()), ""),
        (Kubelet(present=True, settings={"reservedSystemCPUs": Setting("0,4", "file")}), "0,4"),
        (Kubelet(present=True, settings={"reservedSystemCPUs": Setting("rubbish", "file")}), None),
        # a file that may reserve some cannot be read
        (Kubelet(present=True, unread=("f",)), None),
        (Kubelet(present=True, unread=("f",), allocatable_cpus=CpuSet.parse("1-7")), "0"),
        # the static policy takes CPUs and does not say which
        (Kubelet(present=True, settings={"cpuManagerPolicy": Setting("static", "file")}), None),
    ],
)
def test_reserved_cpus(kubelet: Kubelet | None, expected: str | None) -> None:
    assert facts.reserved_cpus(machines.TWO, kubelet) == cpus(expected)


@pytest.mark.parametrize(
    ("kubelet", "reserved", "expected"),
    [
        (None, "", None),
        (Kubelet(present=False), "", None),
        (Kubelet(present=True), "0", ""),
        (Kubelet(present=True, cpu_state=state()), "0", "1-7"),
        (Kubelet(present=True, cpu_state=state()), None, None),
        (Kubelet(present=True, cpu_state=state("none")), "0", ""),
        (Kubelet(present=True, unread=("f",)), "0", None),
        (Kubelet(present=True, unread=("f",), cpu_state=state("none")), "0", ""),
    ],
)
def test_cpus_that_may_become_exclusive(
    kubelet: Kubelet | None, reserved: str | None, expected: str | None
) -> None:
    assert facts.pinnable_cpus(machines.TWO, kubelet, cpus(reserved)) == cpus(expected)
