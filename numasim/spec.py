"""What a simulated node is made from."""

from __future__ import annotations

import msgspec

from numasim import kinds
from numasim.kubelet import Settings
from numasim.machine import Machine


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """A node that can be made: its server, its kubelet, and what is to run on it."""

    name: str
    machine: Machine
    settings: Settings = Settings()
    cgroup: int = 2
    runtime: str = "containerd"
    accelerator: str = "nvidia.com/gpu"
    network: str = "rdma/hca"
    containers: int = 24
    """About how many containers run at a time."""
    mix: dict[str, int] = msgspec.field(default_factory=lambda: dict(kinds.MIX))
    """How often each kind of pod comes."""
    ordinal: int = 0
    """Place in the cluster."""
    residents: tuple[str, ...] = ()
    """Kinds of pods that are there from the beginning and stay."""
    hidden: tuple[str, ...] = ()
    """Paths that are taken away from the finished tree, so that something is unknown."""
    garbled: tuple[str, ...] = ()
    """Files that hold rubbish instead of what should be in them."""
