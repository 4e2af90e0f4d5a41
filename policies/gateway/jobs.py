"""Appliers are sent to nodes: a Job that carries its signed order in itself. Their answer is fetched.

The order is an annotation of the Job's pod, which the pod reads as a file: one object is made or not made, nothing can be left beside it, and
nobody needs a right to write ConfigMaps where those lie that say which keys nodes believe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from monitoring.kube.errors import ApiError
from policies.gateway.reaching import Line, decoded

ORDER = "numaweb.io/order"
"""Annotation of the Job's pods: the signed order. A Job's template cannot be altered."""
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
    annotations: dict[str, str] = {}


class _Condition(msgspec.Struct):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _JobStatus(msgspec.Struct):
    conditions: list[_Condition] = []


class _Template(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _JobSpec(msgspec.Struct):
    template: _Template


class _Job(msgspec.Struct):
    spec: _JobSpec
    status: _JobStatus = msgspec.field(default_factory=_JobStatus)

    @property
    def order(self) -> str:
        return self.spec.template.metadata.annotations.get(ORDER, "")


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

    def put(self, namespace: str, manifest: Mapping[str, Any]) -> Put:
        """The Job of an order; one of the same name with the same order counts as it."""
        try:
            self._line.ask("POST", _path(namespace, "jobs"), manifest)
        except ApiError as error:
            if error.status != 409:
                raise
            there = self._job(namespace, manifest["metadata"]["name"])
            same = there is not None and there.order == order_of(manifest)
            return "there" if same else "other"
        return "made"

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
        """Job and pods; that it is not there is no error."""
        path = f"{_path(namespace, 'jobs')}/{quote(name, safe='')}"
        try:
            self._line.ask("DELETE", path, query={"propagationPolicy": "Background"})
        except ApiError as error:
            if error.status != 404:
                raise


def order_of(manifest: Mapping[str, Any]) -> str:
    """The signed order of a Job's manifest."""
    return str(manifest["spec"]["template"]["metadata"]["annotations"][ORDER])


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
