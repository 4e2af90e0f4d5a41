"""What a kubelet leaves on a node: configuration, drop-ins, flags and the two state files with right checksums.

Checksums are 32-bit FNV-1a over the way Go prints the checkpoint struct (kubelet 1.34, cm/*/state/checkpoint.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from numacore.cpuset import EMPTY, CpuSet
from numasim.files import Tree

Entries = Mapping[str, Mapping[str, CpuSet]]
"""Exclusive CPUs by pod uid and container name."""
MIB = 1 << 20
STATE = "var/lib/kubelet"
DROP_INS = "etc/kubernetes/kubelet.conf.d"
EVICTION = 100 * MIB


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a node's kubelet is set up."""

    version: str = "v1.34.2"
    cpu_policy: Literal["none", "static"] = "static"
    options: dict[str, str] = {}
    reserved: CpuSet = EMPTY
    memory_policy: Literal["None", "Static"] = "None"
    reserved_memory: dict[int, int] = {}
    """MiB kept for the system on each NUMA node, under the memory policy Static."""
    topology_policy: Literal["none", "best-effort", "restricted", "single-numa-node"] = "none"
    scope: Literal["container", "pod"] = "container"
    driver: Literal["systemd", "cgroupfs"] = "systemd"
    drop_in: dict[str, object] = {}
    """Settings that a drop-in asks for and that the running kubelet has not taken up: the state differs."""
    newest_state: bool = False
    """State files carry the `data` field of kubelet 1.37."""

    @property
    def strict(self) -> bool:
        """Whether the shared pool leaves the reserved CPUs out."""
        return self.options.get("strict-cpu-reservation") == "true"


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


def write_config(tree: Tree, settings: Settings) -> None:
    """Writes the configuration file, a drop-in where there is one, and the flags."""
    tree.put(f"{STATE}/config.yaml", _yaml(_config(settings)))
    if settings.drop_in:
        head: dict[str, object] = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
        }
        tree.put(f"{DROP_INS}/90-numa.conf", _yaml(head | settings.drop_in))
    flags = "--container-runtime-endpoint=unix:///run/containerd/containerd.sock"
    tree.put(f"{STATE}/kubeadm-flags.env", f'KUBELET_KUBEADM_ARGS="{flags}"\n')


def command_line(settings: Settings) -> list[str]:
    """The kubelet's command line."""
    found = [
        "/usr/bin/kubelet",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        f"--config=/{STATE}/config.yaml",
    ]
    return [*found, f"--config-dir=/{DROP_INS}"] if settings.drop_in else found


def _config(settings: Settings) -> dict[str, object]:
    found: dict[str, object] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
        "cgroupDriver": settings.driver,
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
        "cpuManagerPolicy": settings.cpu_policy,
        "evictionHard": {"memory.available": "100Mi"},
        "rotateCertificates": True,
        "staticPodPath": "/etc/kubernetes/manifests",
        "topologyManagerPolicy": settings.topology_policy,
    }
    if settings.options:
        found["cpuManagerPolicyOptions"] = dict(settings.options)
    if settings.reserved:
        found["reservedSystemCPUs"] = str(settings.reserved)
    if settings.scope != "container":
        found["topologyManagerScope"] = settings.scope
    if settings.memory_policy == "Static":
        found |= _memory_config(settings)
    return found


def _memory_config(settings: Settings) -> dict[str, object]:
    total = sum(settings.reserved_memory.values())
    return {
        "memoryManagerPolicy": "Static",
        "systemReserved": {"memory": f"{total - EVICTION // MIB}Mi"},
        "reservedMemory": [
            {"numaNode": node, "limits": {"memory": f"{size}Mi"}}
            for node, size in settings.reserved_memory.items()
        ],
    }


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


def _yaml(value: dict[str, object], indent: str = "") -> str:
    return "".join(_yaml_item(f"{indent}{key}:", inner, indent) for key, inner in sorted(value.items()))


def _yaml_item(start: str, value: object, indent: str) -> str:
    if isinstance(value, dict):
        return f"{start}\n{_yaml(value, indent + '  ')}"
    if isinstance(value, list):
        return f"{start}\n" + "".join(f"{indent}- {msgspec.json.encode(item).decode()}\n" for item in value)
    return f"{start} {msgspec.json.encode(value).decode()}\n"
