"""Finds the cgroups that stand for something that runs: every container, and outside Kubernetes what has processes.

The rule for what an operator gets to see:
- a container of a pod or of another runtime: always;
- a systemd service or scope (`system.slice`, `user.slice`, `machine.slice`, `init.scope`): if it holds processes or
  its own set of CPUs; what it has inside is its own affair;
- any other group (batch systems, hand-made cpusets): if it holds processes itself, or has its own set of CPUs and
  nothing in it is shown. Groups of pods are containers' parents and never shown.
"""

from __future__ import annotations

import re
from typing import Literal

from numaagent.readers import cgroupnames
from numaagent.readers.cgroupnames import Group
from numaagent.readers.files import Files, Source, Stamp
from numaagent.readers.hierarchies import Hierarchies, Hierarchy
from numacore.cpuset import CpuSet

MAX_GROUPS = 20_000
"""Folders that one search looks into."""
MAX_DEPTH = 24
READER = "containers"
_HIDDEN = re.compile(r"lxc\.(monitor|pivot).*|(crio|libpod)-conmon-.*")
"""What runtimes keep beside a container to watch over it."""


class Search:
    """Walks the cgroup trees again and again, and lists only folders that changed."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._source = Source(files, READER)
        self._trees: tuple[Hierarchy, ...] = ()
        self._cpuset: Hierarchy | None = None
        self._left = 0
        self._known: dict[str, Group | None] = {}
        self._folders: dict[str, tuple[Stamp, list[str]]] = {}

    def groups(self, trees: Hierarchies, *, anew: bool) -> list[Group]:
        """What is shown, in ascending order of the paths. `anew`: trust nothing that was listed before.

        A folder's stamp tells that a group came or went, but not that one went and another came in its place.
        """
        if anew or trees.walked != self._trees:
            self._folders.clear()
            self._known.clear()
        self._source = self._files.reader(READER)
        self._trees, self._cpuset = trees.walked, trees.by_controller.get("cpuset")
        self._left = MAX_GROUPS
        return sorted(self._below("", 0), key=lambda group: group.path)

    def _below(self, path: str, depth: int) -> list[Group]:
        found: list[Group] = []
        for name in self._children(path):
            found += self._at(f"{path}/{name}", name, depth)
        return found

    def _at(self, path: str, name: str, depth: int) -> list[Group]:
        if depth > MAX_DEPTH or self._left <= 0 or _HIDDEN.fullmatch(name):
            return []
        self._left -= 1
        group = self._recognised(path)
        if group is not None and group.unit:
            nested = self._nested(path, depth)
            return nested + ([group] if self._lives(path) or self._own_cpus(path) else [])
        if group is not None:
            return [*self._nested(path, depth), group]
        below = self._below(path, depth + 1)
        if cgroupnames.is_kubernetes(name) or cgroupnames.is_pod(name) or "kubepods" in path:
            return below
        shown = self._holds(path) or (not below and self._own_cpus(path))
        return [*below, Group(path=path, id=path, name=name)] if shown else below

    def _nested(self, path: str, depth: int) -> list[Group]:
        """A container or service may hold a kubelet's pods or another runtime's containers."""
        found: list[Group] = []
        for name in self._children(path):
            if cgroupnames.is_kubernetes(name):
                found += self._at(f"{path}/{name}", name, depth + 1)
            elif name.endswith((".slice", ".scope", ".service")):
                inside = self._at(f"{path}/{name}", name, depth + 1)
                found += [each for each in inside if each.runtime and not each.unit]
        return found

    def _children(self, path: str) -> list[str]:
        names: dict[str, None] = {}
        for tree in self._trees:
            names.update(dict.fromkeys(self._listed(f"{tree.path}{path}")))
        return sorted(names)

    def _listed(self, folder: str) -> list[str]:
        stamp = self._source.stamp(folder)
        known = self._folders.get(folder)
        if known is not None and stamp is not None and known[0] == stamp:
            return known[1]
        names = self._source.folders(folder)
        if stamp is not None:
            self._folders[folder] = (stamp, names)
        return names

    def _recognised(self, path: str) -> Group | None:
        if path not in self._known:
            self._known[path] = cgroupnames.recognise(path)
        return self._known[path]

    def _lives(self, path: str) -> bool:
        """Whether there are processes in the group or below it."""
        for tree in self._trees:
            if (
                tree.version == 2
                and (events := self._source.text(f"{tree.path}{path}/cgroup.events")) is not None
            ):
                return "populated 1" in events
        return self._holds(path)

    def _holds(self, path: str) -> bool:
        """Whether the group itself has processes."""
        files = (f"{tree.path}{path}/{name}" for tree in self._trees for name in ("cgroup.procs", "tasks"))
        return any(self._source.text(file, limit=1 << 20) for file in files)

    def _own_cpus(self, path: str) -> bool:
        tree = self._cpuset
        own = effective(self._source, tree, path, "cpus")[0] if tree else None
        return bool(own) and own != nearest(self._source, tree, path.rpartition("/")[0], "cpus")[0]


Effective = tuple[CpuSet | None, str | None]
"""A set in force, and the file that tells it."""


def effective(source: Source, tree: Hierarchy, path: str, what: Literal["cpus", "mems"]) -> Effective:
    """CPUs or NUMA nodes in force for a group; None where it has no set of its own."""
    base = f"{tree.path}{path}/{tree.prefix}"
    first = f"{what}.effective" if tree.version == 2 else f"effective_{what}"
    for name in (first, what):
        if found := source.ids(base + name):
            return found, base + name
    return None, None


def nearest(source: Source, tree: Hierarchy | None, path: str, what: Literal["cpus", "mems"]) -> Effective:
    """CPUs or NUMA nodes in force for a group: its own, else those of the nearest group above that has some."""
    while tree is not None:
        found = effective(source, tree, path, what)
        if found[0] is not None or not path:
            return found
        path = path.rpartition("/")[0]
    return None, None
