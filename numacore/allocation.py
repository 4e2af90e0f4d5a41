"""What pods request of a node against what it may give away."""

from __future__ import annotations

import msgspec

from numacore import quantity
from numacore.cpuset import CpuSet, CpuSetError
from numacore.facts import Facts
from numacore.kubeletstate import Kubelet
from numacore.usage import total
from numacore.workload import Container


class Allocation(msgspec.Struct, frozen=True):
    """Requests against what is allocatable. `unknown` = containers whose request the node does not know.

    With unknown ones the share is a lower bound.
    """

    requested: float
    allocatable: float | None
    unknown: int

    @property
    def share(self) -> float | None:
        """requested / allocatable, or None."""
        return self.requested / self.allocatable if self.allocatable else None


def cpu(facts: Facts) -> Allocation | None:
    """CPUs: requests of the node's containers against allocatable; None where no kubelet is."""
    kubelet = facts.kubelet
    if kubelet is None or not kubelet.present:
        return None
    pods = [each for each in facts.containers if each.kubernetes]
    known = [_cpu_request(each) for each in pods]
    if kubelet.allocatable_cpus:
        allocatable: float | None = float(len(kubelet.allocatable_cpus))
    else:
        taken = _reserved_amount(kubelet, "cpu")
        allocatable = None if taken is None else max(0.0, len(facts.topology.online) - taken)
    return Allocation(sum(each for each in known if each is not None), allocatable, known.count(None))


def memory(facts: Facts) -> Allocation | None:
    """Bytes of memory: as for CPUs. Burstable containers' requests are unknown to the node."""
    kubelet = facts.kubelet
    if kubelet is None or not kubelet.present:
        return None
    known = [_memory_request(each) for each in facts.containers if each.kubernetes]
    size = total([facts.attributes.memory.get(node) for node in facts.topology.numa_ids])
    taken = _reserved_amount(kubelet, "memory")
    allocatable = None if size is None or taken is None else max(0.0, size - taken)
    return Allocation(sum(each for each in known if each is not None), allocatable, known.count(None))


def _cpu_request(container: Container) -> float | None:
    if container.exclusive:
        return float(len(container.exclusive))
    return 0.0 if container.qos == "BestEffort" else container.cpu_request


def _memory_request(container: Container) -> float | None:
    if container.qos == "BestEffort":
        return 0.0
    if container.qos == "Guaranteed" and isinstance(container.memory_limit, int):
        return float(container.memory_limit)
    return None


def _reserved_amount(kubelet: Kubelet, resource: str) -> float | None:
    """kubeReserved + systemReserved (+ the hard eviction threshold of memory, 100Mi by default); None = unreadable.

    kubelet 1.34, cm/node_container_manager_linux.go `getNodeAllocatableAbsolute` and apis/config defaults.
    """
    if resource == "cpu" and (listed := kubelet.asked("reservedSystemCPUs", "")):
        try:
            return float(len(CpuSet.parse(listed)))
        except CpuSetError:
            return None
    fields = [("kubeReserved", resource, "0"), ("systemReserved", resource, "0")]
    if resource == "memory":
        fields.append(("evictionHard", "memory.available", "100Mi"))
    try:
        return float(sum(quantity.parse(_entry(kubelet, *each)) for each in fields))
    except quantity.QuantityError:  # a percentage as the eviction threshold, or a typing error
        return None


def _entry(kubelet: Kubelet, field: str, key: str, default: str) -> str:
    """The text of one key of a table setting. A table that was asked for replaces the default as a whole."""
    setting = kubelet.settings.get(field)
    if setting is None and kubelet.unread:
        raise quantity.QuantityError(f"{field} may be asked for in {kubelet.unread[0]}")
    if setting is None or setting.value is None:
        return default
    if not isinstance(setting.value, dict):
        raise quantity.QuantityError(f"{field} is no table")
    return str(setting.value.get(key, "0"))
