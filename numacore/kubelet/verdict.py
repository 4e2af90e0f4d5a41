"""What the kubelet does with a pod, and the evidence."""

from __future__ import annotations

from typing import Literal

import msgspec

from numacore.cpuset import CpuSet
from numacore.hints import Hint
from numacore.kubelet.offers import Offer
from numacore.kubelet.pod import QOS
from numacore.workload import MemoryBlock

Outcome = Literal["admitted", "refused", "panics", "hangs"]
"""panics, hangs: the kubelet itself ends or never comes back; everything on the node suffers, not the pod alone."""
Provider = Literal["device", "cpu", "memory"]


class HeldDevices(msgspec.Struct, frozen=True):
    """Devices of one resource. `numa`: the NUMA nodes of each, in the order of `ids`."""

    ids: tuple[str, ...]
    numa: tuple[tuple[int, ...], ...]


class Placement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a container has for itself. `cpus` None = it runs in the shared pool."""

    cpus: CpuSet | None = None
    memory: tuple[MemoryBlock, ...] = ()
    devices: dict[str, HeldDevices] = {}


class Alignment(msgspec.Struct, frozen=True):
    """One merge of hints: for a container, or for the pod (None)."""

    container: str | None
    offers: tuple[Offer, ...]
    """Resources whose provider had a say; all others are had anywhere."""
    best: Hint
    accepted: bool


class Failure(msgspec.Struct, frozen=True):
    """Where a pod's admission ended: in the merge (provider None), or in a manager's allocation."""

    container: str | None
    provider: Provider | None


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The kubelet's answer on a pod, its words, and how it came to it.

    `placements` of a refused pod are leftovers of an allocation that began; they last until the next pod comes.
    """

    outcome: Outcome
    qos: QOS
    reason: str = ""
    message: str = ""
    placements: dict[str, Placement] = {}
    shared: CpuSet = CpuSet()
    alignments: tuple[Alignment, ...] = ()
    failure: Failure | None = None

    @property
    def admitted(self) -> bool:
        return self.outcome == "admitted"
