"""Nodes and pods as tests want them: valid, small, with whatever is not the point left out.

Nodes are played by kwok, pods on them too (stages.yaml): they run within a second, unless told what goes wrong with them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.cluster.api import Object

PLAYED = {"kwok.x-k8s.io/node": "fake"}
"""The annotation by which kwok knows its nodes."""
REFUSED = "numaweb.test/refused"
REFUSED_MESSAGE = "numaweb.test/refused-message"
STUCK = "numaweb.test/stuck"
TOPOLOGY_MESSAGE = "Pod was rejected: Resources cannot be allocated with Topology locality"
"""What a kubelet says beside TopologyAffinityError (kubelet 1.37, cm/topologymanager/topology_manager.go)."""


def node(
    name: str,
    *,
    cpus: int = 64,
    memory: str = "256Gi",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    more_capacity: Mapping[str, str] | None = None,
    machine_id: str = "",
    boot_id: str = "",
    system_uuid: str = "",
    kubelet: str = "v1.37.2",
) -> Object:
    """A node that kwok keeps Ready; `more_capacity` such as {"hugepages-2Mi": "4Gi"}."""
    capacity = {"cpu": str(cpus), "memory": memory, "pods": "250", **(more_capacity or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": PLAYED,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **(labels or {}),
            },
        },
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
                "kernelVersion": "6.1.0",
                "containerRuntimeVersion": "containerd://2.4.2",
                "kubeletVersion": kubelet,
                "kubeProxyVersion": "",
                "machineID": machine_id,
                "bootID": boot_id,
                "systemUUID": system_uuid,
            },
        },
    }


def pod(
    name: str,
    namespace: str = "default",
    *,
    node: str = "",
    cpu: str = "",
    memory: str = "",
    guaranteed: bool = False,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    refused: str = "",
    stuck: str = "",
    **spec: object,
) -> Object:
    """A pod with one container `main`; bound to `node` by its name, or left to a scheduler.

    `guaranteed` sets limits to the requests. With `refused` (TopologyAffinityError, UnexpectedAdmissionError, ...) the played kubelet refuses it;
    with `stuck` (CreateContainerError, ...) its container waits with that reason for ever. `spec` adds fields as they are.
    """
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    resources: dict[str, Any] = {"requests": requests} if requests else {}
    if guaranteed:
        resources["limits"] = requests
    told = {**(annotations or {}), **marks(refused=refused, stuck=stuck)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {}), "annotations": told},
        "spec": {
            "containers": [{"name": "main", "image": "registry.invalid/main:1", "resources": resources}],
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            # Bound pods stay where they are put, whatever the node's state.
            "tolerations": [{"operator": "Exists"}],
            **({"nodeName": node} if node else {}),
            **spec,
        },
    }


def deployment(name: str, namespace: str = "default", *, replicas: int = 1, **pod_spec: Any) -> Object:
    """A Deployment of such pods; options as for `pod`."""
    template = pod(name, namespace, labels={"app": name}, **pod_spec)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {key: template["metadata"][key] for key in ("labels", "annotations")},
                "spec": template["spec"],
            },
        },
    }


def marks(*, refused: str = "", message: str = "", stuck: str = "") -> dict[str, str]:
    """Annotations that tell the played kubelet what goes wrong."""
    told = {REFUSED: refused, REFUSED_MESSAGE: message or TOPOLOGY_MESSAGE} if refused else {}
    return told | ({STUCK: stuck} if stuck else {})


def failed(reason: str = "TopologyAffinityError", message: str = TOPOLOGY_MESSAGE) -> Object:
    """The status of a pod that the kubelet refused, to be patched in."""
    return {"phase": "Failed", "reason": reason, "message": message}
