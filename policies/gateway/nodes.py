"""Nodes as they are at this moment; they are cordoned and uncordoned, each only as it was looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from monitoring.kube.errors import ApiError
from policies.gateway.reaching import Line, decoded

MARK = "numaweb.io/rollout"
"""Annotation of a node that we cordoned: by which rollout and epoch."""
_PATH = "/api/v1/nodes"
_MERGE = "application/merge-patch+json"
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
Patched = Literal["done", "changed", "gone"]
"""changed: somebody was quicker, look again."""


class LiveNode(msgspec.Struct, frozen=True, kw_only=True):
    """`mark`: whose cordon it is, "" = not ours. `ready` is False while nobody hears of its kubelet, too."""

    name: str
    uid: str
    version: str
    ready: bool
    cordoned: bool
    mark: str = ""
    control_plane: bool = False


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct):
    unschedulable: bool = False


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Node(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class Nodes:
    """Every method raises ApiError where the API server gave no answer to the question."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def read(self, name: str) -> LiveNode | None:
        """None = there is no such node."""
        try:
            return _live(decoded(self._line.ask("GET", _of(name)), _Node))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def all(self) -> Iterator[LiveNode]:
        """Every node of the cluster."""
        return map(_live, self._line.listed(_PATH, _Node))

    def cordon(self, node: LiveNode, mark: str) -> Patched:
        """Nothing new is scheduled there, and the node says who wanted that."""
        return self._patch(node, True, mark)

    def uncordon(self, node: LiveNode) -> Patched:
        return self._patch(node, None, None)

    def _patch(self, node: LiveNode, unschedulable: bool | None, mark: str | None) -> Patched:
        body: dict[str, Any] = {
            "metadata": {
                "uid": node.uid,
                "resourceVersion": node.version,
                "annotations": {MARK: mark},
            },
            "spec": {"unschedulable": unschedulable},
        }
        try:
            self._line.ask("PATCH", _of(node.name), body, kind=_MERGE)
        except ApiError as error:
            if error.status in (404, 409):
                return "gone" if error.status == 404 else "changed"
            raise
        return "done"


def _of(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"


def _live(node: _Node) -> LiveNode:
    meta = node.metadata
    return LiveNode(
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        ready=any(each.type == "Ready" and each.status == "True" for each in node.status.conditions),
        cordoned=node.spec.unschedulable,
        mark=meta.annotations.get(MARK, ""),
        control_plane=any(label in meta.labels for label in _CONTROL_PLANE),
    )
