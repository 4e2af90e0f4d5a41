"""The contract between a node and the web side: bytes in, values out, and each kind of wrong input named."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numacore import wire
from numacore.cpuset import CpuSet
from numacore.kubeletstate import CpuManagerState, Kubelet, Setting
from numacore.usage import CpuTimes, MemoryUse, Usage
from numacore.wire import Containers, Exporter, Machine, Packed, Problem, Section, Snapshot, WireError
from numacore.workload import Container, MemoryBlock
from tests.numacore import machines

MACHINE = Packed(Machine(machines.HBM, machines.attributes(machines.HBM)))
KUBELET = Packed(
    Kubelet(
        present=True,
        version="1.34.1",
        settings={
            "cpuManagerPolicy": Setting("static", "file", "/var/lib/kubelet/config.yaml"),
            "kubeReserved": Setting({"cpu": "500m"}, "flag"),
            "maxPods": Setting(250, "drop-in"),
        },
        cpu_state=CpuManagerState("static", CpuSet.parse("0,3-7"), {"u": {"a": CpuSet.parse("1-2")}}),
    )
)
CONTAINERS = Packed(
    Containers(
        (
            Container(
                id="c1",
                cpus=CpuSet.parse("1-2"),
                cpu_limit="max",
                memory_blocks=(MemoryBlock("memory", 2**30, (0, 1)),),
            ),
        )
    )
)
USAGE = Packed(
    Usage(
        containers_of=CONTAINERS.hash,
        cpu=CpuTimes(CpuSet.parse("0-1"), (1, 2), (3, 4)),
        memory={2: MemoryUse(total=5, counters={"numa_hit": 7})},
    )
)
PARTS: dict[str, Packed[Any]] = {
    "machine": MACHINE,
    "kubelet": KUBELET,
    "containers": CONTAINERS,
    "usage": USAGE,
}


def snapshot(**have: str) -> Snapshot:
    return Snapshot(
        version=1,
        exporter=Exporter("worker-1", boot_id="b"),
        taken=1_700_000_000.5,
        monotonic=12.25,
        sections={name: packed.section(have.get(name)) for name, packed in PARTS.items()},
        problems=(Problem("kubelet", "/var/lib/kubelet/config.yaml", "permission denied", 3),),
    )


def envelope(**fields: object) -> bytes:
    known = {
        "version": 1,
        "exporter": {"node": "n"},
        "taken": 1.0,
        "monotonic": 2.0,
        "sections": {"usage": {"hash": "h"}},
    }
    return msgspec.json.encode(known | fields)


def test_a_snapshot_comes_back_as_it_was() -> None:
    read = wire.decode(wire.encode(snapshot()))
    assert read.exporter == Exporter("worker-1", boot_id="b")
    assert (read.taken, read.monotonic) == (1_700_000_000.5, 12.25)
    assert read.problems[0].count == 3
    kinds: dict[str, type[Any]] = {
        "machine": Machine,
        "kubelet": Kubelet,
        "containers": Containers,
        "usage": Usage,
    }
    for name, kind in kinds.items():
        section = read.sections[name]
        assert section.hash == PARTS[name].hash
        assert section.data is not None
        assert wire.decode_section(kind, section.data) == PARTS[name].value


def test_what_the_caller_has_is_left_out() -> None:
    full = wire.encode(snapshot())
    short = wire.encode(snapshot(machine=MACHINE.hash, kubelet=KUBELET.hash, containers="older"))
    read = wire.decode(short)
    assert read.sections["machine"] == Section(MACHINE.hash)
    assert read.sections["kubelet"].data is None
    assert read.sections["containers"].data is not None
    assert read.sections["usage"].data is not None
    assert len(short) < len(full) / 2


def test_a_section_that_is_null_counts_as_left_out() -> None:
    read = wire.decode(envelope(sections={"usage": {"hash": "h", "data": None}}))
    assert read.sections["usage"].data is None


def test_the_same_content_has_the_same_hash() -> None:
    again = Packed(Machine(machines.HBM, machines.attributes(machines.HBM)))
    assert again.hash == MACHINE.hash
    assert Packed(Machine(machines.TWO)).hash != MACHINE.hash


@pytest.mark.parametrize("version", [1, 2])
def test_a_neighbouring_version_is_understood(version: int) -> None:
    assert wire.decode(envelope(version=version)).version == version


@pytest.mark.parametrize("version", [-1, 0, 3, 99])
def test_a_distant_version_is_refused_with_the_remedy(version: int) -> None:
    with pytest.raises(WireError, match=f"has version {version}; this side reads 1 to 2: bring the exporter"):
        wire.decode(envelope(version=version))


def test_unknown_fields_and_sections_are_ignored() -> None:
    later = envelope(
        colour="blue",
        exporter={"node": "n", "shoe_size": 44},
        sections={"usage": {"hash": "h", "flavour": 1}, "gpus": {"hash": "g", "data": {"a": []}}},
        problems=[{"reader": "r", "what": "w", "cause": "c", "since": 5}],
    )
    read = wire.decode(later)
    assert read.exporter.node == "n"
    assert read.sections["usage"].hash == "h"
    assert read.problems[0].cause == "c"
    section = b'{"topology":{"cpus":[{"id":0,"frequency":3}],"nodes":[],"fans":9},"attributes":{"colour":1}}'
    assert wire.decode_section(Machine, section).topology.cpus[0].id == 0


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"[]", "Expected `object`, got `array`"),
        (b"null", "Expected `object`"),
        (b"\xff\xfe", "malformed"),
        (b"<html>", "malformed"),
        (b"{}", "missing required field `version`"),
        (envelope(version="1"), "$.version"),
        (envelope(exporter={}), "missing required field `node` - at `$.exporter`"),
        (envelope(taken="now"), "$.taken"),
        (envelope(monotonic=None), "$.monotonic"),
        (envelope(sections=[]), "$.sections"),
        (envelope(sections={"usage": {}}), "missing required field `hash`"),
        (envelope(problems=[{"reader": "r"}]), "$.problems[0]"),
        (envelope(problems=[{"reader": "r", "what": "", "cause": "", "count": -1}]), "count"),
        (envelope(exporter={"node": "a\x00b"}), "NUL character"),
        (wire.encode(snapshot())[:-7], "cannot be read"),
        (b'{"version":' + b"9" * 5000 + b"}", "version"),
        (b'{"version":1,"x":' + b"[" * 100_000, "cannot be read"),
        (b'{"version":1,"taken":1e999}', "taken"),
    ],
)
def test_a_wrong_envelope_is_refused_with_its_cause(data: bytes, cause: str) -> None:
    with pytest.raises(WireError) as raised:
        wire.decode(data)
    assert cause in str(raised.value)
    assert len(str(raised.value)) < 300


def test_a_name_may_look_like_an_escape() -> None:
    assert wire.decode(envelope(exporter={"node": "a\\u0000"})).exporter.node == "a\\u0000"


def test_a_huge_snapshot_is_refused_unread() -> None:
    with pytest.raises(WireError, match="has 2097153 bytes, more than 2097152"):
        wire.decode(b" " * (wire.MAX_BYTES + 1))


@pytest.mark.parametrize(
    ("kind", "data", "cause"),
    [
        (Machine, b"{}", "section machine cannot be read: Object missing required field `topology`"),
        (Machine, b'{"topology":{"cpus":[],"nodes":[{"id":0,"cpus":"x"}]}}', "$.topology.nodes[0].cpus"),
        (Kubelet, b'{"allocatable_cpus":[1]}', "section kubelet cannot be read: expected a list of ids"),
        (Containers, b'{"containers":[{"id":1}]}', "$.containers[0].id"),
        (Containers, b'{"containers":[{"id":"a","qos":"Best"}]}', "$.containers[0].qos"),
        (Usage, b'{"containers_of":"h","cpu":{"cpus":"0-3","busy":[1],"idle":[]}}', "for 4 CPUs"),
        (Usage, b"null", "section usage cannot be read"),
        (Usage, b"\x00\x01", "section usage cannot be read"),
        (Containers, b"[" * 100_000, "section containers cannot be read"),
    ],
)
def test_a_wrong_section_is_refused_with_the_field(kind: type, data: bytes, cause: str) -> None:
    with pytest.raises(WireError) as raised:
        wire.decode_section(kind, data)
    assert cause in str(raised.value)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("", {}),
        ("machine:abc", {"machine": "abc"}),
        ("machine:abc,usage:d", {"machine": "abc", "usage": "d"}),
        ("machine,usage:", {}),
        (":abc,,machine:a:b", {"machine": "a:b"}),
        (",".join(f"s{i}:h" for i in range(1000)), {f"s{i}": "h" for i in range(8)}),
    ],
)
def test_it_reads_what_a_caller_has(text: str, known: dict[str, str]) -> None:
    assert wire.parse_have(text) == known


def test_it_reads_the_have_parameter_that_it_writes() -> None:
    known = {name: packed.hash for name, packed in PARTS.items()}
    assert wire.parse_have(wire.format_have(known)) == known


@given(st.binary(max_size=200) | st.text().map(str.encode))
def test_it_answers_hostile_bytes_with_its_own_error(data: bytes) -> None:
    with suppress(WireError):
        wire.decode(data)
    for kind in (Machine, Kubelet, Containers, Usage):
        with suppress(WireError):
            wire.decode_section(kind, data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
WHOLE = msgspec.json.decode(wire.encode(snapshot()))


@given(st.sampled_from(sorted(PARTS)), st.data())
def test_any_field_may_be_anything(name: str, data: st.DataObject) -> None:
    """A field somewhere in a section is replaced by some other JSON: a value or its own error comes out."""
    section = msgspec.json.decode(msgspec.json.encode(WHOLE["sections"][name]["data"]))
    place = section
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(json_values)
    kinds: dict[str, type[Any]] = {
        "machine": Machine,
        "kubelet": Kubelet,
        "containers": Containers,
        "usage": Usage,
    }
    with suppress(WireError):
        value = wire.decode_section(kinds[name], msgspec.json.encode(section))
        assert wire.decode_section(kinds[name], wire.encode_value(value)) == value


ALL = {"machine": "m", "kubelet": "k", "containers": "c"}


@pytest.mark.parametrize(
    ("usage", "have", "sums"),
    [
        ("numa", ALL, True),
        ("numa", {**ALL, "later": "x"}, True),
        ("", ALL, False),
        ("cpu", ALL, False),
        ("numa", {**ALL, "containers": "old"}, False),
        ("numa", {"machine": "m", "kubelet": "k"}, False),
        ("numa", {}, False),
    ],
)
def test_sums_are_for_callers_that_ask_for_them_and_have_all_else(
    usage: str, have: dict[str, str], sums: bool
) -> None:
    assert wire.wants_sums(usage, have, ALL) == sums


def test_a_question_for_sums_names_what_the_caller_has() -> None:
    assert wire.format_question(ALL, True) == "have=machine:m,kubelet:k,containers:c&usage=numa"
    assert wire.format_question(ALL, False) == "have=machine:m,kubelet:k,containers:c"
    assert wire.format_question({}, True) == ""
