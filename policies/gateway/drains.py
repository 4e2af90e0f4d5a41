"""Pods of a node are asked to leave it, through the API that minds disruption budgets; never forced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from monitoring.kube.errors import ApiError
from policies.gateway.reaching import Line

_MIRROR = "kubernetes.io/config.mirror"
"""Annotation of what stands for a static pod (core/v1, annotation_key_constants.go)."""
_MANY_BUDGETS = "more than one PodDisruptionBudget"
"""registry/core/pod/storage/eviction.go, 500: such a pod is never evicted."""


class LivePod(msgspec.Struct, frozen=True, kw_only=True):
    """`owner`: kind of its controller, "" = nobody makes it anew. `local`: its volumes that stay on the node, as `emptyDir x`."""

    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    reason: str = ""
    created: str = ""
    owner: str = ""
    mirror: bool = False
    leaving: bool = False
    labels: dict[str, str] = {}
    local: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def stays(self) -> bool:
        """A drain does not move it: its DaemonSet or its node would start it there again."""
        return self.mirror or self.owner == "DaemonSet"


class Evicted(NamedTuple):
    """What became of one request. blocked: a budget does not allow it now; gone: it was not there, or another one under its name."""

    outcome: Literal["evicted", "gone", "blocked"]
    cause: str = ""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """A PodDisruptionBudget. `allows`: evictions that it permits now."""

    namespace: str
    name: str
    allows: int
    selector: _Selector | None

    def covers(self, pod: LivePod) -> bool:
        return (
            pod.namespace == self.namespace and self.selector is not None and self.selector.holds(pod.labels)
        )


class _Expression(msgspec.Struct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
        return self.key not in labels


class _Selector(msgspec.Struct, frozen=True, rename="camel"):
    """An empty one means every pod (policy/v1)."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[_Expression, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            each.holds(labels) for each in self.match_expressions
        )


class _Owner(msgspec.Struct):
    kind: str
    controller: bool = False


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[_Owner] = []


class _Volume(msgspec.Struct, rename="camel"):
    name: str
    empty_dir: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    volumes: list[_Volume] = []


class _Status(msgspec.Struct):
    phase: str = ""
    reason: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _BudgetSpec(msgspec.Struct):
    selector: _Selector | None = None


class _BudgetStatus(msgspec.Struct, rename="camel"):
    disruptions_allowed: int = 0


class _Budget(msgspec.Struct):
    metadata: _Meta
    spec: _BudgetSpec = msgspec.field(default_factory=_BudgetSpec)
    status: _BudgetStatus = msgspec.field(default_factory=_BudgetStatus)


class Drains:
    """Every method raises ApiError where the API server gave no answer to the question."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def pods_on(self, node: str) -> list[LivePod]:
        """Pods that are bound to a node, in whatever phase."""
        return list(
            map(_live, self._line.listed("/api/v1/pods", _Pod, {"fieldSelector": f"spec.nodeName={node}"}))
        )

    def every_pod(self) -> Iterator[LivePod]:
        return map(_live, self._line.listed("/api/v1/pods", _Pod))

    def evict(self, pod: LivePod) -> Evicted:
        """Asks for it once; only the pod with this uid goes."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}/eviction"
        try:
            self._line.ask("POST", path, body)
        except ApiError as error:
            if error.status in (404, 409):
                return Evicted("gone", error.message)
            if error.status == 429 or (error.status == 500 and _MANY_BUDGETS in error.message):
                return Evicted("blocked", error.message)
            raise
        return Evicted("evicted")

    def budgets(self) -> list[Budget]:
        found = self._line.listed("/apis/policy/v1/poddisruptionbudgets", _Budget)
        return [
            Budget(
                namespace=each.metadata.namespace,
                name=each.metadata.name,
                allows=each.status.disruptions_allowed,
                selector=each.spec.selector,
            )
            for each in found
        ]


def _live(pod: _Pod) -> LivePod:
    meta = pod.metadata
    return LivePod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        node=pod.spec.node_name,
        phase=pod.status.phase,
        reason=pod.status.reason,
        created=meta.creation_timestamp,
        owner=next((each.kind for each in meta.owner_references if each.controller), ""),
        mirror=_MIRROR in meta.annotations,
        leaving=meta.deletion_timestamp is not None,
        labels=meta.labels,
        local=tuple(
            f"{'emptyDir' if each.empty_dir is not None else 'hostPath'} {each.name}"
            for each in pod.spec.volumes
            if each.empty_dir is not None or each.host_path is not None
        ),
    )
