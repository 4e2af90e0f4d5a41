"""What runs on a simulated node: containers of pods, and services of the system."""

from __future__ import annotations

import msgspec

from numacore.topology import Device
from numasim import wave
from numasim.meter import Account
from numasim.placement import Place
from numasim.workload import Pod, Want


class Running(msgspec.Struct, kw_only=True):
    """A container on the node."""

    id: str
    pod: Pod
    want: Want
    place: Place
    account: Account
    pages: dict[int, wave.Wave]
    """Share of its memory by NUMA node."""
    pid: int

    @property
    def devices(self) -> tuple[Device, ...]:
        """Its devices."""
        return self.place.devices


class Service(msgspec.Struct, kw_only=True):
    """A unit of the system outside Kubernetes."""

    name: str
    account: Account
    memory: int
    home: int
    pid: int
