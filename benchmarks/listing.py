"""`python -m benchmarks.listing ours|peer PODS`: reads a list of pods three times in this process; prints JSON. See pods.py.

Pages are made before the clock starts and are equal in all but names, so that no reader gains by having seen one.
"""

import json
import resource
import sys
import time
from collections.abc import Iterable
from typing import Any

from monitoring.kube import lists
from monitoring.kube.resources import PODS

PAGE = 500
ROUNDS = 3
DIFFERENT_PAGES = 6
"""Read in turn: all of them at once would be 600 MB that neither side has to have."""


def pod(number: int) -> dict[str, Any]:
    """As the API server shows a running pod of a Deployment with two containers."""
    name = f"shop-7c9d8f6b5d-{number:05x}"
    uid = f"{number:08x}-6f1c-4b7e-9c3a-0123456789ab"
    labels = {"app": "shop", "pod-template-hash": "7c9d8f6b5d", "app.kubernetes.io/part-of": "store"}
    requests = {"cpu": "2", "memory": "4Gi"}
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-11-30T08:00:00Z"}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    mounts = [
        {"name": "settings", "mountPath": "/etc/shop", "readOnly": True},
        {
            "name": "kube-api-access-x2x9q",
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            "readOnly": True,
        },
    ]
    containers = [
        {
            "name": each,
            "image": f"registry.invalid/store/{each}:1.14.2",
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": [{"name": f"SETTING_{nth}", "value": f"value {nth}"} for nth in range(5)],
            "resources": {"requests": requests, "limits": requests},
            "volumeMounts": mounts,
            "livenessProbe": {
                "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
                "periodSeconds": 10,
            },
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        }
        for each in ("main", "proxy")
    ]
    statuses = [
        {
            "name": each["name"],
            "state": {"running": {"startedAt": "2026-11-30T08:00:01Z"}},
            "lastState": {},
            "ready": True,
            "restartCount": 0,
            "image": each["image"],
            "imageID": f"{each['image']}@sha256:{number:064x}",
            "containerID": f"containerd://{number:064x}",
            "started": True,
        }
        for each in containers
    ]
    return {
        "metadata": {
            "name": name,
            "generateName": "shop-7c9d8f6b5d-",
            "namespace": f"team-{number % 200}",
            "uid": uid,
            "resourceVersion": str(1_000_000 + number),
            "generation": 1,
            "creationTimestamp": "2026-11-30T07:59:58Z",
            "labels": labels,
            "annotations": {"kubectl.kubernetes.io/restartedAt": "2026-11-30T07:59:00Z"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "shop-7c9d8f6b5d",
                    "uid": "0d6c8e52-0000-4000-8000-000000000001",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [managed(name) for name in ("kube-controller-manager", "kubelet")],
        },
        "spec": {
            "volumes": [{"name": "settings", "configMap": {"name": "shop", "defaultMode": 420}}],
            "containers": containers,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": f"node-{number % 5000:04}",
            "securityContext": {},
            "schedulerName": "volcano",
            "tolerations": [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": "10.1.2.3",
            "podIP": "10.244.3.7",
            "podIPs": [{"ip": "10.244.3.7"}],
            "startTime": "2026-11-30T07:59:59Z",
            "containerStatuses": statuses,
            "qosClass": "Guaranteed",
        },
    }


def managed(manager: str) -> dict[str, Any]:
    """Who set which field: a good part of every object's bytes, and of no use here."""
    fields: dict[str, Any] = {
        f"f:{name}": {} for name in ("phase", "podIP", "startTime", "conditions", "hostIP", "image", "name")
    }
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-30T08:00:02Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": fields, "f:spec": {'k:{"name":"main"}': {".": {}, **fields}}},
    }


def page(first: int) -> bytes:
    """Compact, as the API server writes it."""
    content = {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "2000000", "continue": f"token-{first}", "remainingItemCount": 1},
        "items": [pod(first + nth) for nth in range(PAGE)],
    }
    return json.dumps(content, separators=(",", ":")).encode()


def ours(pages: Iterable[bytes]) -> int:
    return sum(len(lists.decode(PODS, body)[0].objects) for body in pages)


def peer(pages: Iterable[bytes]) -> int:
    # Only for this side: importing it takes more memory than all of ours.
    from kubernetes import client  # noqa: PLC0415

    api = client.ApiClient()
    return sum(len(api.deserialize(body.decode(), "V1PodList", "application/json").items) for body in pages)


def main(side: str, pods: int) -> None:
    different = [page(nth * PAGE) for nth in range(DIFFERENT_PAGES)]
    pages = [different[nth % DIFFERENT_PAGES] for nth in range(pods // PAGE)]
    read = {"ours": ours, "peer": peer}[side]
    read(pages[:1])
    seconds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        found = read(pages)
        seconds.append(time.process_time() - started)
        assert found == pods
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "bytes": [sum(map(len, pages))], "peak": [peak]}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
