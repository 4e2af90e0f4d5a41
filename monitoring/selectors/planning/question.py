"""What is asked beside the pods themselves: on which nodes, and what is to be imagined otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from numacore.kubelet import topology_manager
from numacore.kubelet.checks import documents
from numacore.manifest import Group
from numacore.volcano import plugin

POLICIES = topology_manager.POLICIES
SCOPES = (topology_manager.CONTAINER, topology_manager.POD)
MOST_WEIGHT = 40
"""Characters of a weight."""
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
    together: bool = False
    """Workloads of one manifest stand on a node one after the other, in its order; else each alone."""
    weight: str = ""
    """What stands behind `weight:` of numa-aware in the scheduler's configuration, as it is written there; empty = nothing."""

    @property
    def volcano_weight(self) -> tuple[int, bool]:
        """The weight that Volcano takes, and whether it is the one that stands there. Volcano reads it with the YAML library that
        kubelets use, to which `1:30` is a text and `010` is 8."""
        if not self.weight:
            return plugin.weight(None)
        value = documents.read(f"weight: {self.weight}").value
        return plugin.weight(value["weight"] if isinstance(value, dict) else self.weight)

    def before(self, groups: Sequence[Group], number: int) -> tuple[Group, ...]:
        """Workloads that stand on a node before this one comes."""
        return tuple(groups[:number]) if self.together else ()
