"""What the memory manager checks at its start: reservedMemory against Node Allocatable, the state file against the machine.

Kubelet 1.37, cm/memorymanager/memory_manager.go and policy_static.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from numacore.kubelet import resource
from numacore.kubelet.errors import StartError
from numacore.kubelet.machine import Machine
from numacore.kubelet.memory_state import Blocks, MemoryState, MemoryTable, NodeState, Requested
from numacore.kubelet.resource import UINT64
from numacore.kubelet.settings import Settings
from numacore.workload import MemoryBlock


def unused(total: int, reserved: int, pages: int) -> MemoryTable:
    allocatable = (total - reserved - pages) & UINT64
    return MemoryTable(total, reserved, allocatable, 0, allocatable)


def assigned(state: MemoryState, whole_pods: bool) -> Iterable[tuple[str, str, Blocks]]:
    """What every container has, with pod-level memory instead of a pod's containers."""
    for uid, containers in sorted(state.assignments.items()):
        if whole_pods and state.pods.get(uid):
            yield uid, "", state.pods[uid]
            continue
        for name, blocks in sorted(containers.items()):
            yield uid, name, blocks


def expect(expected: MemoryState, uid: str, container: str, block: MemoryBlock) -> None:
    """`updateExpectedMachineState`. Raises StartError: the machine has no such NUMA node or kind of memory."""
    who = f"[memorymanager] (pod: {uid}, container: {container}) the memory assignment uses "
    size = block.size
    for node in block.numa:
        if node not in expected.nodes:
            raise StartError(who + "the NUMA that does not exist")
        before = expected.nodes[node]
        if block.kind not in before.memory:
            raise StartError(who + "memory resource that does not exist")
        given = min(size, before.memory[block.kind].free)
        used = msgspec.structs.replace(before, assignments=before.assignments + 1, cells=block.numa)
        expected.nodes[node] = used.charged(block.kind, given)
        size -= given


class Difference(msgspec.Struct, frozen=True):
    """What of a NUMA node is not as the machine and the assignments say (`areMachineStatesEqual`)."""

    node: int
    field: str
    kind: str | None
    state: int | tuple[int, ...] | None
    expected: int | tuple[int, ...] | None


def compares_what_is_not_there(state: Mapping[int, NodeState]) -> bool:
    """Free memory is compared over a node's whole group, kind by kind. Where another node of the group does not list a kind (a size of
    huge pages), the kubelet follows a nil pointer: once there is such a group, it does not survive its next restart."""
    return any(
        cell not in state or kind not in state[cell].memory
        for node in state.values()
        for kind in node.memory
        for cell in node.cells
    )


def differences(state: Mapping[int, NodeState], expected: Mapping[int, NodeState]) -> list[Difference]:
    """Everything that differs; the kubelet stops at the first. Free and reserved count over a node's whole group."""
    found = [
        Difference(node, "node", None, node if node in state else None, node if node in expected else None)
        for node in sorted(state.keys() ^ expected.keys())
    ]
    for node in sorted(state.keys() & expected.keys()):
        mine, other = state[node], expected[node]
        if mine.assignments != other.assignments:
            found.append(Difference(node, "numberOfAssignments", None, mine.assignments, other.assignments))
        if sorted(mine.cells) != sorted(other.cells):
            found.append(Difference(node, "cells", None, mine.cells, other.cells))
        found += [
            Difference(node, "memoryMap", kind, _total(mine, kind), _total(other, kind))
            for kind in sorted(mine.memory.keys() ^ other.memory.keys())
        ]
        for kind in sorted(mine.memory.keys() & other.memory.keys()):
            found += _table_differences(state, expected, node, kind)
    return found


def _total(node: NodeState, kind: str) -> int | None:
    return node.memory[kind].total if kind in node.memory else None


def _table_differences(
    state: Mapping[int, NodeState], expected: Mapping[int, NodeState], node: int, kind: str
) -> Iterable[Difference]:
    mine, other = state[node].memory[kind], expected[node].memory[kind]
    for field, have, want in (
        ("TotalMemSize", mine.total, other.total),
        ("SystemReserved", mine.system_reserved, other.system_reserved),
        ("Allocatable", mine.allocatable, other.allocatable),
    ):
        if have != want:
            yield Difference(node, field, kind, have, want)
    have_all, want_all = (_over_group(nodes, state[node].cells, kind) for nodes in (state, expected))
    for field, have, want in zip(("free", "reserved"), have_all, want_all, strict=True):
        if have != want:
            yield Difference(node, field, kind, have, want)


def _over_group(nodes: Mapping[int, NodeState], cells: tuple[int, ...], kind: str) -> tuple[int, int]:
    """Free and reserved bytes of a group."""
    tables = [nodes[cell].memory[kind] for cell in cells if cell in nodes and kind in nodes[cell].memory]
    return sum(each.free for each in tables) & UINT64, sum(each.reserved for each in tables) & UINT64


def validate_reserved_memory(settings: Settings, machine: Machine) -> None:
    """`validateReservedMemory`: reservedMemory adds up to exactly what Node Allocatable reserves, kind by kind."""
    totals: dict[str, resource.Quantity] = {}
    for each in settings.reserved_memory:
        if each.numa not in machine.ids:
            raise StartError(
                f"the reserved memory configuration references a NUMA node {each.numa} that does not exist on this machine"
            )
        for kind, size in each.limits.items():
            totals[kind] = resource.parse(size) + totals.get(kind, resource.ZERO)
    allocatable = {
        kind: resource.parse(size) for kind, size in settings.reservation.items() if resource.is_memory(kind)
    }
    faults = tuple(
        f'the total amount "{resource.ZERO + totals.get(kind, resource.ZERO)}" of type "{kind}" is not equal to the value '
        f'"{resource.ZERO + allocatable.get(kind, resource.ZERO)}" determined by Node Allocatable feature'
        for kind in sorted({*totals, *allocatable})
        if totals.get(kind, resource.ZERO).amount != allocatable.get(kind, resource.ZERO).amount
    )
    if faults:
        raise StartError(faults[0], faults[1:])


def converted(settings: Settings, machine: Machine) -> dict[int, Requested]:
    """`convertReserved`: bytes by NUMA node and kind; of the same kind named twice the last counts."""
    reserved: dict[int, Requested] = {node: {} for node in machine.ids}
    for each in settings.reserved_memory:
        for kind, size in each.limits.items():
            amount = resource.parse(size).int64
            if amount is None:
                raise StartError("could not covert a variable of type Quantity to int64")
            reserved[each.numa][kind] = amount & UINT64
    return reserved
