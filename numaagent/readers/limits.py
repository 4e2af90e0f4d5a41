"""Where a group may run and how much it may use, from its cgroup files of either version."""

from __future__ import annotations

import math

from numaagent.readers import groups
from numaagent.readers.cgroupnames import Group
from numaagent.readers.files import Source
from numaagent.readers.hierarchies import Hierarchies, Hierarchy
from numacore.workload import QOS, Container, Max

UNLIMITED = 1 << 60
"""Version 1 prints the largest multiple of a page for "no limit"."""
MIN_SHARES = 2
"""Smallest `cpu.shares`; the kubelet writes it for a request of nothing."""


def container(source: Source, trees: Hierarchies, group: Group) -> Container:
    """A container as its cgroup describes it; who it is comes from elsewhere."""
    cpu, memory = trees.by_controller.get("cpu"), trees.by_controller.get("memory")
    cpuset = trees.by_controller.get("cpuset")
    limit = _cpu_limit(source, cpu, group.path)
    return Container(
        id=group.id,
        cgroup=group.path,
        runtime=group.runtime,
        pod_uid=group.pod_uid,
        name=group.name,
        kubernetes=group.kubernetes,
        qos=group.qos,
        cpus=groups.nearest(source, cpuset, group.path, "cpus"),
        mems=groups.nearest(source, cpuset, group.path, "mems"),
        cpu_limit=limit,
        cpu_request=_cpu_request(source, cpu, group.path, group.qos, limit),
        memory_limit=_memory_limit(source, memory, group.path),
    )


def _cpu_limit(source: Source, tree: Hierarchy | None, path: str) -> float | Max | None:
    if tree is None:
        return None
    if tree.version == 2:
        quota, _, period = (source.text(f"{tree.path}{path}/cpu.max") or "").partition(" ")
    else:
        quota = source.text(f"{tree.path}{path}/cpu.cfs_quota_us") or ""
        period = source.text(f"{tree.path}{path}/cpu.cfs_period_us") or ""
    if quota in ("max", "-1"):
        return "max"
    if quota.isdecimal() and period.isdecimal() and int(period) > 0:
        return int(quota) / int(period)
    return None


def _cpu_request(
    source: Source, tree: Hierarchy | None, path: str, qos: QOS | None, limit: float | Max | None
) -> float | None:
    """Only where it is exact: weights of version 2 are rounded and do not lead back to the request."""
    if qos is None or tree is None:
        return None
    if qos == "BestEffort":
        return 0.0
    if tree.version == 1:
        shares = source.number(f"{tree.path}{path}/cpu.shares")
        return None if shares is None else _of_shares(shares)
    return limit if qos == "Guaranteed" and isinstance(limit, float) else None


def _of_shares(shares: int) -> float:
    """The kubelet writes floor(millicores x 1024 / 1000) (cm/helpers_linux.go); this is its inverse."""
    return 0.0 if shares <= MIN_SHARES else math.ceil(shares * 1000 / 1024) / 1000


def _memory_limit(source: Source, tree: Hierarchy | None, path: str) -> int | Max | None:
    if tree is None:
        return None
    name = "memory.max" if tree.version == 2 else "memory.limit_in_bytes"
    text = source.text(f"{tree.path}{path}/{name}")
    if text == "max" or (text and text.isdecimal() and int(text) >= UNLIMITED):
        return "max"
    return int(text) if text and text.isdecimal() else None
