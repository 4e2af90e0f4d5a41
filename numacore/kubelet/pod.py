"""A pod as far as the resource managers read it: its containers' requests, its class, what it asks for as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from numacore.kubelet import resource
from numacore.kubelet.resource import Quantity
from numacore.kubelet.settings import Settings

QOS = Literal["Guaranteed", "Burstable", "BestEffort"]
Resources = dict[str, str]
"""Quantities by resource."""


class Container(msgspec.Struct, frozen=True):
    """A container. `sidecar`: an init container with restartPolicy Always, which runs as long as the pod."""

    name: str
    requests: Resources = {}
    limits: Resources = {}
    sidecar: bool = False

    def request(self, name: str) -> Quantity:
        return _amount(self.requests, name)

    def limit(self, name: str) -> Quantity:
        return _amount(self.limits, name)


class PodResources(msgspec.Struct, frozen=True):
    """`spec.resources`: what the pod asks for as a whole."""

    requests: Resources = {}
    limits: Resources = {}


class Pod(msgspec.Struct, frozen=True):
    """A pod. Requests stand as the API server stores them: a missing one that has a limit equals the limit."""

    uid: str
    containers: tuple[Container, ...]
    init: tuple[Container, ...] = ()
    resources: PodResources | None = None

    def in_order(self) -> Iterator[Container]:
        """Init containers, then containers: the order in which the kubelet admits them."""
        yield from self.init
        yield from self.containers

    @property
    def asks_as_a_whole(self) -> bool:
        """`IsPodLevelResourcesSet` (component-helpers resource/helpers.go)."""
        asked = self.resources
        return asked is not None and any(
            name == resource.CPU or resource.is_memory(name) for name in (*asked.requests, *asked.limits)
        )


def _amount(amounts: Resources, name: str) -> Quantity:
    return resource.parse(amounts[name]) if name in amounts else resource.ZERO


def qos(pod: Pod, settings: Settings) -> QOS:
    """`ComputePodQOS` (kubelet 1.37, apis/core/v1/helper/qos/qos.go)."""
    whole = pod.resources is not None and settings.enabled("PodLevelResources")
    if settings.enabled("PodLevelResourcesFixKubeletQOSClass"):
        whole = whole and pod.asks_as_a_whole
    if whole and pod.resources is not None:
        return _requirements_qos(pod.resources.requests, pod.resources.limits)
    found = {_requirements_qos(each.requests, each.limits) for each in pod.in_order()}
    return _one_or_burstable(found or {"BestEffort"})


def _requirements_qos(requests: Resources, limits: Resources) -> QOS:
    return _one_or_burstable(
        {_resource_qos(requests, limits, name) for name in (resource.CPU, resource.MEMORY)}
    )


def _resource_qos(requests: Resources, limits: Resources, name: str) -> QOS:
    request, limit = _amount(requests, name).amount, _amount(limits, name).amount
    if request != limit:
        return "Burstable"
    return "Guaranteed" if request else "BestEffort"


def _one_or_burstable(found: set[QOS]) -> QOS:
    return found.pop() if len(found) == 1 else "Burstable"


class Demand(msgspec.Struct, frozen=True, dict=True):
    """A pod under a kubelet's settings: what of it counts as a demand for exclusive resources."""

    pod: Pod
    qos: QOS
    managed_as_a_whole: bool
    """Pod-level resources count, and the managers handle them (gate PodLevelResourceManagers)."""
    skipped: bool
    """Pod-level resources are set, and the managers cannot handle them: they allocate nothing for such a pod."""

    def guaranteed_cpus(self, container: Container) -> int:
        """Exclusive CPUs of a container (kubelet 1.37, cm/cpumanager/policy_static.go `guaranteedCPUs`)."""
        if self.qos != "Guaranteed" or (self.managed_as_a_whole and not _guaranteed_itself(container)):
            return 0
        cpus = container.request(resource.CPU)
        return cpus.value if cpus.whole else 0

    def pod_guaranteed_cpus(self) -> int:
        """Exclusive CPUs of the pod: init containers reuse one another's (`podGuaranteedCPUs`)."""
        if self.managed_as_a_whole:
            asked = _amount(self.pod.resources.requests if self.pod.resources else {}, resource.CPU)
            return asked.value if self.qos == "Guaranteed" and asked.whole else 0
        sidecars = most = 0
        for container in self.pod.init:
            cpus = self.guaranteed_cpus(container)
            if container.sidecar:
                sidecars += cpus
            else:
                most = max(most, sidecars + cpus)
        return max(most, sidecars + sum(map(self.guaranteed_cpus, self.pod.containers)))

    def memory(self, container: Container) -> dict[str, int] | None:
        """Bytes by kind of memory (memorymanager/policy_static.go `getContainerRequestedResources`); None = one of
        them is no int64 to the kubelet, which it fails on."""
        if self.managed_as_a_whole and not _guaranteed_itself(container):
            return {}
        return _memory(container.requests)

    def pod_memory(self) -> dict[str, int] | None:
        """The pod's bytes by kind (`getPodRequestedResources`): kinds that only init containers ask for do not count."""
        if self.managed_as_a_whole:
            asked = _memory(self.pod.resources.requests if self.pod.resources else {})
            return None if asked is None else {kind: size for kind, size in asked.items() if size > 0}
        most: dict[str, int] = {}
        sidecars: dict[str, int] = {}
        for container in self.pod.init:
            asked = self.memory(container)
            if asked is None:
                return None
            for kind, size in asked.items():
                if container.sidecar:
                    sidecars[kind] = sidecars.get(kind, 0) + size
                else:
                    most[kind] = max(most.get(kind, 0), sidecars.get(kind, 0) + size)
        apps: dict[str, int] = {}
        for container in self.pod.containers:
            asked = self.memory(container)
            if asked is None:
                return None
            for kind, size in asked.items():
                apps[kind] = apps.get(kind, 0) + size
        return {kind: max(size + sidecars.get(kind, 0), most.get(kind, 0)) for kind, size in apps.items()}


def demand(pod: Pod, settings: Settings) -> Demand:
    """What the managers of this kubelet see in a pod."""
    managers = settings.enabled("PodLevelResourceManagers")
    counted = settings.enabled("PodLevelResources")
    able = managers and counted if settings.minor >= 36 else not counted
    return Demand(
        pod=pod,
        qos=qos(pod, settings),
        managed_as_a_whole=managers and pod.asks_as_a_whole,
        skipped=pod.asks_as_a_whole and not able,
    )


def _guaranteed_itself(container: Container) -> bool:
    """`IsContainerEquivalentQOSGuaranteed` (kubelet 1.37, cm/qos/helpers.go)."""
    pairs = [
        (container.request(name).amount, container.limit(name).amount)
        for name in (resource.CPU, resource.MEMORY)
    ]
    return all(request and request == limit for request, limit in pairs)


def _memory(requests: Mapping[str, str]) -> dict[str, int] | None:
    sizes = {
        name: resource.parse(size).int64
        for name, size in sorted(requests.items())
        if resource.is_memory(name)
    }
    found = {name: size & resource.UINT64 for name, size in sizes.items() if size is not None}
    return found if len(found) == len(sizes) else None
