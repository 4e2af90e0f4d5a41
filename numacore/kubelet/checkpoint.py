"""The kubelet's state files, `cpu_manager_state` and `memory_manager_state`: read as a kubelet of some version reads them, and written
as it writes them, checksums included.

Kubelet 1.37, cm/cpumanager/state/checkpoint.go and state_checkpoint.go, cm/memorymanager/state likewise; forms 1 to 4 and 1 to 3. A checksum is
32-bit FNV-1a over the way Go prints the struct (utils dump.ForHash); since 1.37 one over the text in `data` counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from numacore import kubeletstate
from numacore.kubelet.checksums import (
    DATA_SINCE,
    CheckpointError,
    CpuCheckpoint,
    CpuText,
    MemoryCheckpoint,
    cpu_checksum,
    cpu_dump,
    fnv1a,
    go_map,
    memory_checksum,
    sorted_entries,
)
from numacore.kubelet.cpu_manager import CpuState
from numacore.kubelet.cpus import shown
from numacore.kubelet.errors import StartError
from numacore.kubelet.memory_state import Blocks, MemoryState, MemoryTable, NodeState
from numacore.kubelet.settings import Settings
from numacore.workload import MemoryBlock

FOLDER = "/var/lib/kubelet"
CPU_FILE = "cpu_manager_state"
MEMORY_FILE = "memory_manager_state"
CORRUPTED = "checkpoint is corrupted"

_PODS_SINCE = 36
"""Minor version that may keep pod-level allocations, and that takes a memory manager's file without a checksum."""

Table = dict[str, Any]
Containers = Mapping[str, tuple[str, str]]
"""Pod uid and container name by the runtime's container id."""


# What a kubelet finds at its start


def restore_cpu(text: str | None, settings: Settings, containers: Containers | None = None) -> CpuState:
    """The CPU manager's state at start (`restoreState`). None = there is no file.

    `containers` are needed only for files of kubelets before 1.18, which know containers by the runtime's ids.

    Raises:
        StartError: the kubelet cannot use the file.
    """
    if text is None:
        return CpuState()
    try:
        told = _cpu_text(text, settings, containers or {})
        _check_policy(settings.cpu_manager_policy, told.policy, "")
        found = told.parsed(settings.minor)
    except CheckpointError as error:
        raise _refused(error, "CPU", CPU_FILE) from None
    return CpuState(found.default, dict(found.entries), found.pods if _keeps_pods(settings) else {})


def restore_memory(text: str | None, settings: Settings) -> MemoryState:
    """The memory manager's state at start. Raises StartError."""
    if text is None:
        return MemoryState()
    try:
        found = read_memory(text, settings)
        _check_policy(settings.memory_manager_policy, found.policy, "[memorymanager] ")
    except CheckpointError as error:
        raise _refused(error, "memory", MEMORY_FILE) from None
    return MemoryState(dict(found.nodes), dict(found.entries), found.pods if _keeps_pods(settings) else {})


def _check_policy(configured: str, found: str, prefix: str) -> None:
    if configured != found:
        raise CheckpointError(
            f'{prefix}configured policy "{configured}" differs from state checkpoint policy "{found}"'
        )


def _refused(error: CheckpointError, manager: str, file: str) -> StartError:
    return StartError(
        f"could not restore state from checkpoint: {error}, please drain this node and delete the {manager} manager "
        f'checkpoint file "{FOLDER}/{file}" before restarting Kubelet'
    )


def _keeps_pods(settings: Settings) -> bool:
    return settings.minor >= _PODS_SINCE and settings.enabled("PodLevelResourceManagers")


# Reading


def read_cpu(text: str, settings: Settings, containers: Containers | None = None) -> CpuCheckpoint:
    """`cpu_manager_state` as a kubelet of this version reads it. Raises CheckpointError."""
    return _cpu_text(text, settings, containers or {}).parsed(settings.minor)


_TRIES_FIRST_FORM_LAST = 36
"""Minor version that tries the form before 1.18 on a file that is none of the others, and tells what that says of it."""
_NO_FIRST_FORM = (
    "json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string"
)


def _cpu_text(text: str, settings: Settings, containers: Containers) -> CpuText:
    table = _table(text)
    if settings.minor >= DATA_SINCE and (table.get("data") or table.get("datachecksum")):
        return _cpu_content(_data(table, "v4", "cpu"))
    entries, checksum = _entries(table).values(), _checksum(table)
    if settings.minor >= DATA_SINCE or (
        _keeps_pods(settings) and not any(isinstance(e, str) for e in entries)
    ):
        found = _cpu_content(table)
        if checksum == cpu_checksum(found, with_pods=True):
            return found
    if settings.minor < DATA_SINCE and all(isinstance(each, str) for each in entries):
        return _first_cpu_form(table, containers)
    found = _cpu_content(table)
    if checksum not in (0, cpu_checksum(found)):
        raise CheckpointError(_NO_FIRST_FORM if settings.minor == _TRIES_FIRST_FORM_LAST else CORRUPTED)
    return msgspec.structs.replace(found, pods={})


def _first_cpu_form(table: Table, containers: Containers) -> CpuText:
    """The form before 1.18, and any without containers: entries by the runtime's container ids."""
    by_id = _entries(table)
    plain = _cpu_content(table | {"entries": {}})
    dumped = cpu_dump(plain, f"(map[string]string){go_map(dict(sorted(by_id.items())))}")
    if _checksum(table) not in (0, fnv1a(dumped)) and (by_id or _checksum(table) != cpu_checksum(plain)):
        raise CheckpointError(CORRUPTED)
    entries: dict[str, dict[str, str]] = {}
    for container_id, cpus in by_id.items():
        if container_id not in containers:
            raise CheckpointError(
                "error migrating v1 checkpoint state to v2 checkpoint state: "
                f"containerID '{container_id}' not found in initial containers list"
            )
        uid, name = containers[container_id]
        entries.setdefault(uid, {})[name] = cpus
    return CpuText(plain.policy, plain.default, entries)


def read_memory(text: str, settings: Settings) -> MemoryCheckpoint:
    """`memory_manager_state` as a kubelet of this version reads it. Raises CheckpointError."""
    table = _table(text)
    if settings.minor >= DATA_SINCE and (table.get("data") or table.get("datachecksum")):
        return _memory_content(_data(table, "v3", "memory"))
    found = _memory_content(table)
    checksum = _checksum(table)
    sums = [memory_checksum(found)]
    if settings.minor >= DATA_SINCE or _keeps_pods(settings):
        sums.append(memory_checksum(found, with_pods=True))
    if checksum not in sums and not (checksum == 0 and settings.minor >= _PODS_SINCE):
        raise CheckpointError(CORRUPTED)
    return found if checksum == sums[-1] else msgspec.structs.replace(found, pods={})


def _data(table: Table, form: str, manager: str) -> Table:
    """The content in `data`, which alone counts."""
    text = table.get("data") or ""
    if not text:
        fault = f"failed to deserialize {manager} manager checkpoint data: unexpected end of JSON input"
        raise CheckpointError(f"could not load {form} checkpoint: {fault}")
    if not isinstance(text, str) or fnv1a(f"(string){text}") != table.get("datachecksum"):
        raise CheckpointError(f"could not load {form} checkpoint: {CORRUPTED}")
    return _table(text)


def _table(text: str) -> Table:
    try:
        return _lowered(msgspec.json.decode(text))
    except msgspec.DecodeError as error:
        raise CheckpointError(f"the file is no JSON: {error}") from None


def _lowered(value: object) -> Table:
    """Go reads keys without regard to case."""
    if not isinstance(value, dict):
        raise CheckpointError(f"{str(value)[:40]!r} where a table was expected")
    return {str(key).lower(): each for key, each in value.items()}


def _entries(table: Table, key: str = "entries") -> Table:
    found = table.get(key) or {}
    if not isinstance(found, dict):
        raise CheckpointError(f"{key} is no table")
    return found


def _checksum(table: Table) -> int:
    found = table.get("checksum") or 0
    if not isinstance(found, int):
        raise CheckpointError("checksum is no number")
    return found


def _cpu_content(table: Table) -> CpuText:
    body = {
        "policy": table.get("policyname") or "",
        "default": table.get("defaultcpuset") or "",
        "entries": _entries(table),
        "pods": {
            uid: _lowered(each).get("cpuset") or "" for uid, each in _entries(table, "podentries").items()
        },
    }
    try:
        return msgspec.convert(body, CpuText)
    except msgspec.ValidationError as error:
        raise CheckpointError(f"the file does not say what such files say: {error}") from None


class _TableForm(msgspec.Struct):
    total: int = 0
    systemreserved: int = 0
    allocatable: int = 0
    reserved: int = 0
    free: int = 0


class _BlockForm(msgspec.Struct):
    numaaffinity: tuple[int, ...] | None = None
    type: str = ""
    size: int = 0


def _memory_content(table: Table) -> MemoryCheckpoint:
    try:
        return MemoryCheckpoint(
            str(table.get("policyname") or ""),
            {int(node): _node(_lowered(each)) for node, each in _entries(table, "machinestate").items()},
            {
                uid: {name: _block_list(blocks) for name, blocks in _entries({"of": inside}, "of").items()}
                for uid, inside in _entries(table).items()
            },
            {
                uid: _block_list(_lowered(each).get("memoryblocks"))
                for uid, each in _entries(table, "podentries").items()
            },
        )
    except (msgspec.ValidationError, ValueError) as error:
        raise CheckpointError(f"the file does not say what such files say: {error}") from None


def _node(table: Table) -> NodeState:
    forms = {
        kind: msgspec.convert(_lowered(each), _TableForm)
        for kind, each in sorted(_entries(table, "memorymap").items())
    }
    memory = {
        kind: MemoryTable(each.total, each.systemreserved, each.allocatable, each.reserved, each.free)
        for kind, each in forms.items()
    }
    cells = msgspec.convert(table.get("cells") or [], tuple[int, ...])
    return NodeState(msgspec.convert(table.get("numberofassignments") or 0, int), memory, cells)


def _block_list(value: object) -> Blocks:
    forms = [msgspec.convert(_lowered(each), _BlockForm) for each in msgspec.convert(value or [], list[Any])]
    return tuple(MemoryBlock(each.type, each.size, each.numaaffinity or ()) for each in forms)


# Writing


def write_cpu(state: CpuState, settings: Settings) -> str:
    """The text of `cpu_manager_state` as a kubelet of this version writes it."""
    kept = CpuText(
        settings.cpu_manager_policy,
        shown(state.default),
        sorted_entries(
            {uid: {name: shown(c) for name, c in each.items()} for uid, each in state.assignments.items()}
        ),
        dict(sorted((uid, shown(cpus)) for uid, cpus in state.pods.items())),
    )
    with_pods = _keeps_pods(settings)
    body: Table = {"policyName": kept.policy, "defaultCpuSet": kept.default}
    if kept.entries:
        body["entries"] = kept.entries
    pods = {"podEntries": {uid: {"cpuSet": cpus} for uid, cpus in kept.pods.items()}}
    extra = (pods if with_pods and kept.pods else {}) | _baselines(kept, settings)
    return _written(
        body, extra, settings, cpu_checksum(kept, with_pods=with_pods and settings.minor < DATA_SINCE)
    )


def _baselines(kept: CpuText, settings: Settings) -> Table:
    """What containers had when admitted, before any resize in place (kubelet 1.37, cpumanager/state `ContainerCPUBaselines`)."""
    if settings.minor < DATA_SINCE or not settings.enabled("InPlacePodVerticalScalingExclusiveCPUs"):
        return {}
    entries = {
        uid: {name: {"baseline": cpus} for name, cpus in each.items()} for uid, each in kept.entries.items()
    }
    return {"baselines": entries} if entries else {}


def write_memory(state: MemoryState, settings: Settings) -> str:
    """The text of `memory_manager_state`. The order of a container's blocks is as open as in the kubelet."""
    kept = MemoryCheckpoint(settings.memory_manager_policy, state.nodes, state.assignments, state.pods)
    with_pods = _keeps_pods(settings)
    body: Table = {
        "policyName": kept.policy,
        "machineState": {
            str(node): _node_form(each) for node, each in sorted(kept.nodes.items(), key=_by_text)
        },
    }
    if kept.entries:
        body["entries"] = {
            uid: {name: _block_forms(blocks) for name, blocks in sorted(inside.items())}
            for uid, inside in sorted(kept.entries.items())
        }
    pods = {"podEntries": {uid: _pod_form(blocks) for uid, blocks in sorted(kept.pods.items())}}
    extra = pods if with_pods and kept.pods else {}
    return _written(
        body, extra, settings, memory_checksum(kept, with_pods=with_pods and settings.minor < DATA_SINCE)
    )


def _by_text(entry: tuple[int, NodeState]) -> str:
    """Go sorts the keys of JSON as text."""
    return str(entry[0])


def _written(body: Table, pods: Table, settings: Settings, checksum: int) -> str:
    if settings.minor < DATA_SINCE:
        return _json(body | pods | {"checksum": checksum})
    data = _json(body | pods)
    return _json(body | {"checksum": checksum, "data": data, "dataChecksum": fnv1a(f"(string){data}")})


def _json(value: Table) -> str:
    """As Go writes it: compact, with <, > and & escaped."""
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _node_form(node: NodeState) -> Table:
    return {
        "numberOfAssignments": node.assignments,
        "memoryMap": {
            kind: {
                "total": each.total,
                "systemReserved": each.system_reserved,
                "allocatable": each.allocatable,
                "reserved": each.reserved,
                "free": each.free,
            }
            for kind, each in sorted(node.memory.items())
        },
        "cells": list(node.cells),
    }


def _pod_form(blocks: Blocks) -> Table:
    return {"memoryBlocks": _block_forms(blocks)} if blocks else {}


def _block_forms(blocks: Blocks) -> list[Table]:
    return [{"numaAffinity": list(each.numa), "type": each.kind, "size": each.size} for each in blocks]


# What the agent on a node read of the same files


def of_cpu_report(known: kubeletstate.CpuManagerState) -> CpuState:
    """The CPU manager's state from a node's report, which leaves out pod-level CPUs."""
    entries = {
        uid: {name: cpus.bits for name, cpus in inside.items()} for uid, inside in known.entries.items()
    }
    return CpuState(known.default.bits, entries)


def of_memory_report(known: kubeletstate.MemoryManagerState) -> MemoryState:
    """The memory manager's state from a node's report, which leaves out how often a NUMA node is used: counted anew."""
    used = [
        node
        for inside in known.entries.values()
        for blocks in inside.values()
        for b in blocks
        for node in b.numa
    ]
    nodes = {
        node: NodeState(
            used.count(node),
            {
                kind: MemoryTable(
                    each.total, each.reserved_system, each.allocatable, each.reserved, each.free
                )
                for kind, each in tables.items()
            },
            known.groups.get(node, (node,)),
        )
        for node, tables in known.nodes.items()
    }
    return MemoryState(nodes, dict(known.entries))
