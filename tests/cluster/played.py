"""Appliers that are played on kwok's nodes: they take the Jobs' orders and answer through the termination message of their pods.

    appliers = PlayedAppliers(plane, public_pem)
    appliers.add("n0", TEXT)
    appliers.step()    # whatever waits is carried out

As administrator, since it stands for kubelets. What is played of a node is `tests.appliers.played`, which keeps the applier's contract.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

from numacore.change import order as orders
from numacore.change.order import Answer
from policies.gateway.jobs import ORDER
from tests.appliers.played import PlayedNode
from tests.cluster import rights
from tests.cluster.api import ApiError, Object
from tests.cluster.controlplane import ControlPlane

PODS = f"/api/v1/namespaces/{rights.NAMESPACE}/pods"


class PlayedAppliers:
    """`nodes` by name."""

    def __init__(self, plane: ControlPlane, public_pem: str) -> None:
        self._plane, self._pem = plane, public_pem
        self.nodes: dict[str, PlayedNode] = {}
        for thing in rights.objects("applier"):
            plane.api.apply(thing)

    def add(self, name: str, text: str, machine_id: str = "") -> PlayedNode:
        self.nodes[name] = PlayedNode(name, text, machine_id)
        return self.nodes[name]

    def step(self) -> list[Answer]:
        """Every applier that has started answers and ends."""
        pods = self._plane.api.items(PODS, labelSelector="app=numaweb-applier")
        return [self._carry_out(pod) for pod in pods if _has_started(pod)]

    def _carry_out(self, pod: Object) -> Answer:
        spec = pod["spec"]
        assert spec["containers"][0]["args"][:2] == ["--order=/order/order.json", "--keys=/keys/keys.pem"]
        (file,) = (
            each for volume in spec["volumes"] for each in volume.get("downwardAPI", {}).get("items", ())
        )
        assert file == {
            "path": "order.json",
            "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{ORDER}']"},
        }
        data = pod["metadata"]["annotations"][ORDER].encode()
        answer = self.nodes[spec["nodeName"]].give(data, self._pem, time.time())
        self._end(pod, answer)
        return answer

    def _end(self, pod: Object, answer: Answer) -> None:
        good = answer.outcome in ("applied", "unchanged")
        ended = {
            "exitCode": 0 if good else 1,
            "reason": "Completed" if good else "Error",
            "message": orders.encode_answer(answer).decode(),
            "startedAt": _now(),
            "finishedAt": _now(),
        }
        (status,) = pod["status"]["containerStatuses"]
        status |= {"ready": False, "started": False, "state": {"terminated": ended}}
        change = {"status": {"phase": "Succeeded" if good else "Failed", "containerStatuses": [status]}}
        path = f"{PODS}/{pod['metadata']['name']}/status"
        try:
            self._plane.api.patch(path, json.loads(json.dumps(change)))
        except ApiError as error:
            if error.status != 404:  # somebody deleted it meanwhile
                raise


def _has_started(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
