"""The two state files of a kubelet, with the checksums that it would write.

A checksum is 32-bit FNV-1a over the way Go prints the checkpoint struct (kubelet 1.34, cm/*/state/checkpoint.go).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from numacore.cpuset import CpuSet
from numasim.kubelet import Settings

Entries = Mapping[str, Mapping[str, CpuSet]]
"""Exclusive CPUs by pod uid and container name."""


class Table(msgspec.Struct, frozen=True):
    """Memory of one kind on one NUMA node, bytes."""

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int


class NodeTable(msgspec.Struct, frozen=True):
    """One NUMA node in the memory manager's state."""

    assignments: int
    tables: dict[str, Table]
    cells: tuple[int, ...]


class Block(msgspec.Struct, frozen=True):
    """Memory that the memory manager gave to a container, bytes."""

    numa: tuple[int, ...]
    kind: str
    size: int


def cpu_state(settings: Settings, default: CpuSet, entries: Entries) -> str:
    """Text of `cpu_manager_state`."""
    policy = settings.cpu_policy
    shown = "" if policy == "none" else str(default)
    plain = {
        uid: {name: str(cpus) for name, cpus in sorted(each.items())} for uid, each in sorted(entries.items())
    }
    dump = (
        f"(*state.CPUManagerCheckpoint){{PolicyName:(string){policy} DefaultCPUSet:(string){shown} "
        f"Entries:(map[string]map[string]string){_go_map(plain)} Checksum:(checksum.Checksum)0}}"
    )
    body: dict[str, object] = {"policyName": policy, "defaultCpuSet": shown}
    if plain:
        body["entries"] = plain
    return _state(settings, body, dump)


def memory_state(
    settings: Settings, nodes: Mapping[int, NodeTable], entries: Mapping[str, Mapping[str, tuple[Block, ...]]]
) -> str:
    """Text of `memory_manager_state`."""
    policy = settings.memory_policy
    machine = {str(node): _node_json(table) for node, table in sorted(nodes.items())}
    plain = {
        uid: {name: [_block_json(block) for block in blocks] for name, blocks in sorted(each.items())}
        for uid, each in sorted(entries.items())
    }
    dump = (
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){policy} "
        f"MachineState:(state.NUMANodeMap){_dump_nodes(nodes)} "
        f"Entries:(state.ContainerMemoryAssignments){_dump_blocks(entries)} Checksum:(checksum.Checksum)0}}"
    )
    body: dict[str, object] = {"policyName": policy, "machineState": machine}
    if plain:
        body["entries"] = plain
    return _state(settings, body, dump)


def fnv1a(text: str) -> int:
    """32-bit FNV-1a."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def _state(settings: Settings, body: dict[str, object], dump: str) -> str:
    full = body | {"checksum": fnv1a(dump)}
    if settings.newest_state:
        data = msgspec.json.encode(body).decode()
        full |= {"data": data, "dataChecksum": fnv1a("(string)" + data)}
    return msgspec.json.encode(full).decode()


def _node_json(node: NodeTable) -> dict[str, object]:
    tables = {
        kind: {
            "total": table.total,
            "systemReserved": table.system_reserved,
            "allocatable": table.allocatable,
            "reserved": table.reserved,
            "free": table.free,
        }
        for kind, table in sorted(node.tables.items())
    }
    return {"numberOfAssignments": node.assignments, "memoryMap": tables, "cells": list(node.cells)}


def _block_json(block: Block) -> dict[str, object]:
    return {"numaAffinity": list(block.numa), "type": block.kind, "size": block.size}


def _go_map(value: object) -> str:
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go_map(inner)}" for key, inner in value.items()) + "]"
    return str(value)


def _dump_nodes(nodes: Mapping[int, NodeTable]) -> str:
    return "map[" + " ".join(f"{node}:{_dump_node(table)}" for node, table in sorted(nodes.items())) + "]"


def _dump_node(node: NodeTable) -> str:
    tables = " ".join(f"{kind}:{_dump_table(table)}" for kind, table in sorted(node.tables.items()))
    return (
        f"<*>{{NumberOfAssignments:(int){node.assignments} "
        f"MemoryMap:(map[v1.ResourceName]*state.MemoryTable)map[{tables}] Cells:([]int)[{_go_ints(node.cells)}]}}"
    )


def _dump_table(table: Table) -> str:
    return (
        f"<*>{{TotalMemSize:(uint64){table.total} SystemReserved:(uint64){table.system_reserved} "
        f"Allocatable:(uint64){table.allocatable} Reserved:(uint64){table.reserved} Free:(uint64){table.free}}}"
    )


def _dump_blocks(entries: Mapping[str, Mapping[str, tuple[Block, ...]]]) -> str:
    pods = (
        f"{uid}:map["
        + " ".join(f"{name}:[{' '.join(map(_dump_block, each[name]))}]" for name in sorted(each))
        + "]"
        for uid, each in sorted(entries.items())
    )
    return "map[" + " ".join(pods) + "]"


def _dump_block(block: Block) -> str:
    return (
        f"{{NUMAAffinity:([]int)[{_go_ints(block.numa)}] Type:(v1.ResourceName){block.kind} "
        f"Size:(uint64){block.size}}}"
    )


def _go_ints(values: tuple[int, ...]) -> str:
    return " ".join(map(str, values))
