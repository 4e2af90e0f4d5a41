"""Appliers are sent to nodes: a ConfigMap with the signed order and a Job that carries it out, and their answer is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from monitoring.kube.errors import ApiError
from policies.gateway.reaching import Line, decoded

ORDER = "order.json"
"""Key of the ConfigMap, as the Job's arguments name it."""
APP = "numaweb-applier"
Put = Literal["made", "there", "other"]
"""there: it was so already. other: something else has that name."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """How far a Job is. `message`: what an applier left when it ended, "" = none has yet. `failed`: no further try will be made."""

    message: str = ""
    ended: bool = False
    failed: bool = False
    words: str = ""
    """Why it failed or cannot start, as Kubernetes says it."""


class _Meta(msgspec.Struct):
    name: str
    annotations: dict[str, str] = {}


class _Condition(msgspec.Struct):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _JobStatus(msgspec.Struct):
    conditions: list[_Condition] = []


class _Job(msgspec.Struct):
    metadata: _Meta
    status: _JobStatus = msgspec.field(default_factory=_JobStatus)


class _Map(msgspec.Struct):
    data: dict[str, str] = {}


class _Ended(msgspec.Struct, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class _Waits(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _ContainerState(msgspec.Struct):
    terminated: _Ended | None = None
    waiting: _Waits | None = None


class _Container(msgspec.Struct):
    state: _ContainerState = msgspec.field(default_factory=_ContainerState)


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    container_statuses: list[_Container] = []


class _Pod(msgspec.Struct):
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class Jobs:
    """Of one namespace. Every method raises ApiError where the API server gave no answer to the question."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def put_order(self, namespace: str, name: str, order: bytes) -> Put:
        """The ConfigMap of an order, which is never altered."""
        text = order.decode("utf-8")
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"app": APP}},
            "immutable": True,
            "data": {ORDER: text},
        }
        path = _path(namespace, "configmaps")
        if self._made(path, body):
            return "made"
        try:
            there = decoded(self._line.ask("GET", f"{path}/{quote(name, safe='')}"), _Map)
        except ApiError as error:
            if error.status == 404:  # it went between the two questions
                return "other"
            raise
        return "there" if there.data == {ORDER: text} else "other"

    def put_job(self, namespace: str, manifest: Mapping[str, Any]) -> Put:
        """The Job of an order; one of the same name with the same order in its annotations counts as it."""
        path, meta = _path(namespace, "jobs"), manifest["metadata"]
        if self._made(path, manifest):
            return "made"
        there = self._job(namespace, meta["name"])
        same = there is not None and there.metadata.annotations == meta.get("annotations", {})
        return "there" if same else "other"

    def _made(self, path: str, body: Mapping[str, Any]) -> bool:
        try:
            self._line.ask("POST", path, body)
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    def _job(self, namespace: str, name: str) -> _Job | None:
        try:
            return decoded(self._line.ask("GET", f"{_path(namespace, 'jobs')}/{quote(name, safe='')}"), _Job)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def look(self, namespace: str, name: str) -> Applied | None:
        """None = there is no such Job."""
        job = self._job(namespace, name)
        if job is None:
            return None
        pods = list(self._line.listed(_path(namespace, "pods"), _Pod, {"labelSelector": f"job-name={name}"}))
        done = {each.type: each for each in job.status.conditions if each.status == "True"}
        failed = done.get("Failed")
        return Applied(
            message=_newest(pods),
            ended=bool(done.keys() & {"Complete", "Failed"}),
            failed=failed is not None,
            words=f"{failed.reason}: {failed.message}" if failed else _why_waiting(pods),
        )

    def remove(self, namespace: str, name: str) -> None:
        """Job, its pods and ConfigMap; what is not there is no error."""
        for path in (_path(namespace, "jobs"), _path(namespace, "configmaps")):
            try:
                self._line.ask(
                    "DELETE", f"{path}/{quote(name, safe='')}", query={"propagationPolicy": "Background"}
                )
            except ApiError as error:
                if error.status != 404:
                    raise


def _path(namespace: str, kind: str) -> str:
    group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
    return f"{group}/namespaces/{quote(namespace, safe='')}/{kind}"


def _newest(pods: list[_Pod]) -> str:
    """A Job that was killed and tried again has several pods: the last word counts."""
    ended = [
        each.state.terminated
        for pod in pods
        for each in pod.status.container_statuses
        if each.state.terminated and each.state.terminated.message
    ]
    return max(ended, key=lambda each: each.finished_at or "").message if ended else ""


def _why_waiting(pods: list[_Pod]) -> str:
    for pod in pods:
        for each in pod.status.container_statuses:
            if each.state.waiting and each.state.waiting.message:
                return f"{each.state.waiting.reason}: {each.state.waiting.message}"
        if pod.status.reason:
            return f"{pod.status.reason}: {pod.status.message}"
    return ""
