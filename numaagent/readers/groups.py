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
from numaagent.readers.files import Source
from numaagent.readers.hierarchies import Hierarchies, Hierarchy
from numacore.cpuset import CpuSet

MAX_GROUPS = 20_000
"""Folders that one search looks into."""
MAX_DEPTH = 24
_HIDDEN = re.compile(r"lxc\.(monitor|pivot).*|(crio|libpod)-conmon-.*")
"""What runtimes keep beside a container to watch over it."""


class Search:
    """One walk over the cgroup trees."""

    def __init__(self, source: Source, hierarchies: Hierarchies) -> None:
        self._source = source
        self._trees = hierarchies.walked
        self._cpuset = hierarchies.by_controller.get("cpuset")
        self._left = MAX_GROUPS

    def groups(self) -> list[Group]:
        """What is shown, in ascending order of the paths."""
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
        group = cgroupnames.recognise(path)
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
            names.update(dict.fromkeys(self._source.folders(f"{tree.path}{path}")))
        return sorted(names)

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
        own = effective(self._source, self._cpuset, path, "cpus") if self._cpuset else None
        return bool(own) and own != nearest(self._source, self._cpuset, path.rpartition("/")[0], "cpus")


def effective(source: Source, tree: Hierarchy, path: str, what: Literal["cpus", "mems"]) -> CpuSet | None:
    """CPUs or NUMA nodes in force for a group; None where it has no set of its own."""
    base = f"{tree.path}{path}/{tree.prefix}"
    first, second = (f"{what}.effective", what) if tree.version == 2 else (f"effective_{what}", what)
    return source.ids(f"{base}{first}") or source.ids(f"{base}{second}") or None


def nearest(
    source: Source, tree: Hierarchy | None, path: str, what: Literal["cpus", "mems"]
) -> CpuSet | None:
    """CPUs or NUMA nodes in force for a group: its own, else those of the nearest group above that has some."""
    while tree is not None:
        found = effective(source, tree, path, what)
        if found is not None or not path:
            return found
        path = path.rpartition("/")[0]
    return None
