"""What the resource managers read of a kubelet's settings: the part of KubeletConfiguration v1beta1 that concerns NUMA.

Values stand as they are in the file, unchecked: the managers refuse at start what they cannot take, as the kubelet does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import frexp, ldexp
from typing import Any

import msgspec

from numacore import quantity
from numacore.cpuset import CpuSet
from numacore.kubelet import resource

NEWEST = 37
"""Newest minor version of Kubernetes 1 whose rules are known."""
NEWEST_VERSION = f"1.{NEWEST}"
OLDEST = 21
PROVEN = range(34, 38)
"""Minor versions whose rules were held against the kubelet itself; older ones come from documents."""

DEFAULT_EVICTION = "100Mi"
"""evictionHard["memory.available"] where evictionHard is not set (kubelet 1.37, apis/config/v1beta1/defaults_linux.go)."""

_GATES: dict[str, tuple[tuple[int, bool], ...]] = {
    "CPUManagerPolicyOptions": ((22, False), (23, True)),
    "CPUManagerPolicyAlphaOptions": ((23, False),),
    "CPUManagerPolicyBetaOptions": ((23, True),),
    "TopologyManagerPolicyOptions": ((26, False), (28, True)),
    "TopologyManagerPolicyAlphaOptions": ((26, False),),
    "TopologyManagerPolicyBetaOptions": ((26, False), (28, True)),
    "MemoryManager": ((21, False), (22, True)),
    "PodLevelResources": ((32, False), (34, True)),
    "PodLevelResourceManagers": ((36, False),),
    "PodLevelResourcesFixKubeletQOSClass": ((37, True),),
    "InPlacePodVerticalScalingExclusiveCPUs": ((32, False),),
}
"""Default by the minor version since which it holds (kubelet 1.37, features/kube_features.go)."""


class UnknownVersionError(ValueError):
    """A version whose rules are not known."""


def minor_of(version: str) -> int:
    """The minor version of "1.37", "v1.37.2" and the like. Raises UnknownVersionError."""
    match = re.fullmatch(r"v?1\.([0-9]{1,3})([.+-].*)?", version, re.ASCII)
    if match is None or not OLDEST <= int(match[1]) <= NEWEST:
        raise UnknownVersionError(f"{version!r} is not a version from 1.{OLDEST} to {NEWEST_VERSION}")
    return int(match[1])


class MemoryReservation(msgspec.Struct, frozen=True):
    """One entry of `reservedMemory`: quantities by kind of memory."""

    numa: int
    limits: dict[str, str]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the managers. Field names are KubeletConfiguration's; options and quantities are text as in the file.

    `reservation` is what the kubelet makes of kubeReserved, systemReserved and evictionHard
    (`GetNodeAllocatableReservation`): text by resource, resources without any absent.
    """

    minor: int = NEWEST
    topology_manager_policy: str = "none"
    topology_manager_scope: str = "container"
    topology_manager_policy_options: dict[str, str] = {}
    cpu_manager_policy: str = "none"
    cpu_manager_policy_options: dict[str, str] = {}
    reserved_system_cpus: str = ""
    reservation: dict[str, str] = {}
    memory_manager_policy: str = "None"
    reserved_memory: tuple[MemoryReservation, ...] = ()
    feature_gates: dict[str, bool] = {}

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate is on: as set, else by its default in this minor version. One that this version does not know
        is off."""
        defaults = [on for since, on in _GATES[gate] if since <= self.minor]
        return bool(defaults) and self.feature_gates.get(gate, defaults[-1])


def of_configuration(fields: Mapping[str, Any], minor: int, memory: int) -> Settings:
    """The managers' settings from a KubeletConfiguration in force (as `/configz` shows it), fields by their JSON names.

    `memory`: the machine's memory in bytes, of which a percentage in evictionHard is taken.

    Raises:
        quantity.QuantityError: a reserved amount is no quantity.
        cpuset.CpuSetError: reservedSystemCPUs is no list of CPUs.
        msgspec.ValidationError: a field has another type than KubeletConfiguration gives it.
    """
    asked = msgspec.convert(dict(fields), _Configuration)
    return Settings(
        minor=minor,
        topology_manager_policy=asked.topology_manager_policy or "none",
        topology_manager_scope=asked.topology_manager_scope or "container",
        topology_manager_policy_options=asked.topology_manager_policy_options or {},
        cpu_manager_policy=asked.cpu_manager_policy or "none",
        cpu_manager_policy_options=asked.cpu_manager_policy_options or {},
        reserved_system_cpus=asked.reserved_system_cpus or "",
        reservation=_node_allocatable_reservation(asked, memory),
        memory_manager_policy=asked.memory_manager_policy or "None",
        reserved_memory=tuple(
            MemoryReservation(each.numa_node, {kind: str(size) for kind, size in each.limits.items()})
            for each in asked.reserved_memory or ()
        ),
        feature_gates=asked.feature_gates or {},
    )


class _Reserved(msgspec.Struct, rename="camel"):
    numa_node: int
    limits: dict[str, str | int] = {}


class _Configuration(msgspec.Struct, kw_only=True, rename="camel"):
    topology_manager_policy: str | None = None
    topology_manager_scope: str | None = None
    topology_manager_policy_options: dict[str, str] | None = None
    cpu_manager_policy: str | None = None
    cpu_manager_policy_options: dict[str, str] | None = None
    reserved_system_cpus: str | None = msgspec.field(default=None, name="reservedSystemCPUs")
    kube_reserved: dict[str, str] | None = None
    system_reserved: dict[str, str] | None = None
    eviction_hard: dict[str, str] | None = None
    memory_manager_policy: str | None = None
    reserved_memory: list[_Reserved] | None = None
    feature_gates: dict[str, bool] | None = None


def _node_allocatable_reservation(asked: _Configuration, memory: int) -> dict[str, str]:
    """kubelet 1.37, cm/node_container_manager_linux.go `GetNodeAllocatableReservation`, and cmd/kubelet/app/server.go:
    reservedSystemCPUs replaces the reserved amounts of CPU."""
    system = {kind: resource.parse(size) for kind, size in (asked.system_reserved or {}).items()}
    kube = {kind: resource.parse(size) for kind, size in (asked.kube_reserved or {}).items()}
    if listed := CpuSet.parse(asked.reserved_system_cpus or ""):
        kube.pop(resource.CPU, None)
        system[resource.CPU] = resource.parse(str(len(listed)))
    eviction = _hard_eviction(asked.eviction_hard, memory)
    sums = {
        kind: system.get(kind, resource.ZERO)
        + kube.get(kind, resource.ZERO)
        + eviction.get(kind, resource.ZERO)
        for kind in sorted({*system, *kube, *eviction})
    }
    return {kind: str(total) for kind, total in sums.items() if total.amount}


def _hard_eviction(thresholds: dict[str, str] | None, memory: int) -> dict[str, resource.Quantity]:
    """kubelet 1.37, cm/helpers.go `hardEvictionReservation`: only the memory threshold concerns NUMA."""
    text = DEFAULT_EVICTION if thresholds is None else thresholds.get("memory.available")
    if text is None or text in ("0%", "100%"):
        return {}
    if text.endswith("%"):
        share = _float32(_float32(float(quantity.parse(text[:-1]))) / 100)
        return {resource.MEMORY: resource.Quantity(Fraction(int(memory * share)), "binary")}
    return {resource.MEMORY: resource.parse(text)}


def _float32(value: float) -> float:
    """The nearest single-precision number: the kubelet keeps percentages as float32."""
    mantissa, exponent = frexp(value)
    return ldexp(round(ldexp(mantissa, 24)), exponent - 24)
