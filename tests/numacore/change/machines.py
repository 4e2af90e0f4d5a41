"""The recorded machines as a kubelet sees them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from numaagent import config
from numaagent.exporter.node import Node
from numacore.kubelet import machine
from numacore.kubelet.machine import Machine
from tests.numaagent import trees
from tests.numaagent.conftest import seen

MEMORY = Path("/dev/shm")
"""Where thousands of small files cost a fraction."""
NAMES = sorted(file.stem for file in trees.MACHINES.glob("*.tree"))


@cache
def recorded(name: str) -> Machine:
    """Read by the exporter itself."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        node = Node(config.load({}, root=str(trees.machine(name, Path(folder)))), started=1.0)
        told = seen(node).machine
        node.close()
    return machine.of_topology(told.topology, told.attributes)
