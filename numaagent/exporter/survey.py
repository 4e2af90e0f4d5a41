"""The slow half of a reading: the machine, its kubelet and which containers there are.

It runs in a thread of its own every few seconds and hands over a finished `Survey`; what did not change stays the same
object with the same bytes, so that nobody encodes or sends it again.
"""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec

from numaagent.config import Config
from numaagent.exporter import join
from numaagent.readers import (
    containernames,
    groups,
    hierarchies,
    identity,
    kubelet,
    limits,
    machine,
    memory,
    numamaps,
    podresources,
    topology,
)
from numaagent.readers.files import Files
from numaagent.readers.hierarchies import Hierarchies
from numaagent.readers.identity import Identity
from numaagent.readers.kept import Kept
from numaagent.readers.kubelet import Reading
from numacore import wire
from numacore.kubeletstate import Kubelet
from numacore.topology import Topology
from numacore.wire import Containers, Machine, Packed
from numacore.workload import Container

TOPOLOGY_PERIOD = 30.0
"""Seconds between looks at what tells that CPUs or NUMA nodes came or went."""
MACHINE_PERIOD = 600.0
"""Seconds after which everything about the machine is read again, even if nothing seems to have changed."""
SEARCH_PERIOD = 60.0
"""Seconds after which containers are searched and their limits read as if nothing were known of them."""
T = TypeVar("T", Machine, Kubelet, Containers)


class Survey(msgspec.Struct, frozen=True):
    """What the slow half found."""

    identity: Identity
    machine: Packed[Machine]
    kubelet: Packed[Kubelet]
    containers: Packed[Containers]
    trees: Hierarchies
    places: tuple[memory.Place, ...]
    numa_maps: tuple[dict[int, int] | None, ...] = ()
    """Pages from the processes' `numa_maps`, by container; empty unless they were asked for."""


class Surveyor:
    """Reads the slow half, and remembers what it read."""

    def __init__(self, config: Config, files: Files, budget: int) -> None:
        self._config = config
        self._files = files
        self._roots = config.roots
        self._kept = Kept(files, budget)
        self._client = podresources.Client(files)
        self._kubelet = kubelet.Reader(files, config.roots, self._client)
        self._names = containernames.Reader(files, config.roots.logs)
        self._search = groups.Search(files)
        self._limits = limits.Reader(files, self._kept)
        self._last: Survey | None = None
        self._joined: tuple[object, tuple[Container, ...]] | None = None
        self._looked = self._read = self._searched = -math.inf
        self._signature: tuple[str | None, ...] = ()

    def survey(self, now: float, wall: float, *, ended: bool = False) -> Survey:
        """Everything slow, now; `now`: monotonic seconds, `wall`: seconds since 1970.

        `ended`: whether a container is known to have ended since the last survey.
        """
        last = self._last
        who, whole, places = self._machine(now)
        reading = self._kubelet.read(now, wall)
        anew = last is None or now - self._searched >= SEARCH_PERIOD
        if anew:
            self._searched = now
        trees = hierarchies.find(self._files, self._roots) if last is None or anew else last.trees
        shown = self._containers(trees, reading, anew, ended)
        found = Survey(
            identity=who,
            machine=whole,
            kubelet=self._packed(reading.kubelet, last.kubelet if last else None),
            containers=self._packed(Containers(shown), last.containers if last else None),
            trees=trees,
            places=places,
            numa_maps=self._numa_maps(trees, shown),
        )
        self._last = found
        return found

    def close(self) -> None:
        """Closes files and ends the connection to the kubelet."""
        self._kept.close()
        self._client.close()

    def _machine(self, now: float) -> tuple[Identity, Packed[Machine], tuple[memory.Place, ...]]:
        last = self._last
        if last is not None and now - self._looked < TOPOLOGY_PERIOD:
            return last.identity, last.machine, last.places
        signature = topology.signature(self._files, self._roots)
        self._looked = now
        if last is not None and signature == self._signature and now - self._read < MACHINE_PERIOD:
            return self._attributes(last.identity, last.machine.value.topology)
        self._signature, self._read = signature, now
        return self._attributes(
            identity.read(self._files, self._roots), topology.read(self._files, self._roots)
        )

    def _attributes(
        self, who: Identity, found: Topology
    ) -> tuple[Identity, Packed[Machine], tuple[memory.Place, ...]]:
        places = memory.places(self._files, self._roots, found)
        whole = Machine(found, machine.attributes(self._files, self._roots, found, who, places))
        return who, self._packed(whole, self._last.machine if self._last else None), places

    def _containers(
        self, trees: Hierarchies, reading: Reading, anew: bool, ended: bool
    ) -> tuple[Container, ...]:
        groups_now = self._search.groups(trees, anew=anew or ended)
        found = self._limits.containers(trees, groups_now, anew=anew)
        names = self._names.read(required=bool(reading.kubelet.present))
        told = (found, names, reading)
        if self._joined is None or self._joined[0] != told:
            self._joined = (told, join.containers(found, names, reading))
        return self._joined[1]

    def _numa_maps(
        self, trees: Hierarchies, shown: tuple[Container, ...]
    ) -> tuple[dict[int, int] | None, ...]:
        return numamaps.read(self._files, self._roots, trees, shown) if self._config.numa_maps else ()

    def _packed(self, value: T, last: Packed[T] | None) -> Packed[T]:
        """The value with its bytes, made anew only if it changed."""
        return last if last is not None and last.value == value else wire.Packed(value)
