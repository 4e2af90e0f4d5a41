"""What one exporter has told so far, and what a new answer adds.

The round's part of an answer (per-CPU times, memory) is decoded at once, in one pass and into nothing but what every
round needs; the rest stays bytes until somebody asks. That keeps a round of a node with 384 CPUs and 250 containers at
about a tenth of a millisecond. It reads what `wire.decode` reads; tests hold the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import msgspec

from numacore import wire
from numacore.cpuset import CpuSet, CpuSetError
from numacore.kubeletstate import Kubelet
from numacore.topology import Topology
from numacore.usage import IDLE_SLIP
from numacore.wire import WireError


class _Memory(msgspec.Struct):
    total: int | None = None
    free: int | None = None
    used: int | None = None
    file: int | None = None
    counters: dict[str, int] = {}


class _Cpu(msgspec.Struct):
    cpus: str
    busy: list[int]
    idle: list[int]


class _Usage(msgspec.Struct):
    containers_of: str
    cpu: _Cpu | None = None
    memory: dict[int, _Memory] = {}


class _UsageSection(msgspec.Struct):
    hash: str
    data: _Usage | None = None


class _Sections(msgspec.Struct):
    machine: wire.Section | None = None
    kubelet: wire.Section | None = None
    containers: wire.Section | None = None
    usage: _UsageSection | None = None


class _Envelope(msgspec.Struct):
    version: int
    exporter: wire.Exporter
    taken: float
    monotonic: float
    sections: _Sections
    problems: tuple[wire.Problem, ...] = ()


_decoder = msgspec.json.Decoder(_Envelope)
NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$")
LARGE = (wire.MACHINE, wire.KUBELET, wire.CONTAINERS)
KINDS: dict[str, type] = {wire.MACHINE: wire.Machine, wire.KUBELET: Kubelet, wire.CONTAINERS: wire.Containers}


class NumaUse(msgspec.Struct):
    """One NUMA node between two readings, and its memory at the newer one; None = unknown. Bytes, pages a second."""

    busy: float | None
    used: int | None
    free: int | None
    file: int | None
    remote_pages: float | None


class Round(msgspec.Struct):
    """What one answer says of what moves."""

    received: float
    seconds: float | None
    """Since the reading before, by the node's monotonic clock; None = not comparable."""
    numa: list[NumaUse]
    """In ascending order of the NUMA ids."""
    changed: tuple[str, ...]
    """Sections whose content is another than before."""
    repeated: bool
    """The exporter told the same reading again."""


class _Sums(msgspec.Struct):
    """Counters of a reading, per NUMA node."""

    monotonic: float
    boot_id: str | None
    cpus: str
    busy: list[int]
    idle: list[int]
    remote: list[int | None]


class _Places:
    """Which positions of the per-CPU columns belong to which NUMA node."""

    def __init__(self, topology: Topology, cpus: str) -> None:
        try:
            listed = list(CpuSet.parse(cpus))
        except CpuSetError as error:
            raise WireError(f"section usage cannot be read: {error} - at `$.cpu.cpus`") from error
        self.cpus, self.count = cpus, len(listed)
        position = {cpu: i for i, cpu in enumerate(listed)}
        self.pick: list[Callable[[list[int]], tuple[int, ...]] | None] = []
        for node in topology.nodes:
            mine = [position[cpu] for cpu in node.cpus if cpu in position]
            # The first one twice: itemgetter of one position gives no tuple. Sums take it off again.
            self.pick.append(itemgetter(mine[0], *mine) if mine else None)

    def sums(self, column: list[int]) -> list[int]:
        """Sum of each NUMA node's CPUs."""
        made = []
        for pick in self.pick:
            values = pick(column) if pick else (0,)
            made.append(sum(values) - values[0])
        return made


class Known:
    """Everything that one exporter told. `take` adds an answer; what it returns is about this answer alone."""

    def __init__(self) -> None:
        self.exporter: wire.Exporter | None = None
        self.received = self.taken = self.monotonic = 0.0
        self.skew: float | None = None
        self.seconds: float | None = None
        self.problems: tuple[wire.Problem, ...] = ()
        self.hashes: dict[str, str] = {}
        self.have: dict[str, str] = {}
        """Hashes of the sections that need not be told again."""
        self.confirmed: dict[str, float] = {}
        self.sections: dict[str, bytes] = {}
        """JSON of machine, kubelet and containers."""
        self.machine: wire.Machine | None = None
        self.newest: bytes = b""
        """The newest answer whole, which holds the usage section."""
        self.before: bytes | None = None
        """The comparable answer before it."""
        self.before_containers: bytes | None = None
        """The containers section of then, if it was another one."""
        self._places: _Places | None = None
        self._last: _Sums | None = None

    def take(self, body: bytes, received: float, round_trip: float = 0.0) -> Round:
        """Adds an answer; nothing is added if it cannot be read. Raises WireError."""
        answer = _decode(body)
        incoming = self._incoming(answer.sections)
        machine = incoming.pop(wire.MACHINE, None)
        usage = answer.sections.usage.data if answer.sections.usage else None
        now = self._sums(answer, usage, machine[1] if machine else self.machine)
        return self._accept(answer, usage, now, incoming, machine, body, received, round_trip)

    def _incoming(self, sections: _Sections) -> dict[str, tuple[bytes, Any]]:
        """Sections that came with content: their JSON and value, checked before anything is kept."""
        found: dict[str, tuple[bytes, Any]] = {}
        for name in LARGE:
            section: wire.Section | None = getattr(sections, name)
            if section is not None and section.data is not None:
                data = bytes(section.data)
                found[name] = (data, wire.decode_section(KINDS[name], data))
            elif section is not None and section.hash != self.have.get(name):
                raise WireError(f"section {name} has a hash that nobody asked for and no content")
        return found

    def _sums(self, answer: _Envelope, usage: _Usage | None, machine: wire.Machine | None) -> _Sums | None:
        if usage is None or machine is None:
            return None
        topology, cpu = machine.topology, usage.cpu
        busy, idle, cpus = [0] * len(topology.nodes), [0] * len(topology.nodes), ""
        if cpu is not None:
            places, cpus = self._places_of(topology, cpu.cpus, machine), cpu.cpus
            if not len(cpu.busy) == len(cpu.idle) == places.count:
                raise WireError("section usage: as many times as CPUs are needed - at `$.cpu`")
            busy, idle = places.sums(cpu.busy), places.sums(cpu.idle)
        memory = (usage.memory.get(numa) for numa in topology.numa_ids)
        remote = [each.counters.get("other_node") if each else None for each in memory]
        return _Sums(answer.monotonic, answer.exporter.boot_id, cpus, busy, idle, remote)

    def _places_of(self, topology: Topology, cpus: str, machine: wire.Machine) -> _Places:
        if self._places is None or self._places.cpus != cpus or machine is not self.machine:
            self._places = _Places(topology, cpus)
        return self._places

    def _accept(
        self,
        answer: _Envelope,
        usage: _Usage | None,
        now: _Sums | None,
        incoming: dict[str, tuple[bytes, Any]],
        machine: tuple[bytes, Any] | None,
        body: bytes,
        received: float,
        round_trip: float,
    ) -> Round:
        if machine is not None:
            incoming[wire.MACHINE] = machine
            if self.machine is None or self.machine.topology != machine[1].topology:
                self._last = None  # the columns of another machine cannot be compared
            self.machine = machine[1]
        containers_before = self.sections.get(wire.CONTAINERS)
        changed = self._keep_sections(answer.sections, incoming, received)
        last = self._last
        repeated = now is not None and last is not None and _same_reading(last, now)
        seconds = None if now is None or last is None else _elapsed(last, now)
        self.exporter, self.problems = answer.exporter, answer.problems
        self.received, self.taken, self.monotonic = received, answer.taken, answer.monotonic
        self.skew = answer.taken - (received - round_trip / 2)
        numa = self._numa(usage, last, now, seconds)
        if not repeated:
            self.before = self.newest if seconds is not None and self.newest else None
            self.before_containers = containers_before if wire.CONTAINERS in changed else None
            self.seconds, self.newest, self._last = seconds, body, now
        return Round(received, seconds, numa, changed, repeated)

    def _keep_sections(
        self, sections: _Sections, incoming: dict[str, tuple[bytes, Any]], received: float
    ) -> tuple[str, ...]:
        changed = []
        for name in wire.SECTIONS:
            section = getattr(sections, name)
            if section is None:
                continue
            if name in incoming:
                if self.hashes.get(name) != section.hash:
                    changed.append(name)
                self.sections[name] = incoming[name][0]
                self.have[name] = section.hash
            self.hashes[name] = section.hash
            self.confirmed[name] = received
        return tuple(changed)

    def _numa(
        self, usage: _Usage | None, last: _Sums | None, now: _Sums | None, seconds: float | None
    ) -> list[NumaUse]:
        if usage is None or now is None or self.machine is None:
            return []
        made = []
        for i, numa in enumerate(self.machine.topology.numa_ids):
            memory = usage.memory.get(numa)
            busy = remote = None
            if last is not None and seconds is not None:
                if last.cpus == now.cpus and now.cpus:
                    busy = _share(now.busy[i] - last.busy[i], now.idle[i] - last.idle[i])
                remote = _rate(last.remote[i], now.remote[i], seconds)
            if memory is None:
                made.append(NumaUse(busy, None, None, None, remote))
            else:
                made.append(NumaUse(busy, memory.used, memory.free, memory.file, remote))
        return made

    def usage_section(self) -> bytes | None:
        """JSON of the newest usage section."""
        return _usage_of(self.newest) if self.newest else None

    def usage_before(self) -> bytes | None:
        """JSON of the usage section before it, if the two can be compared."""
        return _usage_of(self.before) if self.before else None


def _decode(body: bytes) -> _Envelope:
    if len(body) > wire.MAX_BYTES:
        raise WireError(f"the snapshot has {len(body)} bytes, more than {wire.MAX_BYTES}")
    try:
        answer = _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(f"the snapshot cannot be read: {error}") from error
    if answer.version not in wire.NEIGHBOURS:
        raise WireError(
            f"the snapshot has version {answer.version}; this side reads "
            f"{wire.NEIGHBOURS[0]} to {wire.NEIGHBOURS[-1]}"
        )
    if not NAME.match(answer.exporter.node):
        raise WireError("the node's name is none that a host can have - at `$.exporter.node`")
    return answer


def _usage_of(body: bytes) -> bytes | None:
    section = wire.decode(body).sections.get(wire.USAGE)
    return None if section is None or section.data is None else bytes(section.data)


def _same_reading(last: _Sums, now: _Sums) -> bool:
    """Whether the exporter told the reading that it told before: idle counters never stand still otherwise."""
    if last.boot_id != now.boot_id:
        return False
    stands = now.cpus != "" and last.cpus == now.cpus and last.busy == now.busy and last.idle == now.idle
    return stands or last.monotonic == now.monotonic


def _elapsed(last: _Sums, now: _Sums) -> float | None:
    """Seconds between two readings of one boot; None if they are no sequence (a reboot, a clock that went back)."""
    elapsed = now.monotonic - last.monotonic
    return elapsed if last.boot_id == now.boot_id and elapsed > 0 else None


def _share(busy: int, idle: int) -> float | None:
    if busy < 0 or idle < -IDLE_SLIP:
        return None
    elapsed = busy + max(idle, 0)
    return busy / elapsed if elapsed > 0 else None


def _rate(before: int | None, after: int | None, seconds: float) -> float | None:
    return None if before is None or after is None or after < before else (after - before) / seconds
