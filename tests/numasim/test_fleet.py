"""Many endpoints in one process answer as exporters do."""

import asyncio
import json
from collections.abc import Mapping
from itertools import pairwise

import pytest

from numacore import wire
from numacore.kubeletstate import Kubelet
from numacore.usage import NumaUsage, Usage, numa_usage
from numasim import faults
from numasim.faults import Fault
from numasim.fleet import Fleet
from numasim.serving import Serving


class Clock:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def small(count: int = 5, shares: Mapping[Fault, float] | None = None, clock: Clock | None = None) -> Fleet:
    return Fleet(count, model="edge", containers=8, shares=shares, clock=clock or Clock())


def ask(fleet: Fleet, index: int, have: dict[str, str] | None = None) -> wire.Snapshot:
    target = "/v1/snapshot" + (f"?have={wire.format_have(have)}" if have else "")
    return wire.decode(fleet.answer(index, target).body)


def section(snapshot: wire.Snapshot, name: str) -> bytes:
    data = snapshot.sections[name].data
    assert data is not None
    return bytes(data)


def test_an_answer_is_a_snapshot_of_the_whole_node() -> None:
    snapshot = ask(small(), 3)
    assert (snapshot.exporter.node, snapshot.exporter.machine_id) == ("node-00003", f"{4:032x}")
    machine = wire.decode_section(wire.Machine, section(snapshot, wire.MACHINE))
    assert len(machine.topology.cpus) == 8
    assert wire.decode_section(Kubelet, section(snapshot, wire.KUBELET)).present
    containers = wire.decode_section(wire.Containers, section(snapshot, wire.CONTAINERS)).containers
    usage = wire.decode_section(Usage, section(snapshot, wire.USAGE))
    assert usage.containers_of == snapshot.sections[wire.CONTAINERS].hash
    assert usage.containers is not None
    assert len(usage.containers.cpu_time) == len(containers) == 8


def test_who_has_all_else_may_have_use_by_numa_node_only() -> None:
    fleet = small()
    first = ask(fleet, 1)
    have = {name: each.hash for name, each in first.sections.items() if name != wire.USAGE}
    second = wire.decode(fleet.answer(1, f"/v1/snapshot?{wire.format_question(have, True)}").body)
    assert set(second.sections) == {wire.MACHINE, wire.KUBELET, wire.CONTAINERS, wire.NUMA}
    topology = wire.decode_section(wire.Machine, section(first, wire.MACHINE)).topology
    whole = wire.decode_section(Usage, section(first, wire.USAGE))
    sums = wire.decode_section(NumaUsage, section(second, wire.NUMA))
    assert sums == numa_usage(topology, whole.cpu, whole.memory)
    del have[wire.CONTAINERS]
    third = wire.decode(fleet.answer(1, f"/v1/snapshot?{wire.format_question(have, True)}").body)
    assert wire.USAGE in third.sections


def test_a_section_that_the_caller_has_comes_without_data() -> None:
    fleet = small()
    first = ask(fleet, 1)
    second = ask(fleet, 1, {name: each.hash for name, each in first.sections.items()})
    bare = {name for name, each in second.sections.items() if each.data is None}
    assert bare == {wire.MACHINE, wire.KUBELET, wire.CONTAINERS}
    assert {n: s.hash for n, s in first.sections.items()} == {n: s.hash for n, s in second.sections.items()}


def test_use_moves_from_second_to_second() -> None:
    clock = Clock()
    fleet = small(clock=clock)
    first = wire.decode_section(Usage, section(ask(fleet, 0), wire.USAGE))
    clock.now += 10
    second = wire.decode_section(Usage, section(ask(fleet, 0), wire.USAGE))
    assert first.cpu is not None
    assert second.cpu is not None
    before = map(sum, zip(first.cpu.busy, first.cpu.idle, strict=True))
    after = map(sum, zip(second.cpu.busy, second.cpu.idle, strict=True))
    assert [now - then for now, then in zip(after, before, strict=True)] == [1000] * 8
    assert sum(second.cpu.busy) > sum(first.cpu.busy)


def test_no_two_endpoints_share_an_identity_or_a_container() -> None:
    fleet = small(60)
    exporters, ids, count = set(), set(), 0
    for index in range(60):
        snapshot = ask(fleet, index)
        exporters.add((snapshot.exporter.node, snapshot.exporter.machine_id, snapshot.exporter.boot_id))
        containers = wire.decode_section(wire.Containers, section(snapshot, wire.CONTAINERS)).containers
        ids |= {(each.pod_uid, each.id) for each in containers}
        count += len(containers)
    assert len(exporters) == 60
    assert len(ids) == count


def only(fault: Fault, clock: Clock | None = None) -> tuple[Fleet, int]:
    """A fleet with one endpoint that has the fault."""
    fleet = small(4, {fault: 0.25}, clock)
    return fleet, fleet.faults.index(fault)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("invalid-json", "the snapshot cannot be read"),
        ("invalid-utf8", "the snapshot cannot be read"),
        ("wrong-version", "the snapshot has version 99"),
    ],
)
def test_rubbish_is_refused_by_the_wire(fault: Fault, message: str) -> None:
    fleet, index = only(fault)
    with pytest.raises(wire.WireError, match=message):
        ask(fleet, index)


def test_a_bad_section_is_refused_alone() -> None:
    fleet, index = only("bad-section")
    snapshot = ask(fleet, index)
    with pytest.raises(wire.WireError, match="section machine"):
        wire.decode_section(wire.Machine, section(snapshot, wire.MACHINE))
    assert wire.decode_section(Usage, section(snapshot, wire.USAGE)).cpu is not None


def test_a_duplicate_says_that_it_is_the_first_node() -> None:
    fleet, index = only("duplicate-identity")
    assert ask(fleet, index).exporter == ask(fleet, 0).exporter


def test_a_skewed_clock_is_a_year_ahead() -> None:
    fleet, index = only("clock-skew")
    assert ask(fleet, index).taken - ask(fleet, 0).taken == 365 * 86400
    assert ask(fleet, index).monotonic == ask(fleet, 0).monotonic


def test_counters_that_reset_start_anew_every_few_seconds() -> None:
    clock = Clock()
    fleet, index = only("counter-reset", clock)
    sums = []
    for _ in range(9):
        usage = wire.decode_section(Usage, section(ask(fleet, index), wire.USAGE))
        assert usage.cpu is not None
        sums.append(sum(usage.cpu.busy) + sum(usage.cpu.idle))
        clock.now += 1
    assert any(b < a for a, b in pairwise(sums))


def test_shares_are_read_and_wrong_ones_explained() -> None:
    assert faults.parse("black-hole:0.05,slow:0.1") == {"black-hole": 0.05, "slow": 0.1}
    with pytest.raises(faults.FaultError, match="no fault is named 'rain'; there are: black-hole, slow"):
        faults.parse("rain:0.1")
    with pytest.raises(faults.FaultError, match="'slow:much' needs a share between 0 and 1"):
        faults.parse("slow:much")
    with pytest.raises(faults.FaultError, match="add up to more than 1"):
        faults.parse("slow:0.6,error:0.6")


async def fetch(url: str, target: str = "/v1/snapshot", limit: int = 300_000) -> tuple[bytes, bytes]:
    """Head and body, or what of it came, as a plain client sees them."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = [int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")]
        body = b""
        while len(body) < min([*lengths, limit]) and (part := await reader.read(65536)):
            body += part
    finally:
        writer.close()
        await writer.wait_closed()
    return head, body


@pytest.mark.parametrize("ports", [False, True])
async def test_each_endpoint_answers_at_an_address_of_its_own(ports: bool) -> None:
    fleet = small(6)
    async with Serving(fleet, ports=ports) as serving:
        assert len(set(serving.urls)) == 6
        for (name, url), index in zip(serving.exporters(), range(6), strict=True):
            head, body = await fetch(url)
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert wire.decode(body).exporter.node == name == fleet.name(index)
        assert (await fetch(serving.urls[0], "/healthz"))[1] == b'{"status":"ok"}'
        assert (await fetch(serving.urls[0], "/else"))[0].startswith(b"HTTP/1.1 404")


async def test_a_connection_serves_many_requests() -> None:
    async with Serving(small(1), ports=True) as serving:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(serving.urls[0].rpartition(":")[2]))
        for _ in range(3):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            for _ in range(2):
                await reader.readuntil(b"\r\n\r\n")
                assert json.loads(await reader.readexactly(15)) == {"status": "ok"}
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("fault", "head", "size"),
    [
        ("huge-body", b"Content-Length: 100000000", 300_000),
        ("endless-chunked", b"Transfer-Encoding: chunked", 300_000),
        ("gzip-bomb", b"Content-Encoding: gzip", 300_000),
        ("error", b"HTTP/1.1 500 ", 30),
        ("redirect", b"Location: http://169.254.169.254/", 0),
    ],
)
async def test_faults_of_sending_reach_the_caller(fault: Fault, head: bytes, size: int) -> None:
    fleet, index = only(fault)
    async with Serving(fleet, ports=True) as serving:
        told, body = await fetch(serving.urls[index])
    assert head in told
    assert len(body) >= size


async def test_a_truncated_answer_ends_early() -> None:
    fleet, index = only("truncated")
    async with Serving(fleet, ports=True) as serving:
        head, body = await fetch(serving.urls[index])
    assert int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]) > len(body) > 0


@pytest.mark.parametrize("fault", ["black-hole", "slow-loris", "slow"])
async def test_a_slow_endpoint_delays_no_other(fault: Fault) -> None:
    fleet, index = only(fault)
    async with Serving(fleet, ports=True) as serving:
        waiting = asyncio.create_task(fetch(serving.urls[index]))
        await asyncio.sleep(0)
        assert wire.decode((await fetch(serving.urls[0]))[1]).exporter.node == "node-00000"
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
