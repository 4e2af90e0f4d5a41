"""Brings together what each source knows of a container.

Cgroups know ids and pod uids and no names, log links know ids and names, state files know uids and container names, the
kubelet's socket knows names and no ids. What cannot be joined stays, with what is known of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from numaagent.readers.containernames import Names
from numaagent.readers.kubelet import Reading
from numaagent.readers.podresources import PodResources, Told
from numacore.cpuset import EMPTY, CpuSet
from numacore.kubeletstate import Kubelet
from numacore.workload import Container, MemoryBlock


def containers(found: Iterable[Container], names: Names, reading: Reading) -> tuple[Container, ...]:
    """Every container once: those with a cgroup in the order of their paths, then those that only the socket knows."""
    named = [_named(each, names, reading.kubelet) for each in found]
    living = {each.pod_uid for each in named if each.pod_uid and each.id in names.containers}
    # In a pod whose containers are known by name, a nameless group is the pod's sandbox.
    shown = [each for each in named if each.name or each.pod_uid not in living]
    placed = tuple(_placed(each, reading) for each in shown)
    return placed + tuple(_only_told(placed, reading.resources))


def _named(container: Container, names: Names, kubelet: Kubelet) -> Container:
    if not container.kubernetes or container.pod_uid is None:
        return container
    if name := names.containers.get(container.id):
        return msgspec.structs.replace(container, namespace=name.namespace, pod=name.pod, name=name.name)
    pod = names.pods.get(container.pod_uid)
    return msgspec.structs.replace(
        container,
        namespace=pod.namespace if pod else None,
        pod=pod.pod if pod else None,
        name=_by_cpus(container, kubelet),
    )


def _by_cpus(container: Container, kubelet: Kubelet) -> str | None:
    """The one container of the pod that owns just the CPUs which this group runs on."""
    entries = kubelet.cpu_state.entries.get(container.pod_uid or "", {}) if kubelet.cpu_state else {}
    owners = [name for name, cpus in entries.items() if name and cpus and cpus == container.cpus]
    return owners[0] if len(owners) == 1 else None


def _placed(container: Container, reading: Reading) -> Container:
    if not container.kubernetes:
        return msgspec.structs.replace(container, exclusive=EMPTY)
    told = _told(container, reading.resources)
    blocks = told.memory if told else _state_memory(container, reading.kubelet)
    exclusive = told.cpus if told else _state_cpus(container, reading.kubelet)
    request = container.cpu_request
    if request is None and exclusive:
        request = float(len(exclusive))  # the static policy gives exactly what was asked for
    return msgspec.structs.replace(
        container,
        exclusive=exclusive,
        cpu_request=request,
        memory_blocks=blocks,
        devices=told.devices if told else (),
    )


def _told(container: Container, resources: PodResources | None) -> Told | None:
    if resources is None or not (container.namespace and container.pod and container.name):
        return None
    return resources.containers.get((container.namespace, container.pod, container.name))


def _state_cpus(container: Container, kubelet: Kubelet) -> CpuSet | None:
    state = kubelet.cpu_state
    if state is None:
        return None
    if state.policy == "none" or container.pod_uid not in state.entries:
        return EMPTY
    if container.name is None:
        return None
    return state.entries[container.pod_uid].get(container.name, EMPTY)


def _state_memory(container: Container, kubelet: Kubelet) -> tuple[MemoryBlock, ...]:
    if kubelet.memory_state is None or container.name is None:
        return ()
    return kubelet.memory_state.entries.get(container.pod_uid or "", {}).get(container.name, ())


def _only_told(placed: tuple[Container, ...], resources: PodResources | None) -> Iterable[Container]:
    """Containers of the socket without a group here: not started yet, or not to be joined by name."""
    known = {(each.namespace, each.pod, each.name) for each in placed}
    for key, told in sorted(resources.containers.items()) if resources else ():
        if key not in known:
            namespace, pod, name = key
            yield Container(
                id="/".join(key),
                namespace=namespace,
                pod=pod,
                name=name,
                exclusive=told.cpus,
                memory_blocks=told.memory,
                devices=told.devices,
            )
