"""What state files say, and the checksums over it: 32-bit FNV-1a over the way Go prints the struct (utils dump.ForHash).

Kubelet 1.37, cm/cpumanager/state/checkpoint.go, cm/memorymanager/state/checkpoint.go, checkpointmanager/checksum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from numacore.hints import nodes_of
from numacore.kubelet.cpus import CpuListError, parse
from numacore.kubelet.memory_state import Blocks, NodeState

DATA_SINCE = 37
"""Minor version that keeps the content as text in `data` with a checksum of its own."""


class CheckpointError(Exception):
    """A state file that this kubelet cannot use, in its words where they are known."""


class CpuCheckpoint(msgspec.Struct, frozen=True):
    """Content of `cpu_manager_state`. Sets of CPUs are integers with a bit per CPU."""

    policy: str
    default: int = 0
    entries: dict[str, dict[str, int]] = {}
    pods: dict[str, int] = {}


class CpuText(msgspec.Struct, frozen=True):
    """The same as the file says it; the checksum goes over this."""

    policy: str
    default: str = ""
    entries: dict[str, dict[str, str]] = {}
    pods: dict[str, str] = {}

    def parsed(self, minor: int) -> CpuCheckpoint:
        """Raises CheckpointError."""
        word = "CPU" if minor >= DATA_SINCE else "cpu"
        return CpuCheckpoint(
            self.policy,
            _cpus(self.default, f'default {word} set "{self.default}"'),
            {
                uid: {
                    name: _cpus(cpus, f'cpuset "{cpus}" for container "{name}" in pod "{uid}"')
                    for name, cpus in inside.items()
                }
                for uid, inside in self.entries.items()
            },
            {uid: _cpus(cpus, f'cpuset "{cpus}" of pod "{uid}"') for uid, cpus in self.pods.items()},
        )


class MemoryCheckpoint(msgspec.Struct, frozen=True):
    """Content of `memory_manager_state`."""

    policy: str
    nodes: dict[int, NodeState] = {}
    entries: dict[str, dict[str, Blocks]] = {}
    pods: dict[str, Blocks] = {}


def _cpus(text: str, what: str) -> int:
    try:
        return parse(text)
    except CpuListError as error:
        raise CheckpointError(f"could not parse {what}: {error}") from None


def sorted_entries(entries: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    return {uid: dict(sorted(inside.items())) for uid, inside in sorted(entries.items())}


def fnv1a(text: str) -> int:
    """32-bit FNV-1a."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def cpu_checksum(kept: CpuText, *, with_pods: bool = False) -> int:
    """Of form 2, or of form 3 with the pods' own CPUs."""
    entries = f"(map[string]map[string]string){go_map(sorted_entries(kept.entries))}"
    pods = ""
    if with_pods:
        dumped = {uid: _cpuset_dump(parse(cpus)) for uid, cpus in sorted(kept.pods.items())}
        pods = f" PodEntries:(state.PodCPUAssignments){go_map(dumped)}"
    return fnv1a(cpu_dump(kept, entries + pods))


def cpu_dump(kept: CpuText, entries: str) -> str:
    return (
        f"(*state.CPUManagerCheckpoint){{PolicyName:(string){kept.policy} DefaultCPUSet:(string){kept.default} "
        f"Entries:{entries} Checksum:(checksum.Checksum)0}}"
    )


def _cpuset_dump(cpus: int) -> str:
    members = " ".join(f"{cpu}:{{}}" for cpu in nodes_of(cpus))
    return f"{{CPUSet:(cpuset.CPUSet){{elems:(map[int]struct {{}})map[{members}]}}}}"


def memory_checksum(kept: MemoryCheckpoint, *, with_pods: bool = False) -> int:
    """Of form 1, or of form 2 with the pods' own memory. Blocks count in the order in which they stand."""
    nodes = go_map({str(node): _node_dump(each) for node, each in sorted(kept.nodes.items())})
    entries = go_map(
        {
            uid: {name: _block_dumps(blocks) for name, blocks in sorted(inside.items())}
            for uid, inside in sorted(kept.entries.items())
        }
    )
    pods = ""
    if with_pods:
        dumped = {
            uid: f"{{MemoryBlocks:([]state.Block){_block_dumps(blocks)}}}"
            for uid, blocks in sorted(kept.pods.items())
        }
        pods = f" PodEntries:(state.PodMemoryAssignments){go_map(dumped)}"
    return fnv1a(
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){kept.policy} MachineState:(state.NUMANodeMap){nodes} "
        f"Entries:(state.ContainerMemoryAssignments){entries}{pods} Checksum:(checksum.Checksum)0}}"
    )


def go_map(value: Mapping[str, Any] | str) -> str:
    if isinstance(value, str):
        return value
    return "map[" + " ".join(f"{key}:{go_map(inner)}" for key, inner in value.items()) + "]"


def _node_dump(node: NodeState) -> str:
    tables = {
        kind: f"<*>{{TotalMemSize:(uint64){each.total} SystemReserved:(uint64){each.system_reserved} "
        f"Allocatable:(uint64){each.allocatable} Reserved:(uint64){each.reserved} Free:(uint64){each.free}}}"
        for kind, each in sorted(node.memory.items())
    }
    return (
        f"<*>{{NumberOfAssignments:(int){node.assignments} "
        f"MemoryMap:(map[v1.ResourceName]*state.MemoryTable){go_map(tables)} Cells:([]int)[{_ints(node.cells)}]}}"
    )


def _block_dumps(blocks: Blocks) -> str:
    dumped = (
        f"{{NUMAAffinity:([]int)[{_ints(each.numa)}] Type:(v1.ResourceName){each.kind} Size:(uint64){each.size}}}"
        for each in blocks
    )
    return f"[{' '.join(dumped)}]"


def _ints(values: Iterable[int]) -> str:
    return " ".join(map(str, values))
