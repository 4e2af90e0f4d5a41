"""Cases and answers as JSON: the form in which the real plugin was asked, and in which `python -m numacore score` is.

A case: `ID`, `Policy` (the pod's annotation), `Weight` (the plugin's argument), `Containers` and `Init` [{`Name`, `Requests`, `Limits`}],
`Nodes` [{`Name`, `CPUManager`, `Topology`, `Detail` {CPU: {`Numa`, `Socket`, `Core`}}, `Allocatable`, `Reserved`, `NoNuma`}]. An answer: `id`,
`nodes` {name: {`fit`, `reason`, `scored`, `cpus`, `per_container`}}, `scores`; `open`, further answers that are as right as this one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from numacore import quantity
from numacore.cpuset import CpuSet, CpuSetError
from numacore.quantity import QuantityError
from numacore.volcano import plugin, pods
from numacore.volcano.plugin import NodeVerdict, Outcome
from numacore.volcano.pods import Pod
from numacore.volcano.topology import MAX_NUMA_ID, Cpu, Numatopology

MAX_OPEN = 63
"""Most further answers that are given; open choices on several nodes multiply."""


class CaseError(ValueError):
    """A line that is no case, with the field that is wrong."""


class ContainerForm(msgspec.Struct, frozen=True, rename="pascal"):
    name: str
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class CpuForm(msgspec.Struct, frozen=True, rename="pascal"):
    numa: int = 0
    socket: int = 0
    core: int = 0


class NodeForm(msgspec.Struct, frozen=True, rename="pascal"):
    name: str
    cpu_manager: str = msgspec.field(default="", name="CPUManager")
    topology: str = ""
    detail: dict[str, CpuForm] = {}
    allocatable: str = ""
    reserved: str = ""
    no_numa: bool = False


class CaseForm(msgspec.Struct, frozen=True, rename="pascal"):
    id: str = msgspec.field(name="ID")
    containers: list[ContainerForm]
    nodes: list[NodeForm]
    init: list[ContainerForm] = []
    policy: str = ""
    weight: Any = None


class NodeAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    fit: bool
    scored: bool
    reason: str = ""
    cpus: str = ""
    per_container: tuple[str, ...] = ()


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    nodes: dict[str, NodeAnswer]
    scores: dict[str, int] = {}
    open: tuple[Answer, ...] = ()


class Verdicts(msgspec.Struct, frozen=True):
    """What the plugin says of every node of a case, with its trace."""

    pod: Pod
    weight: int
    nodes: dict[str, NodeVerdict]


def answer(line: bytes | str) -> bytes:
    """The answer to one line, as JSON without a line end.

    Raises:
        CaseError: the line is no case.
    """
    form = decode(line)
    return msgspec.json.encode(write(form.id, judge(form)))


def decode(line: bytes | str) -> CaseForm:
    """Reads a case.

    Raises:
        CaseError: the line is no JSON, lacks a field, or has one of another type.
    """
    try:
        return msgspec.json.decode(line, type=CaseForm)
    except msgspec.DecodeError as error:
        raise CaseError(str(error)) from error


def judge(form: CaseForm) -> Verdicts:
    """Asks the plugin.

    Raises:
        CaseError: an amount, a set of CPUs or an id cannot be read.
    """
    pod = Pod(
        tuple(_container(each) for each in form.containers), form.policy, tuple(map(_container, form.init))
    )
    nodes = {each.name: plugin.judge_node(pod, _node(each)) for each in form.nodes}
    return Verdicts(pod, plugin.weight(form.weight)[0], nodes)


def write(identity: str, verdicts: Verdicts) -> Answer:
    """The answer that the code means; under `open` those that the order of a Go map may make of it."""
    first, *others = itertools.islice(_combinations(verdicts), MAX_OPEN + 1)
    further = tuple(_answer(identity, verdicts, outcomes) for outcomes in others)
    return msgspec.structs.replace(_answer(identity, verdicts, first), open=further)


def _combinations(verdicts: Verdicts) -> Iterator[dict[str, Outcome]]:
    for outcomes in itertools.product(*(verdict.outcomes for verdict in verdicts.nodes.values())):
        yield dict(zip(verdicts.nodes, outcomes, strict=True))


def _answer(identity: str, verdicts: Verdicts, outcomes: Mapping[str, Outcome]) -> Answer:
    counts = {
        name: outcome.numa_nodes for name, outcome in outcomes.items() if outcome.numa_nodes is not None
    }
    scores = plugin.batch_node_order(verdicts.pod, counts, verdicts.weight)
    return Answer(
        id=identity,
        nodes={name: _node_answer(outcome) for name, outcome in outcomes.items()},
        scores={name: score.value for name, score in scores.items()},
    )


def _node_answer(outcome: Outcome) -> NodeAnswer:
    simulated = tuple(str(step.cpus) for step in outcome.steps if step.admitted)
    return NodeAnswer(
        fit=outcome.fit,
        scored=outcome.scored,
        reason=outcome.reason,
        cpus=str(outcome.cpus) if outcome.scored else "",
        per_container=simulated,
    )


def _container(form: ContainerForm) -> pods.Container:
    return pods.Container(form.name, _amounts(form.requests, form.name), _amounts(form.limits, form.name))


def _amounts(texts: Mapping[str, str], container: str) -> dict[str, Fraction]:
    return {name: _amount(text, f"{name} of container {container}") for name, text in texts.items()}


def _amount(text: str, what: str) -> Fraction:
    try:
        amount = quantity.parse(text)
    except QuantityError as error:
        raise CaseError(f"{what}: {error}") from error
    if amount < 0:
        raise CaseError(f"{what}: {text[:40]!r} is negative")
    return amount


def _node(form: NodeForm) -> Numatopology | None:
    if form.no_numa:
        return None
    try:
        allocatable = CpuSet.parse(form.allocatable)
        cpus = {_cpu_id(number): Cpu(cpu.numa, cpu.socket, cpu.core) for number, cpu in form.detail.items()}
    except CpuSetError as error:
        raise CaseError(f"node {form.name}: {error}") from error
    for number, cpu in cpus.items():
        if not (0 <= cpu.numa <= MAX_NUMA_ID and cpu.socket >= 0 and cpu.core >= 0):
            raise CaseError(
                f"node {form.name}: CPU {number} lies on no NUMA node 0-{MAX_NUMA_ID}, socket and core"
            )
    reserved = _amount(form.reserved, f"Reserved of node {form.name}") if form.reserved else None
    return Numatopology(form.cpu_manager, form.topology, cpus, allocatable, reserved)


def _cpu_id(text: str) -> int:
    (number,) = CpuSet.parse(text) if text.isascii() and text.isdigit() else (-1,)
    if number < 0:
        raise CpuSetError(f"{text[:40]!r} in Detail is no CPU id")
    return number
