"""What the memory manager holds: NUMA nodes with their tables, and who has which blocks (kubelet 1.37, cm/memorymanager/state).

Amounts are bytes and wrap around at 2 to the power of 64, as Go's uint64 does.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from numacore import hints
from numacore.kubelet import errors
from numacore.kubelet.errors import PanicError
from numacore.workload import MemoryBlock

Requested = dict[str, int]
"""Bytes by kind of memory."""


class MemoryTable(msgspec.Struct, frozen=True):
    """One kind of memory on one NUMA node."""

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int

    def charged(self, size: int) -> MemoryTable:
        """With `size` bytes more in use; negative gives back."""
        return msgspec.structs.replace(self, reserved=self.reserved + size, free=self.free - size)


class NodeState(msgspec.Struct, frozen=True):
    """One NUMA node. `cells`: itself, or the group of NUMA nodes that it serves together with."""

    assignments: int
    """Number of (container, kind of memory) that use it."""
    memory: dict[str, MemoryTable]
    cells: tuple[int, ...]

    def table(self, kind: str) -> MemoryTable:
        """Raises PanicError for a kind that the node does not list: the kubelet follows a nil pointer there."""
        if kind not in self.memory:
            raise PanicError(errors.NIL_POINTER)
        return self.memory[kind]

    def charged(self, kind: str, size: int) -> NodeState:
        memory = self.memory | {kind: self.table(kind).charged(size)}
        return msgspec.structs.replace(self, memory=memory)


Blocks = tuple[MemoryBlock, ...]


class MemoryState(msgspec.Struct):
    """What `memory_manager_state` holds, and what the policy remembers of the pod that it serves now."""

    nodes: dict[int, NodeState] = {}
    assignments: dict[str, dict[str, Blocks]] = {}
    pods: dict[str, Blocks] = {}
    """Memory of whole pods (pod-level resources)."""
    reusable: dict[str, dict[tuple[int, str], int]] = {}
    """Memory of init containers that have ended, by pod, then NUMA nodes and kind; never more than one pod."""

    def copied(self) -> MemoryState:
        """A copy that may change on its own."""
        return MemoryState(dict(self.nodes), dict(self.assignments), dict(self.pods), dict(self.reusable))

    def of(self, uid: str, container: str) -> Blocks | None:
        return self.assignments.get(uid, {}).get(container)

    def assign(self, uid: str, container: str, blocks: Blocks) -> None:
        self.assignments[uid] = self.assignments.get(uid, {}) | {container: blocks}

    def forget(self, uid: str, container: str) -> Blocks | None:
        """Takes the entry out and returns it."""
        kept = dict(self.assignments.get(uid, {}))
        blocks = kept.pop(container, None)
        if kept:
            self.assignments[uid] = kept
        else:
            self.assignments.pop(uid, None)
        return blocks

    def reuse(self, uid: str, mask: int, kind: str) -> int:
        """`getPodReusableMemory`: only what lies on exactly these NUMA nodes."""
        return self.reusable.get(uid, {}).get((mask, kind), 0)

    def charge(self, mask: int, kind: str, size: int) -> None:
        """`updateMachineState`: node after node gives what it has; every one counts as used, all form a group."""
        group = tuple(hints.nodes_of(mask))
        for node in group:
            before = self.nodes[node]
            free = before.table(kind).free if size else 0
            given = min(free, size)
            used = msgspec.structs.replace(before, assignments=before.assignments + 1, cells=group)
            self.nodes[node] = used.charged(kind, given) if given else used
            size -= given

    def release(self, blocks: Iterable[MemoryBlock]) -> None:
        """`releaseMemory`: node after node takes back what it gave; the last user of a node dissolves its group."""
        for block in blocks:
            size = block.size
            for node in block.numa:
                before = self.nodes[node]
                left = before.assignments - 1
                kept = msgspec.structs.replace(
                    before, assignments=left, cells=before.cells if left else (node,)
                )
                back = min(size, before.table(block.kind).reserved) if size else 0
                self.nodes[node] = kept.charged(block.kind, -back) if back else kept
                size -= back
