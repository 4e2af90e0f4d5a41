"""What one exporter has told so far, and what a new answer adds.

The round's part of an answer (times of CPUs, each or by NUMA node, and memory) is decoded at once, in one pass and into nothing but what every
round needs; the rest stays bytes until somebody asks. The times of CPUs go from the text straight into arrays, which
costs a sixth of making a number object of each. It reads what `wire.decode` and `usage.numa_busy` read; tests hold
the two against each other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from monitoring.sources import columns
from monitoring.sources.columns import CpuColumns, Places, Reading, Sums
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


class _Sums(msgspec.Struct, gc=False):
    """`usage.NumaUsage`."""

    cpus: str
    busy: list[Amount | None]
    idle: list[Amount | None]
    used: list[Amount | None]
    free: list[Amount | None]
    file: list[Amount | None]
    other_node: list[Amount | None]

    def memories(self, nodes: int) -> list[_Memory]:
        """Memory of each NUMA node. Raises WireError."""
        every = (self.busy, self.idle, self.used, self.free, self.file, self.other_node)
        if any(len(column) != nodes for column in every):
            raise WireError(f"section numa: columns for each of {nodes} NUMA nodes are needed - at `$`")
        return [_Memory(*each) for each in zip(self.used, self.free, self.file, strict=True)]


class _SumsSection(msgspec.Struct, gc=False):
    hash: str
    data: _Sums


class _Sections(msgspec.Struct, gc=False):
    machine: wire.Section | None = None
    kubelet: wire.Section | None = None
    containers: wire.Section | None = None
    usage: _UsageSection | None = None
    numa: _SumsSection | None = None


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
        self.received = 0.0
        self.whole_received = self.whole_taken = 0.0
        """When the newest answer came that tells of every CPU and container, by our clock and by the node's."""
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
        """The newest of these answers, which holds the usage section."""
        self.before: bytes | None = None
        """The comparable one before it; `seconds` lie between the two."""
        self.before_containers: bytes | None = None
        """The containers section of then, if it was another one."""
        self._places: Places | None = None
        self._last: Reading | None = None
        self._whole: Reading | None = None
        """The newest reading that tells of every CPU."""
        self._containers: bytes | None = None
        """The containers section that came with it or stood then."""

    def take(self, body: bytes, received: float, round_trip: float = 0.0) -> Round:
        """Adds an answer; nothing is added if it cannot be read. Raises WireError."""
        answer = _decode(body)
        incoming = self._incoming(answer.sections)
        machine = incoming.pop(wire.MACHINE, None)
        read = self._read(answer, machine[1] if machine else self.machine)
        return self._accept(answer, read, incoming, machine, body, received, round_trip)

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

    def _read(self, answer: _Envelope, machine: wire.Machine | None) -> tuple[Reading, list[_Memory]] | None:
        """The counters of an answer, and the memory of each NUMA node; None = the answer has none, or the machine is unknown."""
        usage, sums = answer.sections.usage, answer.sections.numa
        if machine is None or (sums is None and (usage is None or usage.data is None)):
            return None
        numa_ids = machine.topology.numa_ids
        if sums is not None:
            found = sums.data
            memory = found.memories(len(numa_ids))
            _check_memory(wire.NUMA, memory)
            reading = Reading(
                answer.monotonic,
                answer.exporter.boot_id,
                found.cpus,
                None,
                (found.busy, found.idle),
                found.other_node,
            )
        else:
            assert usage is not None
            assert usage.data is not None
            cpu, told = usage.data.cpu, usage.data.memory
            times = None if cpu is None else self._places_of(machine.topology, cpu.cpus).times(cpu)
            _check_memory(wire.USAGE, told.values())
            memory = [told.get(numa, _UNKNOWN) for numa in numa_ids]
            remote = [each.counters.other_node if each.counters else None for each in memory]
            reading = Reading(
                answer.monotonic, answer.exporter.boot_id, cpu.cpus if cpu else "", times, None, remote
            )
        return reading, memory

    def _places_of(self, topology: Topology, cpus: str) -> Places:
        if self._places is None or self._places.cpus != cpus or self._places.topology is not topology:
            self._places = Places(topology, cpus)
        return self._places

    def _accept(
        self,
        answer: _Envelope,
        read: tuple[Reading, list[_Memory]] | None,
        incoming: dict[str, tuple[bytes, Any]],
        machine: tuple[bytes, Any] | None,
        body: bytes,
        received: float,
        round_trip: float,
    ) -> Round:
        if machine is not None:
            incoming[wire.MACHINE] = machine
            if self.machine is None or self.machine.topology != machine[1].topology:
                self._last = self._whole = None  # the columns of another machine cannot be compared
            self.machine = machine[1]
        changed = self._keep_sections(answer.sections, incoming, received)
        now, memory = read or (None, [])
        last = self._last
        seconds = None if now is None or last is None else columns.elapsed(last, now)
        repeated = now is not None and last is not None and self._same(last, now)
        self.exporter, self.problems, self.received = answer.exporter, answer.problems, received
        self.skew = answer.taken - (received - round_trip / 2)
        numa = [] if now is None else self._numa(last, now, memory, seconds)
        if not repeated:
            self._last = now
        if answer.sections.numa is None:
            self.whole_received, self.whole_taken = received, answer.taken
            self._keep_whole(now, body)
        return Round(received, seconds, numa, changed, repeated)

    def _keep_whole(self, now: Reading | None, body: bytes) -> None:
        before, containers = self._whole, self.sections.get(wire.CONTAINERS)
        if now is not None and before is not None and self._same(before, now):
            return
        seconds = None if now is None or before is None else columns.elapsed(before, now)
        self.before = self.newest if seconds is not None and self.newest else None
        self.before_containers = None if containers == self._containers else self._containers
        self.seconds, self.newest, self._whole, self._containers = seconds, body, now, containers

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
        self, last: Reading | None, now: Reading, memory: list[_Memory], seconds: float | None
    ) -> list[NumaUse]:
        busy = self._busy(last, now, seconds)
        remote: list[float | None] = [None] * len(memory)
        if last is not None and seconds is not None:
            remote = [
                columns.rate(then, after, seconds)
                for then, after in zip(last.remote, now.remote, strict=True)
            ]
        return [
            NumaUse(share, each.used, each.free, each.file, rate)
            for share, each, rate in zip(busy, memory, remote, strict=True)
        ]

    def _busy(self, last: Reading | None, now: Reading, seconds: float | None) -> list[float | None]:
        if last is None or seconds is None or last.cpus != now.cpus:
            return [None] * len(now.remote)
        if last.times is not None and now.times is not None and self._places is not None:
            return self._places.shares(last.times, now.times)
        return columns.shares_of_sums(self._sums(last), self._sums(now))

    def _same(self, last: Reading, now: Reading) -> bool:
        """Whether the exporter told the reading that it told before: idle counters never stand still otherwise."""
        if last.boot_id != now.boot_id:
            return False
        if last.monotonic == now.monotonic:
            return True
        if last.cpus != now.cpus or not now.cpus:
            return False
        if last.times is not None and now.times is not None:
            return columns.same_times(last.times, now.times)
        return self._sums(last) == self._sums(now)

    def _sums(self, reading: Reading) -> Sums:
        """Busy and idle ticks of each NUMA node."""
        if reading.sums is None:
            places, times = self._places, reading.times
            if times is not None and places is not None and places.cpus == reading.cpus:
                reading.sums = places.sums(times)
            else:
                nothing: list[int | None] = [None] * len(reading.remote)
                reading.sums = nothing, nothing
        return reading.sums

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


def _check_memory(section: str, memory: Iterable[_Memory]) -> None:
    if sum(each.used or 0 for each in memory) > MOST:
        raise WireError(
            f"section {section} cannot be read: more memory than a machine can have - at `$.memory`"
        )


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
