"""Memory of pods that ask as a whole: how it is parted among their containers (KEP-5526).

Kubelet 1.37, cm/memorymanager/policy_static.go.
"""

from __future__ import annotations

from numacore.kubelet.errors import AllocationError
from numacore.kubelet.memory_state import Requested
from numacore.kubelet.pod import Container, Demand
from numacore.kubelet.resource import UINT64

NO_QUANTITY = "[memorymanager] failed to represent quantity as int64"


def empty_shared_pool(demand: Demand, requested: Requested) -> str | None:
    """`validatePodScopeResources`: why containers without memory of their own would have none at all."""
    taken: Requested = {}
    sharing = False
    for container in demand.pod.init:
        asked = demand.memory(container)
        if asked is None:
            return NO_QUANTITY
        if container.sidecar:
            sharing = sharing or not asked
            _add(taken, asked)
        elif not asked and (kind := _used_up(taken, requested)):
            return f"pod rejected, pod has shared init containers but no {kind} available for them"
    for container in demand.pod.containers:
        asked = demand.memory(container)
        if asked is None:
            return NO_QUANTITY
        sharing = sharing or not asked
        _add(taken, asked)
    if sharing and (kind := _used_up(taken, requested)):
        return (
            f"pod rejected, sum of exclusive container {kind} requests equals pod budget, "
            "leaving no memory for shared containers"
        )
    return None


def _add(taken: Requested, asked: Requested) -> None:
    for kind, size in asked.items():
        taken[kind] = taken.get(kind, 0) + size


def _used_up(taken: Requested, requested: Requested) -> str | None:
    return next((kind for kind, size in requested.items() if taken.get(kind, 0) >= size), None)


def slices(demand: Demand, requested: Requested) -> tuple[dict[str, Requested], Requested]:
    """Memory by container of those that do not simply share what is left of the pod's, and what is left."""
    own: dict[str, Requested] = {}
    left = dict(requested)
    for container in demand.pod.init:
        asked = _asked(demand, container)
        if asked:
            own[container.name] = asked
        elif not container.sidecar:
            own[container.name] = dict(left)
        if container.sidecar:  # of a kind that the pod does not ask for, nothing is left to take it from
            _subtract(left, {kind: size for kind, size in asked.items() if kind in requested})
    for container in demand.pod.containers:
        asked = _asked(demand, container)
        if asked:
            own[container.name] = asked
            _subtract(left, asked)
    return own, left


def _asked(demand: Demand, container: Container) -> Requested:
    asked = demand.memory(container)
    if asked is None:
        raise AllocationError(NO_QUANTITY)
    return asked


def _subtract(left: Requested, asked: Requested) -> None:
    for kind, size in asked.items():
        if size:
            left[kind] = (left.get(kind, 0) - size) & UINT64
