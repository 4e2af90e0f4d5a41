"""Kinds of objects that are read: where the API server has them, and what one of them is as a value."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from monitoring.kube.errors import Garbled, NotServed
from monitoring.kube.objects import (
    DaemonSet,
    Event,
    KubeObject,
    Node,
    NodeResourceTopology,
    Numatopology,
    Pod,
)

T = TypeVar("T", bound=KubeObject)


class Resource(msgspec.Struct, Generic[T], frozen=True):
    """`group` is empty for core."""

    group: str
    version: str
    plural: str
    type: type[T]

    @property
    def root(self) -> str:
        """Where the API server lists the resources of this group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def path(self) -> str:
        """All objects of all namespaces."""
        return f"{self.root}/{self.plural}"

    @property
    def name(self) -> str:
        """As RBAC and CustomResourceDefinitions call it: `pods`, `numatopologies.nodeinfo.volcano.sh`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def decode(self, raw: msgspec.Raw) -> T:
        """Raises msgspec.DecodeError."""
        found: T = _decoder(self.type).decode(raw)
        return found


@cache
def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


NODES = Resource("", "v1", "nodes", Node)
PODS = Resource("", "v1", "pods", Pod)
EVENTS = Resource("", "v1", "events", Event)
DAEMONSETS = Resource("apps", "v1", "daemonsets", DaemonSet)
NUMATOPOLOGIES = Resource("nodeinfo.volcano.sh", "v1alpha1", "numatopologies", Numatopology)
NRT_ALPHA1 = Resource("topology.node.k8s.io", "v1alpha1", "noderesourcetopologies", NodeResourceTopology)
NRT_ALPHA2 = Resource("topology.node.k8s.io", "v1alpha2", "noderesourcetopologies", NodeResourceTopology)


class Getter(Protocol):
    """The part of `client.Client` that is needed here."""

    async def get(self, path: str, params: Mapping[str, str] = {}) -> bytes: ...


class _Named(msgspec.Struct):
    name: str


class _ResourceList(msgspec.Struct):
    kind: Literal["APIResourceList"]
    resources: list[_Named]


class _GroupList(msgspec.Struct):
    kind: Literal["APIGroupList"]
    groups: list[_Named]


async def served(client: Getter, resource: Resource[Any]) -> bool:
    """Whether the API server has this resource now. Custom resources come and go, so the answer ages.

    An unknown group gets a bare "404 page not found", as any web server would say it. So absence is believed only from a
    server that shows its list of groups.

    Raises:
        ApiError: there was no answer, or it is no API server.
    """
    try:
        answer = await client.get(resource.root)
    except NotServed:
        _read(await client.get("/apis"), _GroupList)
        return False
    return any(each.name == resource.plural for each in _read(answer, _ResourceList).resources)


K = TypeVar("K")


def _read(answer: bytes, kind: type[K]) -> K:
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.DecodeError as error:
        raise Garbled(
            200, "NotKubernetes", f"this is no discovery document of an API server: {error}"
        ) from None
