"""What the exporter knows of its node, kept up to date: the survey of the slow half and readings of all that moves.

A reading is shared by everybody who asks within half a second, so ten collectors cost what one costs. The exporter's
own readings, one for each period, give the rates of `/metrics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from numaagent.config import Config
from numaagent.exporter.survey import Survey, Surveyor
from numaagent.readers import containeruse, cputimes, kept, memory
from numaagent.readers.files import Files
from numacore import facts, report, usage, wire
from numacore.usage import ContainerUse, NumaUsage, Usage
from numacore.wire import Exporter, Packed, Snapshot

FRESH = 0.5
"""Seconds for which a reading serves further callers."""
VERSION = "0.1.0"


class NotReadyError(Exception):
    """There is nothing to read yet."""


class Reading(msgspec.Struct, frozen=True):
    """One reading of everything that moves. `rows`: ticks of each CPU by mode, as `cputimes` gives them."""

    taken: float
    monotonic: float
    survey: Survey
    rows: list[list[int]]
    usage: Packed[Usage]


class Sums(msgspec.Struct, frozen=True):
    """A reading by NUMA node, without containers: it takes a fraction of the files."""

    taken: float
    monotonic: float
    usage: Packed[NumaUsage]


class Interval(msgspec.Struct, frozen=True):
    """The exporter's last interval: its newest own reading, and the one before, None at the start."""

    before: Reading | None
    reading: Reading

    def report(self) -> report.NodeReport:
        """The figures of the node over the interval."""
        after, machine = self.reading, self.reading.survey.machine.value
        return report.node_report(
            facts.Facts(
                topology=machine.topology,
                attributes=machine.attributes,
                kubelet=after.survey.kubelet.value,
                containers=after.survey.containers.value.containers,
                usage=after.usage.value,
                rates=_rates(self.before, after) if self.before else None,
            )
        )


class Node:
    """Reads one node. Not for several threads at once; `survey` alone may run beside the rest."""

    def __init__(self, config: Config, *, started: float) -> None:
        self._config = config
        self.files = Files(config.roots.root)
        budget = kept.descriptor_budget()
        self._surveyor = Surveyor(config, self.files, budget // 3)
        self._cpu = cputimes.Reader(self.files, config.roots)
        self._kept = kept.Kept(self.files, budget - budget // 3)
        self._use = containeruse.Reader(self.files, self._kept)
        self._started = started
        self._survey: Survey | None = None
        self._newest: Reading | None = None
        self._sums: Sums | None = None
        self._own: Reading | None = None
        self.interval: Interval | None = None

    def survey(self, now: float, wall: float) -> Survey:
        """The slow half, for a thread; its result goes to `adopt`."""
        return self._surveyor.survey(now, wall, ended=self._kept.ended)

    def adopt(self, found: Survey) -> None:
        """Reads from now on what a survey found."""
        before = self._survey
        self._survey = found
        self._kept.retry()
        if before and before.containers is found.containers and before.machine is found.machine:
            return
        self._newest = self._sums = None
        containers = found.containers.value.containers
        self._use.watch(found.trees, found.machine.value.topology, containers)
        self._kept.watch(self._use.wanted() | {file for place in found.places for file in place.files()})

    @property
    def surveyed(self) -> bool:
        """Whether there is a survey to read by."""
        return self._survey is not None

    @property
    def outdated(self) -> bool:
        """Whether a container was found to have ended since the last survey."""
        return self._kept.ended

    def read(self, now: float, wall: float) -> Reading:
        """Everything that moves, at most half a second old and never older than what was told before.

        Raises:
            NotReadyError: nothing was adopted yet.
        """
        newest, sums = self._newest, self._sums
        if newest and _fresh(newest, now) and (sums is None or sums.monotonic <= newest.monotonic):
            return newest
        survey = self._found()
        rows = self._cpu.rows()
        moved = Usage(
            containers_of=survey.containers.hash,
            cpu=self._cpu.times(rows),
            memory=self._memory(survey),
            containers=_with_maps(self._use.read(), survey),
        )
        self._newest = Reading(wall, now, survey, rows, wire.Packed(moved))
        return self._newest

    def read_sums(self, now: float, wall: float) -> Sums:
        """What moves by NUMA node, likewise. Raises NotReadyError."""
        newest, sums = self._newest, self._sums
        if newest and _fresh(newest, now) and (sums is None or sums.monotonic < newest.monotonic):
            moved, topology = newest.usage.value, newest.survey.machine.value.topology
            packed = wire.Packed(usage.numa_usage(topology, moved.cpu, moved.memory))
            self._sums = Sums(newest.taken, newest.monotonic, packed)
        elif sums is None or not _fresh(sums, now):
            survey = self._found()
            times, topology = self._cpu.times(self._cpu.rows()), survey.machine.value.topology
            packed = wire.Packed(usage.numa_usage(topology, times, self._memory(survey)))
            self._sums = Sums(wall, now, packed)
        assert self._sums is not None
        return self._sums

    def sample(self, now: float, wall: float) -> None:
        """The exporter's own reading, once for each period."""
        reading, before = self.read(now, wall), self._own
        if before is None or reading.monotonic > before.monotonic:
            self._own = reading
            self.interval = Interval(before, reading)

    def age(self, now: float) -> float | None:
        """Seconds since the exporter's own last reading; None before the first one."""
        return None if self._own is None else now - self._own.monotonic

    def snapshot(self, now: float, wall: float, have: Mapping[str, str], wanted: str = "") -> Snapshot:
        """One answer for a caller that has the sections `have`. `wanted`: the parameter `usage` of `numacore.wire`."""
        survey = self._found()
        standing: dict[str, Packed[Any]] = {
            wire.MACHINE: survey.machine,
            wire.KUBELET: survey.kubelet,
            wire.CONTAINERS: survey.containers,
        }
        reading: Reading | Sums
        if wire.wants_sums(wanted, have, {name: packed.hash for name, packed in standing.items()}):
            reading, moving = self.read_sums(now, wall), wire.NUMA
        else:
            reading, moving = self.read(now, wall), wire.USAGE
        return Snapshot(
            version=wire.VERSION,
            exporter=self.exporter(survey),
            taken=reading.taken,
            monotonic=reading.monotonic,
            sections={
                **{name: packed.section(have.get(name)) for name, packed in standing.items()},
                moving: reading.usage.section(have.get(moving)),
            },
            problems=self.files.problems.listed(),
        )

    def _found(self) -> Survey:
        if self._survey is None:
            raise NotReadyError("the first survey of this node is still under way")
        return self._survey

    def exporter(self, survey: Survey) -> Exporter:
        """Who speaks."""
        return Exporter(
            node=self.name(survey),
            machine_id=survey.identity.machine_id,
            boot_id=survey.identity.boot_id,
            version=VERSION,
            started=self._started,
        )

    def name(self, survey: Survey) -> str:
        """The node's name: told, else the host's, else that of the recorded tree."""
        root = self._config.roots.root.rpartition("/")[2]
        return self._config.node or survey.identity.hostname or root or "localhost"

    def close(self) -> None:
        """Closes every file and connection."""
        self._surveyor.close()
        self._cpu.close()
        self._kept.close()

    def _memory(self, survey: Survey) -> dict[int, usage.MemoryUse]:
        source = self.files.reader("memory")

        def fetch(path: str) -> bytes | None:
            return self._kept.data(source, path)

        return {place.node: memory.use(fetch, place) for place in survey.places}


def _fresh(reading: Reading | Sums, now: float) -> bool:
    return 0 <= now - reading.monotonic < FRESH


def _with_maps(use: ContainerUse, survey: Survey) -> ContainerUse:
    """Fills in pages that only the processes' `numa_maps` tell."""
    if not survey.numa_maps:
        return use
    nodes = survey.machine.value.topology.numa_ids
    columns = {node: list(use.pages.get(node, (None,) * len(use.memory))) for node in nodes}
    for i, pages in enumerate(survey.numa_maps):
        if pages and all(column[i] is None for column in columns.values()):
            for node, column in columns.items():
                column[i] = pages.get(node, 0)
    return msgspec.structs.replace(use, pages={node: tuple(column) for node, column in columns.items()})


def _rates(before: Reading, after: Reading) -> usage.Rates:
    ids = [[each.id for each in reading.survey.containers.value.containers] for reading in (before, after)]
    seconds = after.monotonic - before.monotonic
    return usage.rates(before.usage.value, ids[0], after.usage.value, ids[1], seconds)
