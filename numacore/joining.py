"""The second half of the join that begins on a node: names and uids that its exporter could not tell, from the pods of the API server.

Control groups know ids and pod uids and no names, the kubelet's socket knows names and no uids. Where the node's log folders, which
know both, cannot be read, the two stand beside each other until somebody who knows the pods brings them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from numacore.cpuset import EMPTY
from numacore.facts import Facts
from numacore.kubeletstate import Kubelet
from numacore.usage import ContainerUse, Usage
from numacore.workload import Container

T = TypeVar("T")
Name = tuple[str, str]
"""Namespace and name of a pod."""
OF_POD = ("namespace", "pod", "name")


class Pod(msgspec.Struct, frozen=True):
    """A pod as the API server knows it. `uid`: the one that its kubelet uses. `running`: names of its running containers by their ids."""

    uid: str
    namespace: str
    name: str
    running: Mapping[str, str] = {}


class Wanted(msgspec.Struct, frozen=True):
    """Pods that somebody has to be asked for: by their uid, and by their name."""

    uids: frozenset[str]
    names: frozenset[Name]

    def __bool__(self) -> bool:
        return bool(self.uids or self.names)


def wanted(containers: Iterable[Container]) -> Wanted:
    """What is missing to know every container by all of its names; nothing where the node told everything."""
    uids: set[str] = set()
    names: set[Name] = set()
    for each in containers:
        if not each.kubernetes:
            continue
        if each.pod_uid is not None:
            if not (each.namespace and each.pod and each.name):
                uids.add(each.pod_uid)
        elif each.namespace and each.pod:
            names.add((each.namespace, each.pod))
    return Wanted(frozenset(uids), frozenset(names))


def joined(facts: Facts, pods: Iterable[Pod]) -> Facts:
    """The facts with every container as these pods let it be known; the node's own word is never changed.

    A container that the socket and the control groups told of apart becomes one. A nameless group of a pod all of whose running
    containers are here is its sandbox, and goes, as it does where the node knows the names.
    """
    known = list(pods)
    by_uid, by_name = {pod.uid: pod for pod in known}, {(pod.namespace, pod.name): pod for pod in known}
    named = [_named(each, by_uid, by_name) for each in facts.containers]
    found = [_held(each, facts.kubelet) for each in named]
    kept = _kept(found, by_uid)
    if kept == list(range(len(found))) and found == list(facts.containers):
        return facts
    return msgspec.structs.replace(
        facts, containers=tuple(_merged(found, kept)), usage=_columns(facts, len(found), kept)
    )


def _named(container: Container, by_uid: Mapping[str, Pod], by_name: Mapping[Name, Pod]) -> Container:
    if not container.kubernetes:
        return container
    if container.pod_uid is None:
        pod = by_name.get((container.namespace or "", container.pod or ""))
        return container if pod is None else _with(container, {"pod_uid": pod.uid})
    pod = by_uid.get(container.pod_uid)
    if pod is None:
        return container
    told = {"namespace": pod.namespace, "pod": pod.name, "name": pod.running.get(container.id)}
    return _with(
        container, {name: told[name] for name in OF_POD if told[name] and not getattr(container, name)}
    )


def _with(container: Container, told: Mapping[str, str | None]) -> Container:
    if not told:
        return container
    return msgspec.structs.replace(container, told_by_api=(*container.told_by_api, *told), **told)


def _held(container: Container, kubelet: Kubelet | None) -> Container:
    """What the kubelet's state files say that a container holds, which are about names: the node could not look it up without one."""
    if "name" not in container.told_by_api or kubelet is None:
        return container
    uid, name = container.pod_uid or "", container.name or ""
    cpu, memory = kubelet.cpu_state, kubelet.memory_state
    changes: dict[str, object] = {}
    if container.exclusive is None and cpu is not None:
        owned = changes["exclusive"] = cpu.entries.get(uid, {}).get(name, EMPTY)
        if owned and container.cpu_request is None:
            changes["cpu_request"] = float(len(owned))  # the static policy gives exactly what was asked for
    if not container.memory_blocks and memory is not None:
        changes["memory_blocks"] = memory.entries.get(uid, {}).get(name, ())
    return msgspec.structs.replace(container, **changes)


def _kept(found: Sequence[Container], by_uid: Mapping[str, Pod]) -> list[int]:
    """Positions of those that stay: no sandbox, and nothing that a group with the same names stands for already."""
    here = {each.id for each in found}
    whole = {uid for uid, pod in by_uid.items() if pod.running and here.issuperset(pod.running)}
    groups = {_key(each) for each in found if each.cgroup is not None and each.name}
    return [
        place
        for place, each in enumerate(found)
        if not (each.cgroup is not None and not each.name and each.pod_uid in whole)
        and not (each.cgroup is None and "pod_uid" in each.told_by_api and _key(each) in groups)
    ]


def _merged(found: Sequence[Container], kept: Sequence[int]) -> Iterable[Container]:
    stay = set(kept)
    told = {_key(each): each for place, each in enumerate(found) if place not in stay and each.cgroup is None}
    for place in kept:
        each = found[place]
        other = told.get(_key(each)) if each.cgroup is not None and each.name else None
        yield each if other is None else _one(each, other)


def _one(group: Container, told: Container) -> Container:
    """A control group with what the kubelet's socket told of the same container."""
    exclusive = group.exclusive if told.exclusive is None else told.exclusive
    request = group.cpu_request
    if request is None and exclusive:
        request = float(len(exclusive))  # the static policy gives exactly what was asked for
    return msgspec.structs.replace(
        group,
        exclusive=exclusive,
        cpu_request=request,
        memory_blocks=told.memory_blocks or group.memory_blocks,
        devices=told.devices or group.devices,
    )


def _key(container: Container) -> tuple[str | None, str | None, str | None, str | None]:
    return container.pod_uid, container.namespace, container.pod, container.name


def _columns(facts: Facts, length: int, kept: Sequence[int]) -> Usage | None:
    """Usage with its columns over those that stay."""
    usage = facts.usage
    if usage is None or usage.containers is None or len(kept) == length:
        return usage
    use = usage.containers

    def of(column: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(column[place] for place in kept if place < len(column))

    return msgspec.structs.replace(
        usage,
        containers=ContainerUse(
            cpu_time=of(use.cpu_time),
            memory=of(use.memory),
            pages={node: of(column) for node, column in use.pages.items()},
            cpu_time_by_numa={node: of(column) for node, column in use.cpu_time_by_numa.items()},
        ),
    )
