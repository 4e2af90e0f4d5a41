"""The kubelet's state files: `cpu_manager_state` and `memory_manager_state`, in every form that kubelets wrote.

Kubelet: cm/cpumanager/state/checkpoint.go, cm/memorymanager/state/checkpoint.go. Newer kubelets add the same content as
text in `data`, which then counts; keys are read without regard to case, as Go does.
"""

from __future__ import annotations

import msgspec

from numaagent.readers.files import Files, Source
from numacore.cpuset import MAX_ID, CpuSet, CpuSetError
from numacore.kubeletstate import CpuManagerState, MemoryManagerState, MemoryTable
from numacore.workload import MemoryBlock

LIMIT = 4 * 1024 * 1024
"""Larger than the state of 1,000 pinned containers on 64 NUMA nodes."""
CPU_FILE = "cpu_manager_state"
MEMORY_FILE = "memory_manager_state"
Table = dict[str, object]


class _WrongError(ValueError):
    """A state file that does not say what such files say."""


def cpu(files: Files, folder: str) -> CpuManagerState | None:
    """The CPU manager's state; None where it is missing or unusable."""
    source = files.reader("cpu-state")
    path = f"{folder}/{CPU_FILE}"
    table = _load(source, path)
    if table is None:
        return None
    try:
        return CpuManagerState(
            policy=_text(table, "policyname"),
            default=_cpus(table.get("defaultcpuset") or ""),
            entries={uid: each for uid, each in _assigned(table.get("entries")).items() if each},
        )
    except (_WrongError, CpuSetError) as error:
        source.fail(path, f"it is damaged: {error}")
        return None


def memory(files: Files, folder: str) -> MemoryManagerState | None:
    """The memory manager's state; None where it is missing or unusable."""
    source = files.reader("memory-state")
    path = f"{folder}/{MEMORY_FILE}"
    table = _load(source, path)
    if table is None:
        return None
    try:
        machine = {_node(node): _lower(value) for node, value in _table(table.get("machinestate")).items()}
        return MemoryManagerState(
            policy=_text(table, "policyname"),
            nodes={node: _memory_map(value) for node, value in machine.items()},
            groups={node: _numbers(value.get("cells")) for node, value in machine.items()},
            entries=_blocks(table.get("entries")),
        )
    except (_WrongError, ValueError) as error:
        source.fail(path, f"it is damaged: {error}")
        return None


def _load(source: Source, path: str) -> Table | None:
    data = source.data(path, limit=LIMIT)
    if data is None:
        return None
    try:
        table = _lower(msgspec.json.decode(data))
        inner = table.get("data")
        return _lower(msgspec.json.decode(inner)) if isinstance(inner, str) and inner else table
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, _WrongError) as error:
        source.fail(path, f"it is damaged: {error}")
        return None


def _lower(value: object) -> Table:
    return {name.lower(): each for name, each in _table(value).items()}


def _table(value: object) -> Table:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _WrongError(f"{str(value)[:40]!r} where a table was expected")
    if any("\0" in name for name in value):
        raise _WrongError("a name has a NUL character")
    return {str(name): each for name, each in value.items()}


def _text(table: Table, name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or not value or "\0" in value:
        raise _WrongError(f"it has no {name}")
    return value


def _cpus(value: object) -> CpuSet:
    if not isinstance(value, str):
        raise _WrongError(f"{str(value)[:40]!r} where a list of CPUs was expected")
    return CpuSet.parse(value)


def _assigned(value: object) -> dict[str, dict[str, CpuSet]]:
    """By pod uid and container name. The first form (before 1.18) has container ids and no names; those cannot be
    joined by uid, so each stands as its own pod with an empty container name."""
    found: dict[str, dict[str, CpuSet]] = {}
    for uid, each in _table(value).items():
        inside = {"": each} if isinstance(each, str) else _table(each)
        found[uid] = {name: _cpus(cpus) for name, cpus in inside.items()}
    return found


def _node(name: str) -> int:
    (node,) = _numbers([int(name)])
    return node


def _memory_map(value: Table) -> dict[str, MemoryTable]:
    found = {}
    for kind, row in _table(value.get("memorymap")).items():
        fields = _lower(row)
        amounts = (
            fields.get(name) for name in ("total", "systemreserved", "allocatable", "reserved", "free")
        )
        found[kind] = MemoryTable(*map(_whole, amounts))
    return found


def _blocks(value: object) -> dict[str, dict[str, tuple[MemoryBlock, ...]]]:
    return {
        uid: {
            name: tuple(_block(_lower(each)) for each in _list(blocks))
            for name, blocks in _table(inside).items()
        }
        for uid, inside in _table(value).items()
    }


def _block(fields: Table) -> MemoryBlock:
    return MemoryBlock(
        _text(fields, "type"), _whole(fields.get("size")), _numbers(fields.get("numaaffinity"))
    )


def _list(value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _WrongError(f"{str(value)[:40]!r} where a list was expected")
    return value


def _numbers(value: object) -> tuple[int, ...]:
    found = tuple(_whole(each) for each in _list(value))
    if any(each > MAX_ID for each in found):
        raise _WrongError(f"{max(found)} is no id of a NUMA node")
    return found


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise _WrongError(f"{str(value)[:40]!r} where an amount was expected")
    return value
