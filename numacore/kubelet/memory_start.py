"""What the memory manager checks at its start: reservedMemory against Node Allocatable, the state file against the machine.

Kubelet 1.37, cm/memorymanager/memory_manager.go and policy_static.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from numacore.kubelet import resource
from numacore.kubelet.errors import StartError
from numacore.kubelet.machine import Machine
from numacore.kubelet.memory_state import Blocks, MemoryState, MemoryTable, NodeState, Requested
from numacore.kubelet.resource import UINT64
from numacore.kubelet.settings import Settings


def unused(total: int, reserved: int, pages: int) -> MemoryTable:
    allocatable = (total - reserved - pages) & UINT64
    return MemoryTable(total, reserved, allocatable, 0, allocatable)


Nodes = dict[int, NodeState]
Held = tuple[str, Blocks]
"""A container by name (the empty text is a whole pod), and what it has."""

_MOST_STEPS = 2000
"""Containers counted while orders are tried; where groups overlap in so many ways, those found until then have to do."""


def expectations(unused: Nodes, state: MemoryState, whole_pods: bool) -> Iterator[Nodes]:
    """The machine with everything that is assigned, counted anew (`validateState`).

    The kubelet walks over Go maps, pods and then their containers in any order, and the last to use a NUMA node says what its group is.
    So where groups overlap there are several results; the first is that of the names in order.

    Raises:
        StartError: an assignment has no place on the machine.
    """
    pods = assigned(state, whole_pods)
    if faults := [text for uid, held in pods for text in _places_missing(unused, uid, held)]:
        raise StartError(faults[0], tuple(faults[1:]))
    groups = {block.numa for _, held in pods for _, blocks in held for block in blocks}
    torn = {one for one in groups if any(one != other and set(one) & set(other) for other in groups)}
    settled = unused
    open_: list[tuple[Held, ...]] = []
    for _, held in pods:
        if any(block.numa in torn for _, blocks in held for block in blocks):
            open_.append(held)
            continue
        for _, blocks in held:
            settled = _with(settled, blocks)
    yield from _in_any_order(settled, (), tuple(open_), set())


def assigned(state: MemoryState, whole_pods: bool) -> list[tuple[str, tuple[Held, ...]]]:
    """What every container has by pod, with pod-level memory instead of a pod's containers."""
    return [
        (
            uid,
            (("", state.pods[uid]),)
            if whole_pods and state.pods.get(uid)
            else tuple(sorted(containers.items())),
        )
        for uid, containers in sorted(state.assignments.items())
    ]


def _places_missing(unused: Nodes, uid: str, held: Iterable[Held]) -> Iterator[str]:
    """For each container of a pod the first of its blocks that the machine has no place for."""
    for name, blocks in held:
        who = f"[memorymanager] (pod: {uid}, container: {name}) the memory assignment uses "
        for kind, node in ((block.kind, node) for block in blocks for node in block.numa):
            if node not in unused:
                yield who + "the NUMA that does not exist"
                break
            if kind not in unused[node].memory:
                yield who + "memory resource that does not exist"
                break


def _in_any_order(
    nodes: Nodes, current: tuple[Held, ...], others: tuple[tuple[Held, ...], ...], seen: set[object]
) -> Iterator[Nodes]:
    """The containers of the current pod in any order, then the other pods in any order; the same content is come to once."""
    content = tuple(
        (node, each.cells, tuple(table.free for table in each.memory.values()))
        for node, each in nodes.items()
    )
    key = (current, others, content)
    if key in seen or len(seen) > _MOST_STEPS:
        return
    seen.add(key)
    if not current and not others:
        yield nodes
    for at, (_, blocks) in enumerate(current):
        yield from _in_any_order(_with(nodes, blocks), current[:at] + current[at + 1 :], others, seen)
    if not current:
        for at, pod in enumerate(others):
            yield from _in_any_order(nodes, pod, others[:at] + others[at + 1 :], seen)


def _with(nodes: Nodes, blocks: Blocks) -> Nodes:
    """`updateExpectedMachineState`: node after node gives what it has, and counts to the group of this block from now on."""
    counted = dict(nodes)
    for block in blocks:
        size = block.size
        for node in block.numa:
            before = counted[node]
            given = min(size, before.memory[block.kind].free)
            used = msgspec.structs.replace(before, assignments=before.assignments + 1, cells=block.numa)
            counted[node] = used.charged(block.kind, given)
            size -= given
    return counted


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
