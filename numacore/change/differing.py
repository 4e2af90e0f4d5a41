"""How a kubelet's settings differ from a wish, without the machine: cheap enough to be asked of every node of a cluster at once.

The rules are those of `asking`, which makes the change; here nothing is tried, so a difference tells that there is something to do and not
that it can be done. Topology policy and scope and the two managers' policies are left to whoever knows what is in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from numacore.change import spreading
from numacore.change.wish import CPU_OPTIONS, Wish, milli
from numacore.cpuset import CpuSet
from numacore.kubelet import cpu_manager, memory_manager, options, resource, topology_manager
from numacore.kubelet.checks import quantities

TOPOLOGY_OPTIONS, CPU_OPTIONS_FIELD = "topologyManagerPolicyOptions", "cpuManagerPolicyOptions"
RESERVED_CPUS, RESERVED_MEMORY = "reservedSystemCPUs", "reservedMemory"
SYSTEM, KUBE = "systemReserved", "kubeReserved"
_ON = ("1", "t", "T", "TRUE", "true", "True")


class Difference(msgspec.Struct, frozen=True):
    """A setting that is not as wanted, in the words of KubeletConfiguration; a member of a map as `field.member`. `is_now` "" = nothing
    is said there."""

    field: str
    is_now: str
    wanted: str


def differences(wish: Wish, settings: Mapping[str, Any], numa_nodes: int | None) -> tuple[Difference, ...]:
    """`settings`: fields as asked for; what is not there has its default. `numa_nodes`: of the machine, None = unknown."""
    return (
        *_topology_options(wish, settings),
        *_cpu_options(wish, settings),
        *_reserved_cpus(wish, settings),
        *_reserved_memory(wish, settings, numa_nodes),
    )


def _topology_options(wish: Wish, settings: Mapping[str, Any]) -> Iterator[Difference]:
    given = _map(settings, TOPOLOGY_OPTIONS)
    if wish.prefer_closest is not None:
        yield from _switch(TOPOLOGY_OPTIONS, options.PREFER_CLOSEST, given, on=wish.prefer_closest)
    if wish.max_allowable_numa_nodes is not None:
        name, wanted = options.MAX_ALLOWABLE_NODES, str(wish.max_allowable_numa_nodes)
        if str(given.get(name, "")) != wanted:
            yield Difference(f"{TOPOLOGY_OPTIONS}.{name}", str(given.get(name, "")), wanted)


def _cpu_options(wish: Wish, settings: Mapping[str, Any]) -> Iterator[Difference]:
    given = _map(settings, CPU_OPTIONS_FIELD)
    if cpu_policy(wish, settings) != cpu_manager.STATIC:
        for name in sorted(given) if wish.cpu_policy else ():
            yield Difference(f"{CPU_OPTIONS_FIELD}.{name}", str(given[name]), "")
        return
    for name in CPU_OPTIONS:
        if name in wish.cpu_options:
            yield from _switch(CPU_OPTIONS_FIELD, name, given, on=wish.cpu_options[name])


def _switch(field: str, name: str, given: Mapping[str, Any], *, on: bool) -> Iterator[Difference]:
    if (str(given.get(name)) in _ON) != on:
        yield Difference(f"{field}.{name}", str(given.get(name, "")), "true" if on else "")


def cpu_policy(wish: Wish, settings: Mapping[str, Any]) -> str:
    """The CPU manager's policy as it is to be: a topology policy other than none brings the static one."""
    if wish.cpu_policy:
        return wish.cpu_policy
    if wish.topology_policy not in (None, topology_manager.NONE):
        return cpu_manager.STATIC
    return str(settings.get("cpuManagerPolicy") or cpu_manager.NONE)


def _reserved_cpus(wish: Wish, settings: Mapping[str, Any]) -> Iterator[Difference]:
    """Nothing that is reserved is taken away, so more than was wished for is no difference."""
    stands = str(settings.get(RESERVED_CPUS) or "")
    listed = _cpus(stands)
    if wish.reserved_cpus:
        wanted = _cpus(wish.reserved_cpus) or CpuSet()
        if listed is None or not wanted <= listed:
            yield Difference(RESERVED_CPUS, stands, str((listed or CpuSet()) | wanted))
        return
    if cpu_policy(wish, settings) == cpu_manager.STATIC and not listed:
        yield from _amounts(wish, settings)


def _amounts(wish: Wish, settings: Mapping[str, Any]) -> Iterator[Difference]:
    wanted = {SYSTEM: wish.system_reserved_cpu, KUBE: wish.kube_reserved_cpu}
    have = {field: milli(_map(settings, field).get(resource.CPU, "0")) for field in wanted}
    need = {field: milli(text) for field, text in wanted.items()}
    if sum(have.values()) >= sum(need.values()):
        return
    for field, text in wanted.items():
        if need[field] > have[field]:
            is_now = str(_map(settings, field).get(resource.CPU, ""))
            yield Difference(f"{field}.{resource.CPU}", is_now, text)


def _reserved_memory(wish: Wish, settings: Mapping[str, Any], numa_nodes: int | None) -> Iterator[Difference]:
    """Where it lies. That its sum is right the kubelet itself sees to: it would not have started otherwise."""
    policy = wish.memory_policy or str(settings.get("memoryManagerPolicy") or memory_manager.NONE)
    if policy != memory_manager.STATIC:
        return
    stands = settings.get(RESERVED_MEMORY) or []
    found = _by_numa(stands)
    how = wish.reserved_memory
    if how is None:
        right = bool(stands)
    elif how == "first":
        right = found is not None and len(found) == 1
    elif isinstance(how, str):
        right = bool(found) and (numa_nodes in (None, 1) or len(found or ()) > 1)
    else:
        right = found is not None and _as_named(found, how)
    if not right:
        yield Difference(RESERVED_MEMORY, _told(found), _wanted(wish.reserved_memory))


def _as_named(found: Mapping[int, int], named: Mapping[int, int]) -> bool:
    """What is less than one Mi lies on the first of them (`spreading`)."""
    rests = {numa: found.get(numa, 0) - size * spreading.MIB for numa, size in named.items()}
    first = min(named)
    same = all(rest == 0 for numa, rest in rests.items() if numa != first)
    return found.keys() == named.keys() and same and 0 <= rests[first] < spreading.MIB


def _by_numa(stands: Any) -> dict[int, int] | None:
    try:
        return spreading.amounts(stands)
    except (AttributeError, TypeError, ValueError):
        return None


def _told(found: Mapping[int, int] | None) -> str:
    return ", ".join(f"{numa}: {spreading.text(size)}" for numa, size in (found or {}).items())


def _wanted(how: str | Mapping[int, int] | None) -> str:
    if isinstance(how, str) or how is None:
        return how or "even"
    return ", ".join(f"{numa}: {size}Mi" for numa, size in sorted(how.items()))


def _map(settings: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = settings.get(field)
    return value if isinstance(value, dict) else {}


def _cpus(text: str) -> CpuSet | None:
    """None = nothing is listed, or what no kubelet would take."""
    return quantities.cpus(text) if text and not quantities.cpus_fault(text) else None
