"""A node with two sockets of four CPUs and 16 GiB each: CPU 0 is reserved, pod u1 owns CPUs 1 and 2."""

from __future__ import annotations

from typing import Any

import msgspec

from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.kubelet import node
from numacore.kubeletstate import CpuManagerState, Kubelet, Setting
from numacore.whatif import candidate
from numacore.whatif.candidate import Candidate
from numacore.workload import Container
from tests.numacore import machines

GIB = machines.GIB
HELD = {"u1": {"web": CpuSet.parse("1-2")}}
SETTINGS = {
    "cpuManagerPolicy": Setting("static", "file"),
    "topologyManagerPolicy": Setting("restricted", "file"),
    "reservedSystemCPUs": Setting("0", "file"),
}


def kubelet(**fields: Any) -> Kubelet:
    """The node's kubelet; settings by their names in KubeletConfiguration, everything else by the name of the value's field."""
    plain = {name: fields.pop(name) for name in list(fields) if "_" in name}
    made = Kubelet(
        present=True,
        version="v1.37.0",
        settings=SETTINGS | fields,
        cpu_state=CpuManagerState("static", CpuSet.parse("0,3-7"), HELD),
    )
    return msgspec.structs.replace(made, **plain)


def facts(told: Kubelet | None = None) -> Facts:
    web = Container(
        id="c1",
        pod_uid="u1",
        name="web",
        qos="Guaranteed",
        exclusive=CpuSet.parse("1-2"),
        memory_limit=10 * GIB,
    )
    return Facts(
        topology=machines.TWO,
        attributes=machines.attributes(machines.TWO),
        kubelet=told or kubelet(),
        containers=(web,),
    )


def candidate_of(known: Facts) -> node.Node:
    """The running kubelet of a candidate that can be judged."""
    found = candidate.of_facts("n1", known)
    assert found.problem is None
    assert found.kubelet is not None
    return found.kubelet


def named(name: str, told: Kubelet | None = None) -> Candidate:
    return candidate.of_facts(name, facts(told))
