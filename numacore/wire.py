"""The only contract between a node and the web side: `/v1/snapshot` as JSON.

A snapshot has sections. Each carries the hash of its content (`content_hash` of its bytes); a caller names the hashes that it has
(`GET /v1/snapshot?have=machine:HASH,containers:HASH`) and a section that it has comes without data. Unknown fields and
sections are ignored, so that a version and its neighbour understand each other both ways.

With `&usage=numa` a caller that has all other sections gets section `numa` instead of `usage`: the same reading summed
up by NUMA node, a twentieth of the bytes. Who does not have them all, or asks an exporter that does not know this, gets `usage`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from numacore.kubeletstate import Kubelet
from numacore.topology import Amount, Attributes, Topology, content_hash, dec_hook, enc_hook
from numacore.usage import NumaUsage, Usage
from numacore.workload import Container

VERSION = 1
NEIGHBOURS = range(max(1, VERSION - 1), VERSION + 2)
"""Versions that this one understands."""
MAX_BYTES = 2 * 1024 * 1024
"""Largest snapshot that a reader takes: ten times that of 1,024 CPUs with 250 containers."""
SECTIONS = ("machine", "kubelet", "containers", "usage")
MACHINE, KUBELET, CONTAINERS, USAGE = SECTIONS
NUMA = "numa"
"""The section that may stand in for `usage`, and the value of the parameter `usage` that asks for it."""

T = TypeVar("T")
_NULL = msgspec.Raw(b"null")


class WireError(ValueError):
    """A snapshot that cannot be used; the message names the field and the cause."""


class Machine(msgspec.Struct, frozen=True):
    """Section `machine`."""

    topology: Topology
    attributes: Attributes = Attributes()


class Containers(msgspec.Struct, frozen=True):
    """Section `containers`."""

    containers: tuple[Container, ...]


class Section(msgspec.Struct, frozen=True, rename={"content": "data"}):
    """Hash of a section's content, and the content unless the caller has it already."""

    hash: str
    content: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    @property
    def data(self) -> msgspec.Raw | None:
        """The content as JSON for `decode_section`, or None where it was left out."""
        return None if self.content is msgspec.UNSET or self.content == _NULL else self.content


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a reader could not read: which reader, what, why, how often since the exporter started."""

    reader: str
    what: str
    cause: str
    count: Amount = 1


class Exporter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who speaks."""

    node: str
    """The node's name: from Kubernetes where set, else the host name."""
    machine_id: str | None = None
    boot_id: str | None = None
    version: str | None = None
    started: float | None = None
    """Wall clock, seconds since 1970."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer of an exporter."""

    version: int
    exporter: Exporter
    taken: float
    """The node's wall clock when the usage was read, seconds since 1970. It may be wrong; `monotonic` never is."""
    monotonic: float
    """The node's monotonic clock at the same moment, seconds; comparable only within one `boot_id`."""
    sections: dict[str, Section]
    problems: tuple[Problem, ...] = ()


_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""NUL in a JSON text, and not a backslash with `u0000` behind it, which may well be a name."""
# Fields stand in the order of their struct and keys in the order of insertion, which readers keep ascending.
_encoder = msgspec.json.Encoder(enc_hook=enc_hook)
_snapshot_decoder = msgspec.json.Decoder(Snapshot)
_section_decoders: dict[type, msgspec.json.Decoder[object]] = {
    kind: msgspec.json.Decoder(kind, dec_hook=dec_hook)
    for kind in (Machine, Kubelet, Containers, Usage, NumaUsage)
}


class Packed(Generic[T]):
    """A section's value with its bytes and hash, made once and kept while the content stays the same."""

    __slots__ = ("data", "hash", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.data = encode_value(value)
        self.hash = content_hash(self.data)

    def section(self, have: str | None = None) -> Section:
        """The section as it goes to a caller that has the hash `have`."""
        return Section(self.hash, msgspec.UNSET if have == self.hash else msgspec.Raw(self.data))


def encode_value(value: object) -> bytes:
    """A value of the core as JSON, the same bytes for the same content."""
    return _encoder.encode(value)


def encode(snapshot: Snapshot) -> bytes:
    """A snapshot as it goes over the wire."""
    return _encoder.encode(snapshot)


def check(data: bytes) -> None:
    """What is asked of a snapshot before it is read at all.

    Raises:
        WireError: too large, or with a character that nothing can keep.
    """
    if len(data) > MAX_BYTES:
        raise WireError(f"the snapshot has {len(data)} bytes, more than {MAX_BYTES}")
    # A single byte is looked for ten times as fast as six, and usage, which comes every second, has no backslash.
    if b"\\" in data and b"\\u0000" in data and _NUL.search(data):
        raise WireError("the snapshot has a NUL character in a text, which no name has and databases refuse")


def decode(data: bytes) -> Snapshot:
    """Reads a snapshot's envelope; the sections' contents stay raw until `decode_section` is asked for them.

    Raises:
        WireError: too large, no JSON, a field of the wrong type, or a version that this one does not understand.
    """
    check(data)
    try:
        snapshot = _snapshot_decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(f"the snapshot cannot be read: {error}") from error
    if snapshot.version not in NEIGHBOURS:
        raise WireError(
            f"the snapshot has version {snapshot.version}; this side reads {NEIGHBOURS[0]} to {NEIGHBOURS[-1]}: "
            "bring the exporter and numaweb to neighbouring versions"
        )
    return snapshot


def decode_section(kind: type[T], data: msgspec.Raw | bytes) -> T:
    """Reads one section's content: Machine, Kubelet, Containers, Usage or NumaUsage.

    Raises:
        WireError: naming the field that is wrong.
    """
    try:
        value = _section_decoders[kind].decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError(f"section {kind.__name__.lower()} cannot be read: {error}") from error
    assert isinstance(value, kind)
    return value


def parse_have(text: str) -> dict[str, str]:
    """Reads the `have` parameter: `section:hash` split by commas. What is not of this form is ignored."""
    pairs = (part.partition(":") for part in text.split(",")[: len(SECTIONS) * 2])
    return {name: found for name, _, found in pairs if name and found}


def format_have(known: dict[str, str]) -> str:
    """The `have` parameter for the hashes that a caller has."""
    return ",".join(f"{name}:{found}" for name, found in known.items())


def format_question(known: dict[str, str], summed: bool) -> str:
    """The query of a caller that has the hashes `known`. `summed`: what moves is wanted by NUMA node only."""
    have = f"have={format_have(known)}" if known else ""
    return f"{have}&usage={NUMA}" if have and summed else have


def wants_sums(usage: str, have: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a question (its parameters `usage` and `have`) is answered with section `numa`. `now`: hashes of the sections
    that stand. Where one is another, the caller gets `usage` with it, whose columns are about these containers."""
    return usage == NUMA and all(have.get(name) == found for name, found in now.items())
