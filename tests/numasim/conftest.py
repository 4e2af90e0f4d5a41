"""What tests of the simulator share: a directory with a short name, and the real exporter's reading of a tree."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from numaagent.exporter import command
from numacore import wire
from numacore.kubeletstate import Kubelet
from numacore.usage import Usage
from numacore.workload import Container
from numasim.node import Node
from numasim.spec import Spec
from numasim.trees import NodeTree

EPOCH = 1_800_000_000.0


class Reading:
    """One snapshot of the real exporter, decoded."""

    def __init__(self, text: str) -> None:
        snapshot = wire.decode(text.encode())
        data = {name: section.data or b"" for name, section in snapshot.sections.items()}
        self.exporter = snapshot.exporter
        self.problems = {problem.what: problem.cause for problem in snapshot.problems}
        self.machine = wire.decode_section(wire.Machine, data[wire.MACHINE])
        self.kubelet = wire.decode_section(Kubelet, data[wire.KUBELET])
        self.containers = wire.decode_section(wire.Containers, data[wire.CONTAINERS]).containers
        self.usage = wire.decode_section(Usage, data[wire.USAGE])

    @property
    def by_id(self) -> dict[str, Container]:
        """Containers of pods."""
        return {each.id: each for each in self.containers if each.kubernetes}


Read = Callable[[Path], Reading]
Grow = Callable[[Spec], NodeTree]


@pytest.fixture
def place() -> Iterator[Path]:
    """In memory where that is possible: a large machine has tens of thousands of files."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    made = Path(tempfile.mkdtemp(prefix="ns", dir=base))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def read(capsys: pytest.CaptureFixture[str]) -> Read:
    """Reads a tree with the real exporter."""

    def run(root: Path) -> Reading:
        assert command.main(["--root", str(root), "--once"], {}) == 0
        return Reading(capsys.readouterr().out)

    return run


@pytest.fixture
def grow(place: Path) -> Grow:
    """Writes the tree of a node."""

    def run(spec: Spec) -> NodeTree:
        tree = NodeTree(place / spec.name, Node(spec, 1), EPOCH)
        tree.write()
        return tree

    return run
