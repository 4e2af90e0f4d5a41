"""Everything known of one node at one moment, and who owns which of its CPUs."""

from __future__ import annotations

import msgspec

from numacore.cpuset import EMPTY, CpuSet, CpuSetError, union
from numacore.kubeletstate import Kubelet
from numacore.topology import Attributes, Topology
from numacore.usage import Rates, Usage
from numacore.workload import Container


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known of a node at one moment. `kubelet` None = nothing was heard of it yet."""

    topology: Topology
    attributes: Attributes = Attributes()
    kubelet: Kubelet | None = None
    containers: tuple[Container, ...] = ()
    usage: Usage | None = None
    rates: Rates | None = None


def exclusive_cpus(facts: Facts) -> CpuSet | None:
    """CPUs that containers own alone; None where the kubelet is there and does not let us see."""
    state = facts.kubelet.cpu_state if facts.kubelet else None
    listed = union(owned for pod in state.entries.values() for owned in pod.values()) if state else EMPTY
    told = [each.exclusive for each in facts.containers if each.kubernetes]
    if state is None and any(owned is None for owned in told):
        return None
    return listed | union(owned for owned in told if owned is not None)


def reserved_cpus(topology: Topology, kubelet: Kubelet | None) -> CpuSet | None:
    """CPUs kept for the system; None where the kubelet reserves some and does not say which.

    PodResources tells best: what is online and not allocatable. A reservation by amount alone names no CPU unless the
    static policy takes it (then the socket tells).
    """
    if kubelet is None or not kubelet.present:
        return EMPTY
    if kubelet.allocatable_cpus:
        return topology.online - kubelet.allocatable_cpus
    listed = kubelet.asked("reservedSystemCPUs", "")
    if listed:
        try:
            return CpuSet.parse(listed)
        except CpuSetError:
            return None
    return EMPTY if listed is not None and kubelet.asked("cpuManagerPolicy", "none") == "none" else None


def pinnable_cpus(topology: Topology, kubelet: Kubelet | None, reserved: CpuSet | None) -> CpuSet | None:
    """CPUs that may become exclusive: none unless the static CPU manager runs. None = unknown."""
    if kubelet is None or not kubelet.present or kubelet.cpu_policy is None:
        return None
    if kubelet.cpu_policy != "static":
        return EMPTY
    return None if reserved is None else topology.online - reserved
