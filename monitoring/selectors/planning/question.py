"""What is asked beside the pods themselves: on which nodes, and what is to be imagined otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from numacore.kubelet import topology_manager

POLICIES = topology_manager.POLICIES
SCOPES = (topology_manager.CONTAINER, topology_manager.POD)
MOST_REPLICAS = 100_000
"""More than any cluster holds; a larger number is a typing error."""


class UnknownNodesError(ValueError):
    """Nodes that the cluster does not have."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = tuple(names)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Empty = every node, as it is set, as many pods as the manifest says."""

    find: str = ""
    """Part of a node's name."""
    on: str = ""
    """Only nodes with this topology policy, as they are set."""
    names: tuple[str, ...] = ()
    """Exactly these nodes."""
    policy: str = ""
    """What if every node had this topology policy."""
    scope: str = ""
    """What if every node had this scope."""
    replicas: int | None = None
