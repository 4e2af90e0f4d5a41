"""What arrives at a node: pods with their wishes, loads and habits."""

from __future__ import annotations

from typing import Literal

import msgspec

from numacore.workload import QOS
from numasim import wave

MIB = 1 << 20
GIB = 1 << 30
Habit = Literal["local", "drifted", "anywhere"]
"""Where a container's memory lies: near its CPUs, partly on another NUMA node, or where it happened to be touched."""


class Want(msgspec.Struct, frozen=True, kw_only=True):
    """One container as its pod asks for it. CPUs and bytes; no limit = 0."""

    name: str
    cpu: float
    cpu_limit: float
    memory: int
    memory_limit: int
    huge: dict[int, int] = {}
    """Pages by size in bytes."""
    devices: dict[str, int] = {}
    """How many of each kind: `accelerator`, `network`."""
    load: wave.Wave
    fill: wave.Wave
    """Share of `memory` that is in use."""


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that arrives. Times in seconds of simulated time; born before 0 = it was there already."""

    uid: str
    name: str
    namespace: str
    qos: QOS
    containers: tuple[Want, ...]
    habit: Habit
    born: float
    dies: float
    ids: tuple[str, ...]
    """The runtime's ids: of the sandbox, then of each container."""

    @property
    def guaranteed(self) -> bool:
        """Whether whole CPUs of it may become exclusive."""
        return self.qos == "Guaranteed"


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What of a node decides which pods suit it."""

    mix: dict[str, int]
    """How often each kind of `MAKERS` comes, as weights."""
    largest: int
    """CPUs that one pod may ask for."""
    numa_cpus: int
    """CPUs of its largest NUMA node."""
    memory: int
    """Bytes that one pod may ask for."""
    ordinal: int = 0
    """Numbers of stateful pods begin here, so that no two nodes have a pod of the same name."""
    accelerators: int = 0
    accelerator: str = ""
    """Resource name of its GPUs or NPUs."""
    network: str = ""
    huge_size: int = 0
    """Size of huge pages that it has, 0 = none."""
