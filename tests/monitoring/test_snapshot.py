"""What an exporter told is kept, compared and refused as numacore's own words say."""

import itertools
from typing import Any

import msgspec
import pytest

from monitoring.sources.snapshot import Known
from numacore import usage as core
from numacore import wire
from numacore.cpuset import CpuSet
from numacore.topology import Cpu, NumaNode, Topology
from numacore.usage import ContainerUse, CpuTimes, MemoryUse, Usage
from numacore.workload import Container
from numasim.fleet import Fleet


def topology(distances: bool = True) -> Topology:
    """Interleaved CPUs on nodes 0 and 4, and a memory-only node 9."""
    cpus = tuple(Cpu(id=i, socket=0, core=i, numa=(0, 4)[i % 2]) for i in range(8))
    row = (10, 20, 30) if distances else None
    nodes = (
        NumaNode(0, CpuSet([0, 2, 4, 6]), row),
        NumaNode(4, CpuSet([1, 3, 5, 7]), row),
        NumaNode(9, CpuSet(), row),
    )
    return Topology(cpus=cpus, nodes=nodes)


class Node:
    """An exporter by hand: sections that can be changed, and the answer as bytes."""

    def __init__(self) -> None:
        self.machine = wire.Machine(topology())
        self.containers = wire.Containers((Container(id="c1"),))
        self.busy = [100] * 8
        self.idle = [1000] * 8
        self.cpus = CpuSet(range(8))
        self.other = 50
        self.monotonic = 10.0
        self.taken = 1000.0
        self.boot = "boot-1"
        self.name = "n1"
        self.extra: dict[str, Any] = {}

    def usage(self) -> Usage:
        return Usage(
            containers_of=wire.Packed(self.containers).hash,
            cpu=CpuTimes(self.cpus, tuple(self.busy), tuple(self.idle)),
            memory={
                0: MemoryUse(used=5, free=6, file=1, counters={"other_node": self.other, "numa_hit": 1}),
                9: MemoryUse(used=7),
            },
            containers=ContainerUse((10,), (20,), {0: (30,)}),
        )

    def sums(self) -> bytes:
        """The answer by NUMA node, for a caller that has everything else."""
        packed = {"machine": wire.Packed(self.machine).hash, "containers": wire.Packed(self.containers).hash}
        return self.answer(packed, summed=True)

    def answer(self, have: dict[str, str] | None = None, summed: bool = False) -> bytes:
        have = have or {}
        parts: dict[str, Any] = {"machine": self.machine, "containers": self.containers}
        usage = self.usage()
        sums = core.numa_usage(self.machine.topology, usage.cpu, usage.memory)
        parts |= {"numa": sums} if summed else {"usage": usage}
        sections = {name: wire.Packed(value).section(have.get(name)) for name, value in parts.items()}
        return wire.encode(
            wire.Snapshot(
                version=1,
                exporter=wire.Exporter(self.name, "m1", self.boot, "0.1"),
                taken=self.taken,
                monotonic=self.monotonic,
                sections=sections,
            )
        )

    def on(self, seconds: float = 2.0, busy: int = 50, idle: int = 150) -> None:
        self.monotonic += seconds
        self.taken += seconds
        self.busy = [each + busy for each in self.busy]
        self.idle = [each + idle for each in self.idle]


def told(*steps: Any) -> tuple[Known, list[Any]]:
    node, known = Node(), Known()
    rounds = [known.take(node.answer(), 1000.0)]
    for step in steps:
        step(node)
        rounds.append(known.take(node.answer(known.have), node.taken))
    return known, rounds


def test_it_knows_shares_of_each_numa_node_after_the_second_answer() -> None:
    _, (first, second) = told(lambda node: node.on())
    assert [numa.busy for numa in first.numa] == [None, None, None]
    assert [numa.busy for numa in second.numa] == [0.25, 0.25, None]
    assert second.seconds == 2.0
    assert (second.numa[0].used, second.numa[0].free, second.numa[2].used) == (5, 6, 7)
    assert second.changed == ()


def test_it_agrees_with_the_core_on_every_node_of_a_fleet() -> None:
    clock = itertools.count(1000.0, 1.0)
    fleet = Fleet(3, containers=5, model="kunpeng-920", clock=lambda: next(clock))
    for index in range(3):
        known = Known()
        answers = [fleet.answer(index, "/v1/snapshot").body for _ in range(3)]
        rounds = [known.take(body, 1.0) for body in answers]
        before, after = (
            wire.decode_section(Usage, wire.decode(body).sections["usage"].data or b"")
            for body in answers[1:]
        )
        assert known.machine is not None
        expected = core.numa_busy(known.machine.topology, core.busy_shares(before.cpu, after.cpu))
        assert [numa.busy for numa in rounds[2].numa] == pytest.approx(list(expected.values()))
        assert known.usage_section() == bytes(wire.decode(answers[2]).sections["usage"].data or b"")
        assert known.usage_before() == bytes(wire.decode(answers[1]).sections["usage"].data or b"")


def test_it_asks_only_for_what_it_lacks() -> None:
    known, _ = told()
    assert set(known.have) == {"machine", "containers"}
    node = Node()
    node.containers = wire.Containers((Container(id="c2"),))
    round_ = known.take(node.answer(known.have), 1.0)
    assert round_.changed == ("containers",)
    assert b"c2" in known.sections["containers"]


def test_it_compares_nothing_across_a_reboot() -> None:
    def reboot(node: Node) -> None:
        node.on()
        node.boot, node.monotonic = "boot-2", 3.0

    known, (_, second) = told(reboot)
    assert second.seconds is None
    assert second.numa[0].busy is None
    assert known.usage_before() is None


def test_it_shows_no_share_of_cpus_whose_counters_went_back() -> None:
    def back(node: Node) -> None:
        node.on()
        node.busy[0] = 0
        node.idle[1] = 0

    _, (_, second) = told(back)
    assert second.numa[0].busy == pytest.approx(0.25)  # of the three others
    assert second.numa[1].busy == pytest.approx(0.25)


def test_it_forgives_an_idle_counter_that_slips_a_little() -> None:
    def slip(node: Node) -> None:
        node.on(busy=50, idle=-20)

    _, (_, second) = told(slip)
    assert second.numa[0].busy == 1.0


def test_it_recognises_a_reading_that_is_told_twice() -> None:
    known, (_, second, third) = told(lambda node: node.on(), lambda node: None)
    assert not second.repeated
    assert third.repeated
    assert known.seconds == 2.0
    assert known.usage_before() is not None


def test_it_compares_no_columns_of_different_cpus() -> None:
    def unplug(node: Node) -> None:
        node.on()
        node.cpus, node.busy, node.idle = CpuSet(range(7)), node.busy[:7], node.idle[:7]

    _, (_, second) = told(unplug)
    assert [numa.busy for numa in second.numa] == [None, None, None]


def test_it_counts_remote_pages_a_second() -> None:
    def remote(node: Node) -> None:
        node.on()
        node.other += 400

    _, (_, second) = told(remote)
    assert second.numa[0].remote_pages == 200.0
    assert second.numa[1].remote_pages is None


def by_numa(*steps: Any, forms: str) -> tuple[Node, Known, list[Any]]:
    """Answers of each form, whole (w) or by NUMA node (n), with a step before each but the first."""
    node, known, rounds = Node(), Known(), []
    for form, step in zip(forms, (lambda _: None, *steps), strict=True):
        step(node)
        rounds.append(known.take(node.sums() if form == "n" else node.answer(), node.taken))
    return node, known, rounds


@pytest.mark.parametrize("forms", ["wwww", "wnnn", "wnwn", "wwnw"])
def test_whole_answers_and_those_by_numa_node_tell_the_same_round(forms: str) -> None:
    def more(node: Node) -> None:
        node.on(busy=30, idle=10)
        node.other += 400

    _, _, rounds = by_numa(lambda node: node.on(), more, lambda node: node.on(busy=0), forms=forms)
    assert [[numa.busy for numa in each.numa] for each in rounds] == [
        [None] * 3,
        [0.25, 0.25, None],
        [0.75, 0.75, None],
        [0.0, 0.0, None],
    ]
    assert [each.seconds for each in rounds] == [None, 2.0, 2.0, 2.0]
    assert [each.numa[0].remote_pages for each in rounds] == [None, 0.0, 200.0, 0.0]
    assert [(numa.used, numa.free, numa.file) for numa in rounds[3].numa] == [
        (5, 6, 1),
        (None, None, None),
        (7, None, None),
    ]


def test_it_agrees_with_the_core_by_numa_node_too() -> None:
    clock = itertools.count(1000.0, 1.0)
    fleet = Fleet(1, containers=5, model="kunpeng-920", clock=lambda: next(clock))
    known, whole = Known(), []
    rounds = [
        known.take(fleet.answer(0, f"/v1/snapshot?{wire.format_question(known.have, True)}").body, 1.0)
        for _ in range(3)
    ]
    clock = itertools.count(1001.0, 1.0)  # the same seconds, whole
    for _ in range(2):
        body = fleet.answer(0, "/v1/snapshot").body
        whole.append(wire.decode_section(Usage, wire.decode(body).sections["usage"].data or b""))
    assert known.machine is not None
    busy = core.busy_shares(whole[0].cpu, whole[1].cpu)
    expected = core.numa_busy(known.machine.topology, busy)
    assert [numa.busy for numa in rounds[2].numa] == pytest.approx(
        list(expected.values()), abs=0.01
    )  # a tick
    assert None not in expected.values()


def test_what_is_told_of_every_cpu_keeps_its_own_age_and_interval() -> None:
    steps = [lambda node: node.on()] * 3
    _, known, _ = by_numa(*steps, forms="wnwn")
    assert (known.received, known.whole_received, known.whole_taken) == (1006.0, 1004.0, 1004.0)
    assert known.seconds == 4.0
    first, third = Node(), Node()
    third.on()
    third.on()
    assert wire.decode_section(Usage, known.usage_before() or b"") == first.usage()
    assert wire.decode_section(Usage, known.usage_section() or b"") == third.usage()
    assert known.confirmed["usage"] == 1004.0
    assert known.confirmed["containers"] == 1006.0
    assert known.hashes["usage"] == wire.Packed(third.usage()).hash


def test_the_containers_of_the_whole_reading_before_are_kept_with_it() -> None:
    def other(node: Node) -> None:
        node.on()
        node.containers = wire.Containers((Container(id="c2"),))

    _, known, _ = by_numa(lambda node: node.on(), other, lambda node: node.on(), forms="wnww")
    assert known.before_containers is None  # both whole readings are about c2
    _, known, _ = by_numa(lambda node: node.on(), other, forms="wnw")
    assert b"c1" in (known.before_containers or b"")


def test_it_recognises_sums_that_are_told_twice_and_compares_none_across_a_reboot() -> None:
    def reboot(node: Node) -> None:
        node.on()
        node.boot = "boot-2"

    steps = (lambda node: node.on(), lambda node: None, lambda node: node.on(0.3, 0, 0), reboot)
    _, _, rounds = by_numa(*steps, forms="wnnnn")
    assert [each.repeated for each in rounds] == [False, False, True, True, False]
    assert rounds[4].numa[0].busy is None


def test_it_shows_no_share_of_a_numa_node_whose_sums_went_back_or_are_of_other_cpus() -> None:
    def high(node: Node) -> None:
        node.on()
        node.busy[0] += 5000

    def back(node: Node) -> None:
        node.on()
        node.busy[0] = 0

    def unplug(node: Node) -> None:
        node.on()
        node.cpus, node.busy, node.idle = CpuSet(range(7)), node.busy[:7], node.idle[:7]

    _, _, rounds = by_numa(high, back, forms="wnn")
    assert [numa.busy for numa in rounds[2].numa] == [None, 0.25, None]
    _, _, rounds = by_numa(lambda node: node.on(), unplug, forms="wnn")
    assert [numa.busy for numa in rounds[2].numa] == [None, None, None]


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda numa: numa.update(busy=[1, 2]), "3 NUMA nodes"),
        (lambda numa: numa.update(idle=[1, 2, -3]), ">= 0"),
        (lambda numa: numa.update(used=[2**62, 2**62, 1]), "more memory than"),
        (lambda numa: numa.pop("free"), "free"),
        (lambda numa: numa.update(cpus=5), "cpus"),
    ],
)
def test_it_refuses_sums_that_cannot_be(change: Any, cause: str) -> None:
    node, known = Node(), Known()
    known.take(node.answer(), 1000.0)
    answer = msgspec.json.decode(node.sums())
    change(answer["sections"]["numa"]["data"])
    with pytest.raises(wire.WireError, match=cause):
        known.take(msgspec.json.encode(answer), 1001.0)
    assert known.received == 1000.0


def test_it_measures_skew_and_lets_time_jump() -> None:
    def jump(node: Node) -> None:
        node.on()
        node.taken += 3600

    node, known = Node(), Known()
    known.take(node.answer(), 1000.0)
    jump(node)
    second = known.take(node.answer(known.have), 1002.0, round_trip=0.2)
    assert known.skew == pytest.approx(3600.1)
    assert second.seconds == 2.0


def test_it_shares_one_topology_between_machines_of_a_kind() -> None:
    one, two = told()[0], told()[0]
    assert one.machine is not None
    assert two.machine is not None
    assert one.machine.topology is two.machine.topology


def spoiled(change: Any) -> bytes:
    answer = msgspec.json.decode(Node().answer())
    change(answer)
    return msgspec.json.encode(answer)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda a: a.update(version=99), "version 99"),
        (lambda a: a.pop("monotonic"), "monotonic"),
        (lambda a: a["exporter"].update(node=5), "exporter.node"),
        (lambda a: a["exporter"].update(node="../../etc"), "exporter.node"),
        (lambda a: a["exporter"].update(node=""), "exporter.node"),
        (lambda a: a["exporter"].update(node="a" * 300), "exporter.node"),
        (lambda a: a["sections"]["usage"]["data"]["cpu"].update(cpus="0-3"), "as many times as CPUs"),
        (lambda a: a["sections"]["usage"]["data"]["cpu"].update(cpus="7-0"), "backwards"),
        (
            lambda a: a["sections"]["usage"]["data"]["cpu"].update(busy=[1, 2, "x", 4, 5, 6, 7, 8]),
            "whole numbers",
        ),
        (lambda a: a["sections"]["usage"]["data"]["cpu"].update(busy=[1.5] * 8), "whole numbers"),
        (lambda a: a["sections"]["usage"]["data"]["cpu"].update(busy=None), "whole numbers"),
        (lambda a: a["sections"]["usage"]["data"]["cpu"].update(idle=[[1, 2], 3]), "whole numbers"),
        (
            lambda a: a["sections"]["machine"]["data"]["topology"]["nodes"][0].update(distances=[10]),
            "distances",
        ),
        (lambda a: a["sections"]["usage"]["data"]["cpu"].update(busy=[-1] * 8), "whole numbers"),
        (lambda a: a["sections"]["usage"]["data"]["memory"]["0"].update(used=-1), ">= 0"),
        (
            lambda a: a["sections"]["usage"]["data"]["memory"]["0"].update(free=2**63),
            "<= 9223372036854775807",
        ),
        (
            lambda a: a["sections"]["usage"]["data"]["memory"]["0"]["counters"].update(other_node=10**30),
            "other_node",
        ),
        (lambda a: a["sections"]["usage"]["data"].update(memory={"70000": {"used": 1}}), "65535"),
        (
            lambda a: [a["sections"]["usage"]["data"]["memory"][i].update(used=2**62) for i in "09"],
            "more memory than",
        ),
        (
            lambda a: a["sections"]["machine"]["data"].update(
                attributes={"memory": {"0": 2**62, "4": 2**62}}
            ),
            "more memory than",
        ),
        (lambda a: a["sections"]["machine"].update(hash="0" * 32), "not that of its content"),
        (
            lambda a: a["sections"]["containers"].update(data={"containers": [{"id": "another"}]}),
            "not that of its content",
        ),
        (lambda a: a["exporter"].update(version="a\0b"), "NUL character"),
        (lambda a: a["sections"]["containers"].pop("data"), "no content"),
        (lambda a: a["sections"]["containers"].update(data={"containers": [{"id": 5}]}), "containers"),
    ],
)
def test_it_refuses_and_keeps_what_it_had(change: Any, cause: str) -> None:
    known, _ = told()
    before = (dict(known.sections), dict(known.have), known.received)
    fresh = Known()
    with pytest.raises(wire.WireError, match=cause.replace("[", r"\[")):
        fresh.take(spoiled(change), 5.0)
    assert fresh.sections == {}
    with pytest.raises(wire.WireError):
        known.take(b"\xff" + spoiled(change), 5.0)
    assert before == (known.sections, known.have, known.received)


def test_it_refuses_what_is_too_large_or_too_deep() -> None:
    with pytest.raises(wire.WireError, match="more than"):
        Known().take(b" " * (wire.MAX_BYTES + 1), 1.0)
    with pytest.raises(wire.WireError):
        Known().take(b"[" * 100_000, 1.0)


def test_what_it_has_taken_it_can_tell_whatever_else_the_answer_holds() -> None:
    def strange(answer: Any) -> None:
        answer["sections"].update(later={"of": ["another", "version"]}, more=5)

    known = Known()
    known.take(spoiled(strange), 5.0)
    usage = known.usage_section()
    assert usage is not None
    assert wire.decode_section(Usage, usage) == Node().usage()
