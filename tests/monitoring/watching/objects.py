"""Kubernetes objects as an API server writes them, read as numaweb reads them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from monitoring.kube.objects import DaemonSet, Event, Node, Pod
from monitoring.kube.resources import DAEMONSETS, EVENTS, NODES, PODS

CREATED = "2026-01-01T00:00:00Z"


def node(name: str = "n1", uid: str = "u1", **more: Any) -> Node:
    labels, info = more.pop("labels", {}), more.pop("info", {})
    document = {
        "metadata": {"name": name, "uid": uid, "creationTimestamp": CREATED, "labels": labels},
        "spec": more.pop("spec", {}),
        "status": {
            "capacity": {"cpu": "8", "memory": "16Gi"},
            "allocatable": {"cpu": "7500m", "memory": "15Gi"},
            "conditions": [{"type": "Ready", "status": more.pop("ready", "True"), "reason": "KubeletReady"}],
            "nodeInfo": {"kubeletVersion": "v1.37.2", "machineID": "m1", "bootID": "b1", **info},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }
    assert not more
    return NODES.decode(msgspec.Raw(json.dumps(document).encode()))


def pod(name: str = "p1", uid: str = "p-u1", **more: Any) -> Pod:
    meta = {
        "name": name,
        "uid": uid,
        "namespace": more.pop("namespace", "shop"),
        "creationTimestamp": CREATED,
    }
    meta |= more.pop("meta", {})
    spec = {"nodeName": "n1", "schedulerName": "default-scheduler", "containers": [container()]}
    spec |= more.pop("spec", {})
    status = {"phase": "Running", "qosClass": "Guaranteed", "podIP": "10.1.0.7"} | more.pop("status", {})
    assert not more
    return PODS.decode(msgspec.Raw(json.dumps({"metadata": meta, "spec": spec, "status": status}).encode()))


def container(cpu: str = "2", memory: str = "1Gi", **more: Any) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory}
    return {"name": "main", "resources": {"requests": amounts, "limits": amounts}} | more


def refused(name: str, uid: str, reason: str = "TopologyAffinityError", **more: Any) -> Pod:
    message = "Pod was rejected: Resources cannot be allocated with Topology locality"
    meta = {
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5f7", "uid": "r", "controller": True}],
        "labels": {"pod-template-hash": "5f7"},
    }
    status = {"phase": "Failed", "reason": reason, "message": message}
    return pod(name, uid, meta=meta, status=status, **more)


def exporter(uid: str, on: str, address: str, namespace: str = "numaweb", **status: Any) -> Pod:
    return pod(
        f"numa-exporter-{uid}",
        uid,
        namespace=namespace,
        meta={"labels": {"app": "numa-exporter"}},
        spec={"nodeName": on, "containers": [container(ports=[{"containerPort": 9117}])]},
        status={"podIP": address, **status},
    )


def event(reason: str, kind: str = "Pod", uid: str = "e1", message: str = "", **more: Any) -> Event:
    document = {
        "metadata": {"name": uid, "uid": uid, "namespace": "shop"},
        "involvedObject": {"kind": kind, "name": more.pop("name", "p1"), "namespace": "shop", "uid": "p-u1"},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-01-01T00:05:00Z",
        **more,
    }
    return EVENTS.decode(msgspec.Raw(json.dumps(document).encode()))


def daemonset(uid: str = "d1", label: str = "numa-exporter", ready: int = 3) -> DaemonSet:
    document = {
        "metadata": {"name": "numa-exporter", "uid": uid, "namespace": "numaweb"},
        "spec": {"selector": {}, "template": {"metadata": {"labels": {"app": label}}, "spec": {}}},
        "status": {"desiredNumberScheduled": 4, "numberReady": ready},
    }
    return DAEMONSETS.decode(msgspec.Raw(json.dumps(document).encode()))
