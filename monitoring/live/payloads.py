"""What an open node page gets at every round, as values; JSON of the wire to the browser is made by the topic."""

from __future__ import annotations

import msgspec

from monitoring.hot import HotNode
from numacore.report import ContainerReport, NodeReport, NumaReport, node_report
from numacore.workload import BUSY


class NumaTick(msgspec.Struct, frozen=True, omit_defaults=False):
    """One NUMA node now: busy share, bytes; null = unknown."""

    busy: float | None
    used: int | None
    free: int | None
    file: int | None


class ContainerTick(msgspec.Struct, frozen=True):
    """One container now: CPUs in use, bytes, bytes by NUMA node, locality and cost; null = unknown."""

    cpu: float | None
    memory: int | None
    pages: dict[str, int] | None
    locality: float | None
    cost: float | None


class NodeTick(msgspec.Struct, frozen=True):
    """Everything that moves on one node."""

    node: int
    received: float
    """By our clock."""
    taken: float
    """By the node's clock."""
    hashes: dict[str, str]
    busy: tuple[float | None, ...]
    """Of each CPU in the order of the topology."""
    numa: dict[str, NumaTick]
    containers: dict[str, ContainerTick]


def node_tick(state: HotNode, threshold: float = BUSY) -> NodeTick | None:
    """What moves, from a node's newest answer; None while the machine itself is unknown."""
    facts = state.facts()
    return None if facts is None else of_report(state, node_report(facts, threshold))


def of_report(state: HotNode, report: NodeReport) -> NodeTick:
    """What moves, from a report that was made of this state."""
    return NodeTick(
        node=state.node,
        received=state.received,
        taken=state.taken,
        hashes=state.hashes,
        busy=tuple(_rounded(cpu.busy) for cpu in report.cpus),
        numa={str(numa.id): _numa(numa) for numa in report.numa},
        containers={each.container.id: _container(each) for each in report.containers},
    )


def _numa(numa: NumaReport) -> NumaTick:
    memory = numa.memory
    return NumaTick(
        _rounded(numa.busy),
        memory.used if memory else None,
        memory.free if memory else None,
        memory.file if memory else None,
    )


def _container(each: ContainerReport) -> ContainerTick:
    pages = None if each.pages is None else {str(node): size for node, size in each.pages.items()}
    return ContainerTick(
        _rounded(each.cpu_use), each.memory, pages, _rounded(each.locality), _rounded(each.cost)
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
