"""Pages of a container by NUMA node from its processes' `numa_maps` (proc_pid_numa_maps(5)).

Opt-in: reading another's `numa_maps` needs CAP_SYS_PTRACE, and the kernel walks every page table for it. It serves
kernels without `memory.numa_stat`.
"""

from __future__ import annotations

import re

from numaagent.config import Roots
from numaagent.readers.files import Files, Source
from numaagent.readers.hierarchies import Hierarchies
from numacore.workload import Container

MAX_PROCESSES = 64
"""Processes of one container that are looked at; more would make the reading cost too much."""
LIMIT = 8 * 1024 * 1024
_NODE = re.compile(rb" N(\d+)=(\d+)")
_PAGE = re.compile(rb" kernelpagesize_kB=(\d+)")


def read(
    files: Files, roots: Roots, trees: Hierarchies, containers: tuple[Container, ...]
) -> tuple[dict[int, int] | None, ...]:
    """Bytes by NUMA node of each container, in their order; None where nothing could be read."""
    source = files.reader("numa-maps")
    return tuple(_container(source, roots, trees, each) for each in containers)


def _container(
    source: Source, roots: Roots, trees: Hierarchies, container: Container
) -> dict[int, int] | None:
    tree = trees.by_controller.get("memory") or trees.by_controller.get("cpuset")
    if tree is None or container.cgroup is None:
        return None
    text = source.text(f"{tree.path}{container.cgroup}/cgroup.procs") or ""
    found: dict[int, int] = {}
    for pid in text.split()[:MAX_PROCESSES]:
        for node, size in process(source.data(f"{roots.proc}/{pid}/numa_maps", limit=LIMIT) or b"").items():
            found[node] = found.get(node, 0) + size
    return found or None


def process(data: bytes) -> dict[int, int]:
    """Bytes by NUMA node of one process."""
    found: dict[int, int] = {}
    for line in data.splitlines():
        if page := _PAGE.search(line):
            for node, pages in _NODE.findall(line):
                found[int(node)] = found.get(int(node), 0) + int(pages) * int(page[1]) * 1024
    return found
