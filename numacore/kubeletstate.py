"""The kubelet's settings and state files as values, as far as they tell where containers sit.

How the kubelet decides is another room's business; here is what it wrote down.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from numacore.cpuset import CpuSet
from numacore.topology import Amount, Id
from numacore.workload import DeviceClaim, MemoryBlock

Source = Literal["default", "file", "drop-in", "flag"]


class Setting(msgspec.Struct, frozen=True, omit_defaults=True):
    """One setting of the kubelet as asked for, and where it was asked.

    `value` is the JSON value of the field. Flags beat drop-ins, drop-ins beat the file (KEP-3983).
    """

    value: Any
    source: Source
    where: str | None = None
    """File of the setting, or the flag."""


class CpuManagerState(msgspec.Struct, frozen=True):
    """`cpu_manager_state` (kubelet 1.34, cm/cpumanager/state/checkpoint.go)."""

    policy: str
    default: CpuSet
    """The shared pool."""
    entries: dict[str, dict[str, CpuSet]]
    """Exclusive CPUs by pod uid and container name."""


class MemoryTable(msgspec.Struct, frozen=True):
    """One row of a NUMA node's memory map in `memory_manager_state`, bytes."""

    total: Amount
    reserved_system: Amount
    allocatable: Amount
    reserved: Amount
    free: Amount


class MemoryManagerState(msgspec.Struct, frozen=True):
    """`memory_manager_state` (kubelet 1.34, cm/memorymanager/state/checkpoint.go)."""

    policy: str
    nodes: dict[Id, dict[str, MemoryTable]]
    """By NUMA node and kind of memory."""
    groups: dict[Id, tuple[Id, ...]]
    """NUMA nodes that share an allocation with this one (`cells`)."""
    entries: dict[str, dict[str, tuple[MemoryBlock, ...]]]
    """Blocks by pod uid and container name."""


class KubeletFile(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A file that the running kubelet was told to read, as it stands now. `path`: as on the host."""

    path: str
    kind: Literal["file", "drop-in"]
    sha256: str = ""
    """In hexadecimal, of the bytes; "" = it could not be read."""
    text: str | None = None
    withheld: Literal["", "unreadable", "too-large", "not-text", "secret"] = ""
    """Why there is no text; secret: it has what may be a password: headers for static pods, or a name in an
    address."""


class Kubelet(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a node tells of its kubelet. Unknown parts are None; their cause stands in the snapshot's problems."""

    present: bool | None = None
    """False = this machine shows no trace of a kubelet (a plain machine)."""
    version: str | None = None
    settings: dict[str, Setting] = {}
    """By field name of KubeletConfiguration v1beta1, only what is asked for."""
    unread: tuple[str, ...] = ()
    """Files that may ask for more and could not be read: what nobody else asks for is then unknown."""
    config_path: str | None = None
    drop_in_dir: str | None = None
    files: tuple[KubeletFile, ...] | None = None
    """What the kubelet reads, in its order; None = nobody tells: its command line is not to be seen, or the exporter is older."""
    root_dir: str | None = None
    """Where its state files are, as on the host."""
    allocatable_cpus: CpuSet | None = None
    """CPUs that may become exclusive or serve the shared pool (PodResources GetAllocatableResources)."""
    allocatable_memory: tuple[MemoryBlock, ...] | None = None
    allocatable_devices: tuple[DeviceClaim, ...] | None = None
    """Every healthy device that a plugin registered, used or not, those of one resource with the same NUMA nodes together; None = unknown:
    the kubelet does not tell (before 1.23), or an older exporter does not ask."""
    cpu_state: CpuManagerState | None = None
    memory_state: MemoryManagerState | None = None
    stale_since: float | None = None
    """When the PodResources socket last answered, seconds since 1970, if it fails now and its last answer is shown."""

    def asked(self, field: str, default: str) -> str | None:
        """A text setting as asked for, the kubelet's default where nobody asks, None where nobody can say."""
        setting = self.settings.get(field)
        if setting and isinstance(setting.value, str) and setting.value:
            return setting.value
        return None if self.unread and setting is None else default

    @property
    def cpu_policy(self) -> str | None:
        """The CPU manager's policy: in force by its state file, else as asked for; None = unknown."""
        return self.cpu_state.policy if self.cpu_state else self.asked("cpuManagerPolicy", "none")

    @property
    def memory_policy(self) -> str | None:
        """The memory manager's policy: in force by its state file, else as asked for; None = unknown."""
        return self.memory_state.policy if self.memory_state else self.asked("memoryManagerPolicy", "None")
