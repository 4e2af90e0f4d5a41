"""All files of one simulated node below one root, and how they move with time."""

from __future__ import annotations

from pathlib import Path

from numasim import cgroups, kubelet, kubeletstate, managers, procfs, sysfs
from numasim.files import Tree
from numasim.node import Node
from numasim.workload import Pod


class NodeTree:
    """The tree of one node. `epoch`: wall clock at simulated time 0, seconds since 1970."""

    def __init__(self, root: Path, node: Node, epoch: float) -> None:
        self.node = node
        self._tree = Tree(root)
        self._boot = epoch - node.uptime
        self._version = 0
        self._lost: frozenset[str] = frozenset()
        self._pods: dict[str, Pod] = {}

    @property
    def root(self) -> Path:
        """Where the tree is."""
        return self._tree.root

    def write(self) -> None:
        """Writes everything for the first time."""
        sysfs.write(self._tree, self.node.spec.machine)
        procfs.write_base(self._tree, self.node)
        cgroups.write_base(self._tree, self.node)
        kubelet.write_config(self._tree, self.node.settings)
        self.update()
        for path in self.node.spec.hidden:
            self._tree.leave(path)
        for path in self.node.spec.garbled:
            self._tree.replace(path, "\0\x01 not what it was \x7f\n")
        self._lost = frozenset(self.node.spec.hidden + self.node.spec.garbled)

    def update(self) -> bool:
        """Brings the tree to the node's present moment; True = something came, left or moved."""
        changed = self._version != self.node.version
        if changed:
            self._version = self.node.version
            self._come_and_go()
            self._write_states()
        cgroups.update(self._tree, self.node, cpusets=changed)
        procfs.update(self._tree, self.node, self._boot)
        return changed

    def _come_and_go(self) -> None:
        for uid in [uid for uid in self._pods if uid not in self.node.running]:
            cgroups.stop_pod(self._tree, self.node, self._pods.pop(uid))
        for uid, running in self.node.running.items():
            if uid not in self._pods:
                self._pods[uid] = running[0].pod
                cgroups.start_pod(self._tree, self.node, running[0].pod, running)

    def _write_states(self) -> None:
        node = self.node
        states = {
            "cpu_manager_state": kubeletstate.cpu_state(node.settings, node.pool, managers.cpu_entries(node)),
            "memory_manager_state": kubeletstate.memory_state(
                node.settings, managers.memory_tables(node), managers.memory_entries(node)
            ),
        }
        for name, text in states.items():
            if f"{kubelet.STATE}/{name}" not in self._lost:
                self._tree.replace(f"{kubelet.STATE}/{name}", text)
