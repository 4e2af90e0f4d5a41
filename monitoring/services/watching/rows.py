"""What of a Kubernetes object becomes columns. Values alone: no table is read or written here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

import msgspec

from monitoring.kube import objects
from monitoring.models import ClusterEvent, KubernetesNode, Pod
from numacore import quantity
from numacore.manifest import POLICY_ANNOTATION

Columns = dict[str, Any]


def node(told: objects.Node) -> Columns:
    """Columns of `KubernetesNode` but for the node itself and when it was written."""
    info, status = told.status.node_info, told.status
    return {
        "created": told.metadata.creation_timestamp,
        "labels": told.metadata.labels,
        "taints": [msgspec.to_builtins(each) for each in told.spec.taints],
        "unschedulable": told.spec.unschedulable,
        "capacity": status.capacity,
        "allocatable": status.allocatable,
        "conditions": [_condition(each) for each in status.conditions],
        "ready": _ready(status.conditions),
        "kubelet_version": _cut(KubernetesNode, "kubelet_version", info.kubelet_version),
        "runtime_version": _cut(KubernetesNode, "runtime_version", info.container_runtime_version),
        "kernel_version": _cut(KubernetesNode, "kernel_version", info.kernel_version),
        "os_image": _cut(KubernetesNode, "os_image", info.os_image),
        "architecture": _cut(KubernetesNode, "architecture", info.architecture),
        "machine_id": _cut(KubernetesNode, "machine_id", info.machine_id),
        "boot_id": _cut(KubernetesNode, "boot_id", info.boot_id),
        "address": _address(status.addresses),
        "kubelet_port": status.daemon_endpoints.kubelet_endpoint.port or None,
    }


def _condition(told: objects.Condition) -> dict[str, Any]:
    return {
        "type": told.type,
        "status": told.status,
        "reason": told.reason,
        "message": told.message[:500],
        "since": told.last_transition_time.isoformat() if told.last_transition_time else None,
    }


def _ready(conditions: Iterable[objects.Condition]) -> bool | None:
    """Unknown is what it is while the kubelet does not report."""
    said = next((each.status for each in conditions if each.type == "Ready"), "Unknown")
    return {"True": True, "False": False}.get(said)


def _address(addresses: Iterable[objects.NodeAddress]) -> str:
    found = next((each.address for each in addresses if each.type == "InternalIP"), "")
    return _cut(KubernetesNode, "address", found)


# ---------------------------------------------------------------- pods


def pod(told: objects.Pod) -> Columns:
    """Columns of `Pod` but for its cluster and uid."""
    spec, status = told.spec, told.status
    kind, owner = owner_of(told.metadata)
    cpu, memory = _requested(spec, "cpu"), _requested(spec, "memory")
    return {
        "kubelet_uid": kubelet_uid(told.metadata),
        "namespace": told.metadata.namespace,
        "name": told.metadata.name,
        "node_name": spec.node_name,
        "owner_kind": _cut(Pod, "owner_kind", kind),
        "owner_name": _cut(Pod, "owner_name", owner),
        "scheduler": _cut(Pod, "scheduler", spec.scheduler_name),
        "priority": spec.priority,
        "qos": _cut(Pod, "qos", status.qos_class),
        "phase": _cut(Pod, "phase", status.phase),
        "reason": _cut(Pod, "reason", status.reason or _refused_start(told)),
        "message": _cut(Pod, "message", status.message),
        "created": told.metadata.creation_timestamp,
        "cpu_request": None if cpu is None else float(cpu),
        "cpu_limit": _float(_limited(spec, "cpu")),
        "memory_request": _bytes(memory),
        "memory_limit": _bytes(_limited(spec, "memory")),
        "resources": asked(spec),
        "running": running(status),
    }


MIRRORED = "kubernetes.io/config.mirror"
"""Annotation of the mirror of a static pod: the uid that its kubelet gave it, a hash (kubelet 1.37, config/common.go `applyDefaults`)."""


HASH = re.compile(r"[0-9a-f]{32}")


def kubelet_uid(meta: objects.ObjectMeta) -> str:
    """The uid by which a pod's kubelet knows it. Whoever writes a pod may write this annotation, so only the hash of a static pod is
    believed, and only of one that its Node owns: nobody's ordinary pod can pass for another one."""
    mirrored = meta.annotations.get(MIRRORED, "")
    of_node = any(each.kind == "Node" and each.controller for each in meta.owner_references)
    return mirrored if of_node and HASH.fullmatch(mirrored) else meta.uid


WORD = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,252}")
"""What a name or id of a container looks like. Statuses are written by kubelets, and the API server takes any text."""


def running(status: objects.PodStatus) -> dict[str, str]:
    """Names of a pod's running containers by their ids. One that waits or is over has no control group."""
    told = (*status.init_container_statuses, *status.container_statuses)
    found = {
        each.container_id.rpartition("//")[2]: each.name for each in told if each.state.running is not None
    }
    return {id_: name for id_, name in found.items() if WORD.fullmatch(id_) and WORD.fullmatch(name)}


def owner_of(meta: objects.ObjectMeta) -> tuple[str, str]:
    """Kind and name of whom a person knows: of a Deployment's pod the Deployment.

    A ReplicaSet of a Deployment is named after it and the hash of the template, which is a label of the pod
    (kubernetes 1.37, controller/deployment/sync.go `getNewReplicaSet`). Likewise a CronJob's Job after it and the minute.
    """
    controller = next((each for each in meta.owner_references if each.controller), None)
    if controller is None:
        return "", ""
    kind, name = controller.kind, controller.name
    template = meta.labels.get("pod-template-hash", "")
    if kind == "ReplicaSet" and template and name.endswith(f"-{template}"):
        return "Deployment", name.removesuffix(f"-{template}")
    base, _, minute = name.rpartition("-")
    if kind == "Job" and base and len(minute) >= MINUTE_DIGITS and minute.isdecimal():
        return "CronJob", base
    return kind, name


MINUTE_DIGITS = 8
"""Minutes since 1970, which a CronJob's controller appends to the names of its Jobs."""


def _refused_start(told: objects.Pod) -> str:
    """Why a container that was admitted waits, where the kubelet or the runtime says so."""
    waiting = (each.state.waiting for each in told.status.container_statuses)
    return next((each.reason for each in waiting if each is not None and each.reason in START_FAILURES), "")


START_FAILURES = Pod.START_FAILURES


LONGEST_WISH = 253


def wish(meta: objects.ObjectMeta) -> str:
    """The topology policy that a pod asks Volcano for; "" = none. Anybody may write anything there."""
    return meta.annotations.get(POLICY_ANNOTATION, "").replace("\0", "\ufffd")[:LONGEST_WISH]


def asked(spec: objects.PodSpec) -> dict[str, Any]:
    """The part of a pod's spec that decides about placement, in the form of a manifest."""
    found: dict[str, Any] = {"containers": [_container(each) for each in spec.containers]}
    if spec.init_containers:
        found["initContainers"] = [_container(each) for each in spec.init_containers]
    if spec.resources is not None:
        found["resources"] = msgspec.to_builtins(spec.resources)
    if spec.overhead:
        found["overhead"] = spec.overhead
    return found


def _container(told: objects.Container) -> dict[str, Any]:
    found: dict[str, Any] = {"name": told.name, "resources": msgspec.to_builtins(told.resources)}
    if told.restart_policy:
        found["restartPolicy"] = told.restart_policy
    return found


def _requested(spec: objects.PodSpec, name: str) -> Fraction | None:
    """A pod's request as the scheduler counts it (component-helpers 1.37, resource/helpers.go `PodRequests`); None = one
    of its quantities cannot be read."""
    try:
        return _sum(spec, name, "requests") + amount(spec.overhead.get(name, "0"))
    except quantity.QuantityError:
        return None


def _limited(spec: objects.PodSpec, name: str) -> Fraction | None:
    """A pod's limit; None = not every container has one, or it cannot be read."""
    running = [*spec.containers, *(each for each in spec.init_containers if each.restart_policy == "Always")]
    whole = spec.resources is not None and name in spec.resources.limits
    if not whole and not all(name in each.resources.limits for each in running):
        return None
    try:
        return _sum(spec, name, "limits")
    except quantity.QuantityError:
        return None


def _sum(spec: objects.PodSpec, name: str, side: str) -> Fraction:
    if spec.resources is not None and name in (stated := getattr(spec.resources, side)):
        return amount(stated[name])

    def of(container: objects.Container) -> Fraction:
        amounts: Mapping[str, str] = getattr(container.resources, side)
        return amount(amounts.get(name, "0"))

    sidecars, most = Fraction(0), Fraction(0)
    for each in spec.init_containers:
        if each.restart_policy == "Always":
            sidecars += of(each)
        else:
            most = max(most, sidecars + of(each))
    return max(most, sidecars + sum(map(of, spec.containers), Fraction(0)))


@lru_cache(maxsize=4096)
def amount(text: str) -> Fraction:
    """A quantity's value. Raises QuantityError."""
    return quantity.parse(text)


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _bytes(value: Fraction | None) -> int | None:
    """None = unknown, or more than a column holds."""
    return None if value is None or value >= 2**63 else -(-value.numerator // value.denominator)


# ---------------------------------------------------------------- events


def event(told: objects.Event, now: datetime) -> Columns:
    """Columns of `ClusterEvent` but for its cluster and uid."""
    about = told.involved_object
    on_node = about.name if about.kind == "Node" else told.source.host
    return {
        "kind": _cut(ClusterEvent, "kind", about.kind),
        "namespace": _cut(ClusterEvent, "namespace", about.namespace),
        "name": _cut(ClusterEvent, "name", about.name),
        "object_uid": _cut(ClusterEvent, "object_uid", about.uid),
        "node_name": _cut(ClusterEvent, "node_name", on_node),
        "warning": told.type == "Warning",
        "reason": _cut(ClusterEvent, "reason", told.reason),
        "message": _cut(ClusterEvent, "message", told.message),
        "component": _cut(ClusterEvent, "component", told.source.component or told.reporting_component),
        "count": told.times,
        "first": told.first,
        "last": told.last or now,
    }


def _cut(model: type[Any], column: str, text: str) -> str:
    """A text that the column takes: bounded, and without the character that PostgreSQL refuses."""
    return text.replace("\0", "")[: model._meta.get_field(column).max_length]
