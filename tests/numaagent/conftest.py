"""Trees of machines, and readings of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from numaagent import config
from numaagent.exporter.node import Node
from numacore import wire
from numacore.kubeletstate import Kubelet
from numacore.usage import Usage
from numacore.wire import Containers, Machine, Problem
from numacore.workload import Container
from tests.numaagent import trees


class Seen(msgspec.Struct, frozen=True):
    """A snapshot as its reader gets it, through the wire."""

    exporter: wire.Exporter
    machine: Machine
    kubelet: Kubelet
    containers: tuple[Container, ...]
    usage: Usage
    problems: tuple[Problem, ...]

    def container(self, ending: str) -> Container:
        """The one container whose cgroup or id ends so."""
        [found] = [each for each in self.containers if (each.cgroup or each.id).endswith(ending)]
        return found

    def causes(self, reader: str) -> list[str]:
        return [problem.cause for problem in self.problems if problem.reader == reader]


def seen(node: Node, now: float = 100.0) -> Seen:
    """What a node answers, decoded."""
    if not node.surveyed:
        node.adopt(node.survey(now, 1_700_000_000.0))
    snapshot = wire.decode(wire.encode(node.snapshot(now, 1_700_000_000.0, {})))
    data = {name: section.data for name, section in snapshot.sections.items()}

    def part(name: str) -> msgspec.Raw:
        found = data[name]
        assert found is not None
        return found

    return Seen(
        exporter=snapshot.exporter,
        machine=wire.decode_section(Machine, part("machine")),
        kubelet=wire.decode_section(Kubelet, part("kubelet")),
        containers=wire.decode_section(Containers, part("containers")).containers,
        usage=wire.decode_section(Usage, part("usage")),
        problems=snapshot.problems,
    )


Open = Callable[..., Node]


@pytest.fixture
def open_node() -> Iterator[Open]:
    """Opens nodes on trees, and closes them after the test."""
    nodes: list[Node] = []

    def opened(root: Path, **environ: str) -> Node:
        node = Node(config.load(environ, root=str(root)), started=1_600_000_000.0)
        nodes.append(node)
        return node

    yield opened
    for node in nodes:
        node.close()


@pytest.fixture
def look(open_node: Open, tmp_path: Path) -> Callable[..., Seen]:
    """Builds a tree from a description and reads it once."""

    def looked(description: str, **environ: str) -> Seen:
        return seen(open_node(trees.build(description, tmp_path / "root"), **environ))

    return looked
