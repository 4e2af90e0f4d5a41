"""What custom resources say of a node's NUMA nodes, as facts in our names: values alone, unknown ones left out.

A fact by name: `topology_policy`, `topology_scope`, `cpu_policy` (the kubelet's words), `reserved_cpus` (amount), `cpus` (list by NUMA
node), `free_cpus` (list of CPUs that nobody owns, reserved ones included), `cpu_capacity`, `cpu_allocatable`, `cpu_available` (amounts by NUMA node),
`memory_capacity`, `memory_available` (bytes by NUMA node), `distances` (by two NUMA nodes).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from monitoring.kube import objects
from monitoring.services.watching.rows import amount
from numacore import quantity
from numacore.cpuset import CpuSet

Facts = dict[str, Any]
ZONE = re.compile(r"node-(\d{1,6})")
SCOPES = {"ContainerLevel": "container", "PodLevel": "pod"}
POLICIES = {
    "SingleNUMANode": "single-numa-node",
    "Restricted": "restricted",
    "BestEffort": "best-effort",
    "None": "none",
}


def numatopology(told: objects.Numatopology) -> Facts:
    """Volcano's resource-exporter 1.15 and 1.16, which reads the kubelet's main file and its CPU state."""
    spec = told.spec
    cpus: defaultdict[int, list[int]] = defaultdict(list)
    for cpu, place in spec.cpu_detail.items():
        if cpu.isdecimal():
            cpus[place.numa].append(int(cpu))
    found: Facts = {
        "topology_policy": spec.policies.get("TopologyManagerPolicy"),
        "cpu_policy": spec.policies.get("CPUManagerPolicy"),
        "reserved_cpus": _amount(spec.res_reserved.get("cpu")),
        "cpus": {str(numa): str(CpuSet(found)) for numa, found in sorted(cpus.items())},
        "free_cpus": spec.numares["cpu"].allocatable if "cpu" in spec.numares else None,
        "pods": None if spec.pod_allocations is None else len(spec.pod_allocations),
    }
    return _known(found)


def resource_topology(told: objects.NodeResourceTopology) -> Facts:
    """NodeResourceTopology of either version; only its zones that are NUMA nodes."""
    said = {each.name: each.value for each in told.attributes}
    policy, scope = _combined(told.topology_policies)
    zones = {number: zone for zone in told.zones if (number := _number(zone.name)) is not None}
    found: Facts = {
        "topology_policy": said.get("topologyManagerPolicy") or policy,
        "topology_scope": said.get("topologyManagerScope") or scope,
        "distances": {
            str(number): {str(other): cost for other, cost in _costs(zone)} for number, zone in zones.items()
        },
    }
    for name in ("cpu", "memory"):
        for side in ("capacity", "allocatable", "available"):
            found[f"{name}_{side}"] = _by_zone(zones.items(), name, side)
    return _known(found)


def _combined(policies: Iterable[str]) -> tuple[str | None, str | None]:
    """v1alpha1's words, for instance `SingleNUMANodePodLevel`: policy and scope in one."""
    for said in policies:
        for end, scope in SCOPES.items():
            if said.endswith(end) and said.removesuffix(end) in POLICIES:
                return POLICIES[said.removesuffix(end)], scope
        if said in POLICIES:
            return POLICIES[said], None
    return None, None


def _number(zone: str) -> int | None:
    found = ZONE.fullmatch(zone)
    return int(found[1]) if found else None


def _costs(zone: objects.Zone) -> Iterable[tuple[int, int]]:
    for cost in zone.costs:
        if (other := _number(cost.name)) is not None:
            yield other, cost.value


def _by_zone(zones: Iterable[tuple[int, objects.Zone]], name: str, side: str) -> dict[str, float]:
    found = {}
    for number, zone in zones:
        told = next((each for each in zone.resources if each.name == name), None)
        value = None if told is None else _amount(getattr(told, side))
        if value is not None:
            found[str(number)] = value
    return found


def _amount(said: objects.Amount | None) -> float | None:
    """None = not said, or no quantity."""
    if said is None:
        return None
    try:
        return float(amount(str(said)))
    except quantity.QuantityError:
        return None


def _known(found: Facts) -> Facts:
    return {name: value for name, value in found.items() if value not in (None, "", {})}
