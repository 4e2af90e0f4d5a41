"""What the files of one control group hold, by name, in the first version's words and in the second's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from numacore.cpuset import CpuSet
from numasim import usage
from numasim.files import lines
from numasim.node import Node
from numasim.running import Running, Service

V2 = "sys/fs/cgroup"
"""Where control groups are mounted: the second version right there, controllers of the first below."""
UNLIMITED = 0x7FFFFFFFFFFFF000
"""What the first version prints where no limit of memory is set."""
QUIET = [
    "kernel_stack",
    "pagetables",
    "sec_pagetables",
    "shmem",
    "file_mapped",
    "file_dirty",
    "file_writeback",
    "swapcached",
    "anon_thp",
    "file_thp",
    "shmem_thp",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
    "slab_reclaimable",
    "slab_unreclaimable",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
    "workingset_nodereclaim",
]
"""Rows of memory.numa_stat that stay at 0 here."""


class Limits(msgspec.Struct, frozen=True):
    """What a group may take: CPUs as requested and at most, bytes at most. 0 = nothing was said."""

    cpu: float = 0.0
    cpu_limit: float = 0.0
    memory: int = 0

    @property
    def shares(self) -> int:
        """The kubelet's `cpu.shares` for the request."""
        return max(2, int(self.cpu * 1024))

    @property
    def weight(self) -> int:
        """The same in the second version, as container runtimes convert it."""
        return 1 + (self.shares - 2) * 9999 // 262142


NONE = Limits()


def static(controller: str, cpus: CpuSet, mems: CpuSet, limits: Limits) -> dict[str, str]:
    """Limits, and the CPU set of a group that was given none."""
    quota = int(limits.cpu_limit * 100_000)
    name = controller.removeprefix(V2).lstrip("/")
    if name == "":
        return {
            "cpuset.cpus": "\n",
            "cpuset.cpus.effective": f"{cpus}\n",
            "cpuset.cpus.partition": "member\n",
            "cpuset.mems": "\n",
            "cpuset.mems.effective": f"{mems}\n",
            "cpu.max": f"{quota or 'max'} 100000\n",
            "cpu.weight": f"{limits.weight}\n",
            "memory.max": f"{limits.memory or 'max'}\n",
            "memory.min": "0\n",
            "pids.current": "1\n",
        }
    files = {
        "cpuset": {"cpuset.cpus": f"{cpus}\n", "cpuset.mems": f"{mems}\n"},
        "cpu,cpuacct": {
            "cpu.cfs_quota_us": f"{quota or -1}\n",
            "cpu.cfs_period_us": "100000\n",
            "cpu.shares": f"{limits.shares}\n",
        },
        "memory": {"memory.limit_in_bytes": f"{limits.memory or UNLIMITED}\n"},
        "pids": {"pids.current": "1\n"},
    }
    return files.get(name, {})


def cpuset(node: Node, controller: str, each: Running) -> dict[str, str]:
    """CPUs and NUMA nodes that a container may use now."""
    cpus, mems = node.cpus_of(each), node.mems_of(each)
    if controller == V2:
        given = "" if cpus == node.topology.online else str(cpus)
        return {
            "cpuset.cpus": f"{given}\n",
            "cpuset.cpus.effective": f"{cpus}\n",
            "cpuset.mems": f"{mems if each.place.blocks else ''}\n",
            "cpuset.mems.effective": f"{mems}\n",
        }
    if controller.endswith("/cpuset"):
        return {
            "cpuset.cpus": f"{cpus}\n",
            "cpuset.effective_cpus": f"{cpus}\n",
            "cpuset.mems": f"{mems}\n",
            "cpuset.effective_mems": f"{mems}\n",
        }
    return {}


def moving(node: Node, controller: str, each: Running) -> dict[str, str]:
    """Counters of a container."""
    found = _counters(node, controller, each.account.seconds(node.now), usage.pages_of(node, each))
    if controller.endswith("/cpu,cpuacct"):
        spent = each.account.by_cpu(node.now)
        row = " ".join(str(int(spent.get(cpu.id, 0.0) * 1e9)) for cpu in node.topology.cpus)
        # The kernel ends this one with a blank before the newline.
        found["cpuacct.usage_percpu"] = f"{row} \n"
    return found


def service_files(node: Node, controller: str, service: Service) -> dict[str, str]:
    """Everything of a service's group."""
    online, mems = node.topology.online, CpuSet(node.spec.machine.with_memory)
    pages = {service.home: service.memory // node.spec.machine.page_size}
    moving = _counters(node, controller, service.account.seconds(node.now), pages)
    return static(controller, online, mems, NONE) | moving | {"cgroup.procs": f"{service.pid}\n"}


def _counters(node: Node, controller: str, seconds: float, pages: dict[int, int]) -> dict[str, str]:
    name = controller.removeprefix(V2).lstrip("/")
    micros = int(seconds * 1e6)
    size = node.spec.machine.page_size
    if name == "":
        return {
            "cpu.stat": f"usage_usec {micros}\nuser_usec {micros * 4 // 5}\nsystem_usec {micros - micros * 4 // 5}\n",
            "memory.current": f"{sum(pages.values()) * size}\n",
            "memory.numa_stat": _numa_stat(node, pages, size),
        }
    if name == "cpu,cpuacct":
        return {"cpuacct.usage": f"{micros * 1000}\n"}
    if name == "memory":
        return {
            "memory.usage_in_bytes": f"{sum(pages.values()) * size}\n",
            "memory.numa_stat": _numa_stat_v1(node, pages),
        }
    return {}


def _numa_stat(node: Node, pages: dict[int, int], size: int) -> str:
    ids = node.spec.machine.with_memory
    anon = {numa: usage.anonymous(count) for numa, count in pages.items()}
    rows = [
        "anon " + " ".join(f"N{i}={anon.get(i, 0) * size}" for i in ids),
        "file " + " ".join(f"N{i}={(pages.get(i, 0) - anon.get(i, 0)) * size}" for i in ids),
    ]
    return lines(rows) + _quiet_rows(ids)


@lru_cache
def _quiet_rows(ids: tuple[int, ...]) -> str:
    zeros = " ".join(f"N{i}=0" for i in ids)
    return lines(f"{name} {zeros}" for name in QUIET)


def _numa_stat_v1(node: Node, pages: dict[int, int]) -> str:
    anon = {numa: usage.anonymous(count) for numa, count in pages.items()}
    kinds: dict[str, dict[int, int]] = {
        "total": pages,
        "file": {numa: count - anon[numa] for numa, count in pages.items()},
        "anon": anon,
        "unevictable": {},
    }
    return lines(_v1_rows(node, kinds))


def _v1_rows(node: Node, kinds: dict[str, dict[int, int]]) -> Iterator[str]:
    for prefix in ("", "hierarchical_"):
        for kind, amounts in kinds.items():
            parts = " ".join(f"N{i}={amounts.get(i, 0)}" for i in node.spec.machine.with_memory)
            yield f"{prefix}{kind}={sum(amounts.values())} {parts}"
