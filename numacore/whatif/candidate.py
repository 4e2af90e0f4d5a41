"""A node as a candidate: what is known of it, as the kubelet's and Volcano's engines take it.

What is unknown and had to be assumed is said with it; a node of which too little is known cannot be judged, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

import msgspec

from numacore import allocation, kubeletstate
from numacore.cpuset import CpuSetError
from numacore.diagnosis import Reason
from numacore.facts import Facts
from numacore.hints import mask_of
from numacore.kubelet import checkpoint, cpu_manager, machine, memory_manager, node, resource, settings
from numacore.kubelet.cpu_manager import CpuState
from numacore.kubelet.device_manager import NO_IDS, Device, DeviceState
from numacore.kubelet.errors import HangError, PanicError, StartError, UnsupportedError
from numacore.kubelet.memory_state import MemoryState
from numacore.kubelet.pod import Container, Pod
from numacore.quantity import QuantityError
from numacore.topology import Topology
from numacore.volcano.topology import Cpu, Numatopology
from numacore.workload import Container as Seen
from numacore.workload import DeviceClaim

_VERSION = re.compile(r"v?1\.(\d+)")


class Room(msgspec.Struct, frozen=True):
    """What pods request of a resource against what the node may give away. `unknown`: pods whose request nobody knows, so that
    `requested` is the least that it can be."""

    requested: Fraction
    allocatable: Fraction
    unknown: int = 0


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A node that pods may be judged on. `kubelet` None = it cannot be judged, for the reason in `problem`."""

    name: str
    kubelet: node.Node | None = None
    volcano: Numatopology | None = None
    """As the resource-exporter reports it; None = there is no such object."""
    devices_known: bool = False
    """Whether every device of the node is known: then a resource of no plugin is one that the node does not have."""
    room: dict[str, Room] = {}
    """By resource, what the scheduler counts before any NUMA question; unknown resources absent."""
    assumed: tuple[Reason, ...] = ()
    problem: Reason | None = None


def of_facts(
    name: str, facts: Facts, volcano: Numatopology | None = None, seen: machine.Machine | None = None
) -> Candidate:
    """A candidate from everything known of a node. Without a Numatopology object of its own it gets the one that the
    resource-exporter would write. `seen`: its machine, from whoever made it already."""
    if problem := unjudged(facts):
        return Candidate(name=name, problem=problem)
    told = facts.kubelet
    assert told is not None
    seen = seen or machine.of_topology(facts.topology, facts.attributes)
    asked = {field: setting.value for field, setting in told.settings.items()}
    minor, assumed = minor_of(told.version)
    try:
        wanted = settings.of_configuration(asked, minor, seen.memory)
        if problem := _not_in_force(told, wanted):
            return Candidate(name=name, problem=problem)
        running = node.resume(wanted, seen, _state_of(facts, told))
    except (StartError, PanicError, HangError, UnsupportedError) as error:
        return Candidate(name=name, problem=Reason("would-not-start", {"message": str(error)}))
    except (QuantityError, CpuSetError, msgspec.ValidationError) as error:
        return Candidate(name=name, problem=Reason("settings-wrong", {"message": str(error)}))
    return Candidate(
        name=name,
        kubelet=running,
        volcano=volcano or numatopology(facts, wanted),
        devices_known=told.allocatable_devices is not None,
        room=_room(facts) | _device_room(running.state.devices),
        assumed=assumed,
    )


def unjudged(facts: Facts) -> Reason | None:
    """Why nothing can be said of a node's kubelet: too little of it is known."""
    told = facts.kubelet
    if told is None or told.present is None:
        return Reason("kubelet-unknown")
    if not told.present:
        return Reason("no-kubelet")
    if told.unread:
        return Reason("settings-unread", {"file": told.unread[0]})
    if missing := _unknown_memory(facts):
        return Reason("memory-unknown", {"numa": missing})
    return None


def _not_in_force(told: kubeletstate.Kubelet, wanted: settings.Settings) -> Reason | None:
    """Why the state files do not belong to the settings: unread, or left by a kubelet that has not been restarted since."""
    managers = (
        ("cpu", told.cpu_state, wanted.cpu_manager_policy, cpu_manager.STATIC),
        ("memory", told.memory_state, wanted.memory_manager_policy, memory_manager.STATIC),
    )
    for manager, state, policy, with_state in managers:
        if state is None and policy == with_state:
            return Reason("state-unknown", {"manager": manager})
        if state is not None and state.policy != policy:
            return Reason("policy-pending", {"manager": manager, "asked": policy, "in_force": state.policy})
    return None


def _unknown_memory(facts: Facts) -> str:
    return ", ".join(
        str(each) for each in facts.topology.numa_ids if facts.attributes.memory.get(each) is None
    )


def minor_of(version: str | None) -> tuple[int, tuple[Reason, ...]]:
    """The kubelet's minor version, and what had to be assumed for it."""
    match = _VERSION.match(version or "")
    if match is None:
        return settings.NEWEST, (Reason("version-assumed", {"version": f"1.{settings.NEWEST}"}),)
    minor = int(match[1])
    nearest = min(max(minor, settings.OLDEST), settings.NEWEST)
    if nearest != minor:
        return nearest, (Reason("version-nearest", {"version": f"1.{minor}", "nearest": f"1.{nearest}"}),)
    if minor not in settings.PROVEN:
        return minor, (Reason("version-documents", {"version": f"1.{minor}"}),)
    return minor, ()


def _state_of(facts: Facts, told: kubeletstate.Kubelet) -> node.State:
    """What the managers hold, from their state files. Entries of pods that the node no longer runs are there too, and go with
    the next admission, as in the kubelet.

    Devices where the kubelet tells all that it has. Where it does not, only those in use are known, and there are none here: every pod
    that asks for one would be refused. Resources that no plugin offers are nothing to the managers; whoever shows a verdict says so.
    """
    cpu, memory = told.cpu_state, told.memory_state
    return node.State(
        cpu=checkpoint.of_cpu_report(cpu) if cpu else CpuState(),
        memory=checkpoint.of_memory_report(memory) if memory else MemoryState(),
        devices=_devices(facts, told.allocatable_devices),
        pods=_pods(facts, cpu, memory),
    )


def _devices(facts: Facts, all_devices: tuple[DeviceClaim, ...] | None) -> DeviceState:
    """All devices by resource, and who holds which."""
    state = DeviceState()
    if all_devices is None:
        return state
    report: dict[str, list[Device]] = {}
    for claim in all_devices:
        report.setdefault(claim.resource, []).extend(Device(each, claim.numa) for each in claim.ids)
    state.register({name: tuple(devices) for name, devices in report.items()})
    for container in facts.containers:
        for claim in container.devices:
            if claim.resource in state.registered:
                state.hold(_holder(container), container.name or "", claim.resource, frozenset(claim.ids))
                state.allocated[claim.resource] = state.allocated.get(claim.resource, NO_IDS) | set(claim.ids)
    return state


def _holder(container: Seen) -> str:
    """The pod's uid; of one that only the kubelet's socket knows, what it is called by."""
    return container.pod_uid or container.id


def _pods(
    facts: Facts,
    cpu: kubeletstate.CpuManagerState | None,
    memory: kubeletstate.MemoryManagerState | None,
) -> dict[str, Pod]:
    """Running pods, by the containers that they are known to have: what they hold is theirs."""
    names: dict[str, set[str]] = {}
    for container in facts.containers:
        if container.pod_uid or container.devices:
            names.setdefault(_holder(container), set()).update([container.name] if container.name else [])
    entries: list[Mapping[str, Mapping[str, object]]] = [each.entries for each in (cpu, memory) if each]
    for each in entries:
        for uid in each.keys() & names.keys():
            names[uid].update(each[uid])
    return {
        uid: Pod(uid, tuple(Container(name) for name in sorted(found)))
        for uid, found in sorted(names.items())
    }


def numatopology(facts: Facts, wanted: settings.Settings) -> Numatopology:
    """The object that Volcano's resource-exporter would write of this node: raw core ids, every CPU that no container owns,
    and the amount of CPU that kubeReserved and systemReserved name (resource-exporter, pkg/numatopo)."""
    owned = mask_of(
        cpu
        for pod in (
            facts.kubelet.cpu_state.entries.values() if facts.kubelet and facts.kubelet.cpu_state else ()
        )
        for cpus in pod.values()
        for cpu in cpus
    )
    online = facts.topology.online
    return Numatopology(
        cpu_manager=wanted.cpu_manager_policy,
        topology_manager=wanted.topology_manager_policy,
        cpus=_raw_cpus(_Known(facts.topology)),
        allocatable=online - type(online).of_bits(owned),
        reserved=_reserved_amount(facts),
    )


class _Known:
    """A topology that is told apart by its hash, which it keeps: its 384 CPUs are not compared each time."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    def __hash__(self) -> int:
        return hash(self.topology.hash)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.topology.hash == other.topology.hash


@lru_cache(maxsize=64)
def _raw_cpus(known: _Known) -> dict[int, Cpu]:
    """Where each online CPU lies, as the resource-exporter writes it; equal machines share one table."""
    return {
        each.id: Cpu(each.numa, each.socket or 0, each.core or 0)
        for each in known.topology.cpus
        if each.numa is not None and each.online
    }


def _reserved_amount(facts: Facts) -> Fraction | None:
    """kubeReserved + systemReserved; reservedSystemCPUs is not read there."""
    told = facts.kubelet
    tables = [told.settings.get(field) for field in ("kubeReserved", "systemReserved")] if told else []
    amounts = [table.value.get("cpu") for table in tables if table and isinstance(table.value, dict)]
    return sum((resource.parse(str(each)).amount for each in amounts if each is not None), Fraction(0))


def _room(facts: Facts) -> dict[str, Room]:
    found = {}
    for name, allocated in (
        (resource.CPU, allocation.cpu(facts)),
        (resource.MEMORY, allocation.memory(facts)),
    ):
        if allocated is not None and allocated.allocatable is not None:
            found[name] = Room(
                Fraction(allocated.requested).limit_denominator(1000),
                Fraction(allocated.allocatable).limit_denominator(1000),
                allocated.unknown,
            )
    return found


def _device_room(state: DeviceState) -> dict[str, Room]:
    """What the scheduler counts of devices."""
    return {
        name: Room(Fraction(len(state.allocated.get(name, NO_IDS))), Fraction(len(devices)))
        for name, devices in state.registered.items()
    }
