"""What one exporter has told so far, and what a new answer adds.

The round's part of an answer (per-CPU times, memory) is decoded at once, in one pass and into nothing but what every
round needs; the rest stays bytes until somebody asks. The times of CPUs go from the text straight into arrays, which
costs a sixth of making a number object of each. It reads what `wire.decode` and `usage.numa_busy` read; tests hold
the two against each other.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from monitoring.sources import columns
from monitoring.sources.columns import CpuColumns, Places, Reading
from numacore import wire
from numacore.kubeletstate import Kubelet
from numacore.topology import Amount, Attributes, Id, Topology, content_hash, dec_hook
from numacore.wire import WireError


class _Counters(msgspec.Struct, gc=False):
    other_node: Amount | None = None


class _Memory(msgspec.Struct, gc=False):
    used: Amount | None = None
    free: Amount | None = None
    file: Amount | None = None
    counters: _Counters | None = None


_UNKNOWN = _Memory()


class _Usage(msgspec.Struct, gc=False):
    containers_of: str
    cpu: CpuColumns | None = None
    memory: dict[Id, _Memory] = {}


class _UsageSection(msgspec.Struct, gc=False):
    hash: str
    data: _Usage | None = None


class _Sections(msgspec.Struct, gc=False):
    machine: wire.Section | None = None
    kubelet: wire.Section | None = None
    containers: wire.Section | None = None
    usage: _UsageSection | None = None


class _Envelope(msgspec.Struct, gc=False):
    version: int
    exporter: wire.Exporter
    taken: float
    monotonic: float
    sections: _Sections
    problems: tuple[wire.Problem, ...] = ()


class _RawUsage(msgspec.Struct, gc=False):
    data: msgspec.Raw = msgspec.Raw(b"null")


class _RawSections(msgspec.Struct, gc=False):
    usage: _RawUsage | None = None


class _Rest(msgspec.Struct, gc=False):
    """What is left in an answer after `_Envelope` was read: it asks for nothing that the other did not."""

    sections: _RawSections


class _MachineParts(msgspec.Struct):
    topology: msgspec.Raw
    attributes: Attributes = Attributes()


_decoder = msgspec.json.Decoder(_Envelope)
_usage_decoder = msgspec.json.Decoder(_Rest)
_machine_decoder = msgspec.json.Decoder(_MachineParts, dec_hook=dec_hook)
NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$")
MOST = 2**63 - 1
"""Largest sum that databases and arrays hold; each number of an answer is checked against it where it is read."""
LARGE = (wire.MACHINE, wire.KUBELET, wire.CONTAINERS)
KINDS: dict[str, type] = {wire.MACHINE: wire.Machine, wire.KUBELET: Kubelet, wire.CONTAINERS: wire.Containers}


class NumaUse(msgspec.Struct, gc=False):
    """One NUMA node between two readings, and its memory at the newer one; None = unknown. Bytes, pages a second."""

    busy: float | None
    used: int | None
    free: int | None
    file: int | None
    remote_pages: float | None


class Round(msgspec.Struct, gc=False):
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


_topologies: dict[bytes, Topology] = {}
MOST_TOPOLOGIES = 1000


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
        self._places: Places | None = None
        self._last: Reading | None = None

    def take(self, body: bytes, received: float, round_trip: float = 0.0) -> Round:
        """Adds an answer; nothing is added if it cannot be read. Raises WireError."""
        answer = _decode(body)
        incoming = self._incoming(answer.sections)
        machine = incoming.pop(wire.MACHINE, None)
        usage = answer.sections.usage.data if answer.sections.usage else None
        now = self._read(answer, usage, machine[1] if machine else self.machine)
        return self._accept(answer, usage, now, incoming, machine, body, received, round_trip)

    def _incoming(self, sections: _Sections) -> dict[str, tuple[bytes, Any]]:
        """Sections that came with content: their JSON and value, checked before anything is kept."""
        found: dict[str, tuple[bytes, Any]] = {}
        for name in LARGE:
            section: wire.Section | None = getattr(sections, name)
            if section is not None and section.data is not None:
                data = bytes(section.data)
                value = _machine(data) if name == wire.MACHINE else wire.decode_section(KINDS[name], data)
                # What is made of a section is kept by its hash, for all nodes: nobody may lend its hash to another.
                if section.hash != content_hash(data):
                    raise WireError(f"section {name} has a hash that is not that of its content")
                found[name] = (data, value)
            elif section is not None and section.hash != self.have.get(name):
                raise WireError(f"section {name} has a hash that nobody asked for and no content")
        return found

    def _read(self, answer: _Envelope, usage: _Usage | None, machine: wire.Machine | None) -> Reading | None:
        if usage is None or machine is None:
            return None
        cpu, memory = usage.cpu, usage.memory
        if sum(each.used or 0 for each in memory.values()) > MOST:
            raise WireError(
                "section usage cannot be read: more memory than a machine can have - at `$.memory`"
            )
        times = None if cpu is None else self._places_of(machine.topology, cpu.cpus).times(cpu)
        remote = [
            each.counters.other_node if (each := memory.get(numa)) and each.counters else None
            for numa in machine.topology.numa_ids
        ]
        return Reading(answer.monotonic, answer.exporter.boot_id, cpu.cpus if cpu else "", times, remote)

    def _places_of(self, topology: Topology, cpus: str) -> Places:
        if self._places is None or self._places.cpus != cpus or self._places.topology is not topology:
            self._places = Places(topology, cpus)
        return self._places

    def _accept(
        self,
        answer: _Envelope,
        usage: _Usage | None,
        now: Reading | None,
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
        repeated = now is not None and last is not None and columns.same_reading(last, now)
        seconds = None if now is None or last is None else columns.elapsed(last, now)
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
        self, usage: _Usage | None, last: Reading | None, now: Reading | None, seconds: float | None
    ) -> list[NumaUse]:
        if usage is None or now is None or self.machine is None:
            return []
        busy, width = self._busy(last, now, seconds), len(now.remote)
        remote: list[float | None] = [None] * width
        if last is not None and seconds is not None:
            remote = [
                columns.rate(then, after, seconds)
                for then, after in zip(last.remote, now.remote, strict=True)
            ]
        memory = [usage.memory.get(numa, _UNKNOWN) for numa in self.machine.topology.numa_ids]
        return [
            NumaUse(busy[i], memory[i].used, memory[i].free, memory[i].file, remote[i]) for i in range(width)
        ]

    def _busy(self, last: Reading | None, now: Reading, seconds: float | None) -> list[float | None]:
        comparable = last is not None and seconds is not None and last.cpus == now.cpus
        if not comparable or last is None or last.times is None or now.times is None or self._places is None:
            return [None] * len(now.remote)
        return self._places.shares(last.times, now.times)

    def usage_section(self) -> bytes | None:
        """JSON of the newest usage section."""
        return _usage_of(self.newest) if self.newest else None

    def usage_before(self) -> bytes | None:
        """JSON of the usage section before it, if the two can be compared."""
        return _usage_of(self.before) if self.before else None


def _machine(data: bytes) -> wire.Machine:
    """The section's value, with the one topology that all machines of its kind share: it is decoded once."""
    try:
        parts = _machine_decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(f"section machine cannot be read: {error}") from error
    if sum(size or 0 for size in parts.attributes.memory.values()) > MOST:
        text = "more memory than a machine can have - at `$.attributes.memory`"
        raise WireError(f"section machine cannot be read: {text}")
    digest = hashlib.sha256(bytes(parts.topology)).digest()
    topology = _topologies.get(digest)
    if topology is None:
        topology = wire.decode_section(wire.Machine, data).topology
        if len(_topologies) >= MOST_TOPOLOGIES:
            _topologies.clear()
        _topologies[digest] = topology
    return wire.Machine(topology, parts.attributes)


def _decode(body: bytes) -> _Envelope:
    wire.check(body)
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
    """JSON of the usage section of an answer that was taken."""
    usage = _usage_decoder.decode(body).sections.usage
    data = b"null" if usage is None else bytes(usage.data)
    return None if data == b"null" else data
