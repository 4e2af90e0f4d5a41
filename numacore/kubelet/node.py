"""A node's kubelet: start it, admit pods, let pods go. Every step gives a new node; the old one stays as it was.

Wired as in kubelet 1.37, cm/container_manager_linux.go: the topology manager asks device, CPU and memory manager, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

import msgspec

from numacore.cpuset import CpuSet
from numacore.hints import Hint
from numacore.kubelet import cpu_manager, errors, memory_manager, topology_manager
from numacore.kubelet.checkpoint import restore_cpu, restore_memory, write_cpu, write_memory
from numacore.kubelet.choices import Choices
from numacore.kubelet.cpu_manager import CpuState
from numacore.kubelet.device_manager import Device, DeviceManager, DeviceState
from numacore.kubelet.errors import (
    AdmissionError,
    AllocationError,
    EndError,
    HangError,
    PanicError,
    UnsupportedError,
)
from numacore.kubelet.machine import Machine
from numacore.kubelet.memory_state import MemoryState
from numacore.kubelet.offers import Offer
from numacore.kubelet.pod import Container, Demand, Pod, demand
from numacore.kubelet.settings import Settings
from numacore.kubelet.topology_manager import MOST_NODES, TopologyPolicy
from numacore.kubelet.verdict import Alignment, Failure, HeldDevices, Outcome, Placement, Provider, Verdict

_NO_AFFINITY = Hint(None, False)
_Held = TypeVar("_Held", CpuState, MemoryState, contravariant=True)


class State(msgspec.Struct, frozen=True):
    """What the managers hold, and the pods that the kubelet knows. What gone pods held stays until the next admission."""

    cpu: CpuState
    memory: MemoryState
    devices: DeviceState
    pods: dict[str, Pod] = {}


class Node(msgspec.Struct, frozen=True):
    """A running kubelet. A policy is None where a manager does nothing."""

    settings: Settings
    machine: Machine
    topology: TopologyPolicy | None
    cpu: cpu_manager.StaticPolicy | None
    memory: memory_manager.StaticPolicy | None
    devices: DeviceManager
    state: State

    @property
    def whole_pods(self) -> bool:
        """Whether the managers handle pod-level resources."""
        return _manages_whole_pods(self.settings)


def _manages_whole_pods(settings: Settings) -> bool:
    return settings.enabled("PodLevelResourceManagers")


class StateFiles(msgspec.Struct, frozen=True):
    """Texts of `cpu_manager_state` and `memory_manager_state`; None = the file is not there."""

    cpu: str | None = None
    memory: str | None = None


def empty_state() -> State:
    """The state of a node without state files."""
    return State(CpuState(), MemoryState(), DeviceState())


def start(
    settings: Settings,
    machine: Machine,
    state: State | None = None,
    files: StateFiles | None = None,
    choices: Choices | None = None,
) -> Node:
    """Starts a kubelet: on a state, or on the state files that it finds (the state's pods and devices stay), or on nothing.

    The CPU manager's first reconciliation follows at once: CPUs of pods that are gone are free again.

    Raises:
        StartError: it refuses, in its own words.
        PanicError, HangError: it does not survive the start.
        UnsupportedError: more NUMA nodes than can be enumerated.
        quantity.QuantityError: a reserved amount is no quantity.
    """
    running = resume(settings, machine, state or empty_state())
    held, whole_pods = running.state, running.whole_pods
    cpu = restore_cpu(files.cpu, settings) if files else held.cpu
    as_found = cpu.copied() if files and files.cpu is not None else None
    if running.cpu:
        running.cpu.validate(cpu, whole_pods)
        _forget_stale(running.cpu, cpu, held.pods, whole_pods)
    try:
        memory = restore_memory(files.memory, settings) if files else held.memory
        if running.memory:
            running.memory.validate(memory, whole_pods, choices or Choices())
    except EndError as error:
        if cpu != as_found:  # else nothing was written: the file stays, with what this kubelet does not read
            error.cpu_file = write_cpu(cpu, settings)
        raise
    return msgspec.structs.replace(running, state=msgspec.structs.replace(held, cpu=cpu, memory=memory))


def resume(settings: Settings, machine: Machine, state: State) -> Node:
    """A kubelet that runs already: its state was checked against the machine when it started, and is not again.

    Raises: as `start`, for what no kubelet could have been started with.
    """
    topology = topology_manager.policy(settings, machine)
    if len(machine.nodes) > MOST_NODES and (
        topology or settings.memory_manager_policy != memory_manager.NONE
    ):
        raise UnsupportedError(
            f"{len(machine.nodes)} NUMA nodes: the kubelet enumerates every combination and would not come to an end; "
            f"at most {MOST_NODES} can be judged"
        )
    cpu = cpu_manager.policy(settings, machine)
    memory = memory_manager.policy(settings, machine)
    kept = State(state.cpu.copied(), state.memory.copied(), state.devices.copied(), dict(state.pods))
    return Node(settings, machine, topology, cpu, memory, DeviceManager(machine, settings.minor), kept)


def state_files(node: Node) -> StateFiles:
    """The files that this kubelet leaves when it stops."""
    return StateFiles(
        write_cpu(node.state.cpu, node.settings), write_memory(node.state.memory, node.settings)
    )


def restart(
    node: Node,
    settings: Settings | None = None,
    machine: Machine | None = None,
    choices: Choices | None = None,
) -> Node:
    """Stops the kubelet and starts it again on its files, with the pods that it knows and devices registered anew, perhaps with
    other settings or on a changed machine. Raises as `start`."""
    known = State(CpuState(), MemoryState(), node.state.devices.restarted(), node.state.pods)
    return start(settings or node.settings, machine or node.machine, known, state_files(node), choices)


def report_devices(node: Node, report: dict[str, tuple[Device, ...]]) -> Node:
    """Device plugins report: every device of the resources that the report names."""
    devices = node.state.devices.copied()
    devices.register(report)
    return msgspec.structs.replace(node, state=msgspec.structs.replace(node.state, devices=devices))


def remove(node: Node, uid: str) -> Node:
    """A pod is gone. What it held is free from the next admission on, as in the kubelet (`removeStaleState`)."""
    pods = {each: pod for each, pod in node.state.pods.items() if each != uid}
    return msgspec.structs.replace(node, state=msgspec.structs.replace(node.state, pods=pods))


def admit(node: Node, pod: Pod, choices: Choices | None = None) -> tuple[Node, Verdict]:
    """Asks the kubelet to run a pod, or to go on running one after a restart. The node after it knows the pod only if it was
    admitted; of a kubelet that crashed it is what its state files keep.

    Raises:
        quantity.QuantityError: a request is no quantity.
    """
    admission = _Admission(node, pod, choices or Choices())
    return admission.judge()


def shared_pool(node: Node) -> CpuSet:
    """CPUs that no container owns; empty where the CPU manager does nothing."""
    return CpuSet.of_bits(node.state.cpu.default)


class _Admission:
    """One pod on its way through the managers: works on copies of their states."""

    def __init__(self, node: Node, pod: Pod, choices: Choices) -> None:
        self._node = node
        self._demand: Demand = demand(pod, node.settings)
        self._pod = pod
        self._choices = choices
        self._cpu = node.state.cpu.copied()
        self._memory = node.state.memory.copied()
        self._devices = node.state.devices.copied()
        self._active = node.state.pods | {pod.uid: pod}
        self._alignments: list[Alignment] = []
        self._at = Failure(None, None)

    def judge(self) -> tuple[Node, Verdict]:
        try:
            self._admit()
        except AdmissionError as error:
            return self._ended("refused", error.reason, str(error))
        except AllocationError as error:
            refusal = errors.unexpected(error)
            return self._ended("refused", refusal.reason, str(refusal))
        except PanicError as error:
            return self._ended("panics", errors.PANIC, str(error))
        except HangError as error:
            return self._ended("hangs", errors.HANG, str(error))
        return self._ended("admitted", "", "")

    def _ended(self, outcome: Outcome, reason: str, message: str) -> tuple[Node, Verdict]:
        admitted = outcome == "admitted"
        pods = self._active if admitted else {u: p for u, p in self._active.items() if u != self._pod.uid}
        state = State(self._cpu, self._memory, self._devices, pods)
        after = msgspec.structs.replace(self._node, state=state)
        verdict = Verdict(
            outcome=outcome,
            qos=self._demand.qos,
            reason=reason,
            message=message,
            placements=placements(after, self._pod),
            shared=shared_pool(after),
            alignments=tuple(self._alignments),
            failure=None if admitted else self._at,
        )
        return after, verdict

    def _admit(self) -> None:
        """`Admit` of the scopes."""
        policy = self._node.topology
        if policy is None:
            for container in self._pod.in_order():
                self._allocate(container, _NO_AFFINITY)
        elif policy.scope == topology_manager.CONTAINER:
            for container in self._pod.in_order():
                self._allocate(container, self._align(policy, container))
        else:
            affinity = self._align(policy, None)
            if self._demand.managed_as_a_whole:
                self._allocate_pod(affinity)
                return
            for container in self._pod.in_order():
                self._allocate(container, affinity)

    def _align(self, policy: TopologyPolicy, container: Container | None) -> Hint:
        """`calculateAffinity`: the hint that all providers together make of a container or the pod."""
        self._at = Failure(container.name if container else None, None)
        offers = tuple(self._offers(container))
        best, accepted = policy.merge([offer.hints for offer in offers])
        self._alignments.append(Alignment(container.name if container else None, offers, best, accepted))
        if not accepted:
            raise AdmissionError(errors.TOPOLOGY_AFFINITY, self._refusal(container))
        return best

    def _refusal(self, container: Container | None) -> str:
        if not self._demand.managed_as_a_whole:
            return "Resources cannot be allocated with Topology locality"
        if container:
            return "Pod Scope pod with pod-level resources failed admission with a container-level topology manager"
        return "Pod Scope pod with pod-level resources failed admission under pod-scope topology manager"

    def _offers(self, container: Container | None) -> Iterable[Offer]:
        node, asked = self._node, self._demand
        self._devices.forget_all_but(self._active)
        if container:
            yield from node.devices.container_hints(self._devices, self._pod, container)
        else:
            yield from node.devices.pod_hints(self._devices, self._pod)
        self._forget_stale_cpus()
        if node.cpu:
            own = (
                node.cpu.container_hints(self._cpu, asked, container)
                if container
                else node.cpu.pod_hints(self._cpu, asked)
            )
            yield from [own] if own else []
        self._forget_stale_memory()
        if node.memory:
            memory = node.memory
            yield from (
                memory.container_hints(self._memory, asked, container)
                if container
                else memory.pod_hints(self._memory, asked)
            ).values()

    def _allocate(self, container: Container, affinity: Hint) -> None:
        """`allocateAlignedResources`."""
        node = self._node
        self._reached(container, "device")
        if any(self._devices.managed(name) for name in container.limits):
            self._devices.forget_all_but(self._active)
        node.devices.allocate(self._devices, self._pod, container, affinity.mask, self._choices)
        self._reached(container, "cpu")
        self._forget_stale_cpus()
        if node.cpu:
            node.cpu.allocate(self._cpu, self._demand, container, affinity.mask)
        self._reached(container, "memory")
        self._forget_stale_memory()
        if node.memory:
            node.memory.allocate(self._memory, self._demand, container, affinity)

    def _allocate_pod(self, affinity: Hint) -> None:
        """`allocatePodAlignedResources`. The device manager does nothing here: such a pod gets none of its devices."""
        node = self._node
        self._reached(None, "cpu")
        self._forget_stale_cpus()
        if node.cpu:
            node.cpu.allocate_pod(self._cpu, self._demand, affinity.mask)
        self._reached(None, "memory")
        self._forget_stale_memory()
        if node.memory:
            node.memory.allocate_pod(self._memory, self._demand, affinity)

    def _reached(self, container: Container | None, provider: Provider) -> None:
        self._at = Failure(container.name if container else None, provider)

    def _forget_stale_cpus(self) -> None:
        if self._node.cpu:
            _forget_stale(self._node.cpu, self._cpu, self._active, self._node.whole_pods)

    def _forget_stale_memory(self) -> None:
        if self._node.memory:
            _forget_stale(self._node.memory, self._memory, self._active, self._node.whole_pods)


class _Policy(Protocol[_Held]):
    def remove(self, state: _Held, uid: str, container: str, whole_pods: bool, /) -> None: ...


def _forget_stale(policy: _Policy[_Held], state: _Held, active: Mapping[str, Pod], whole_pods: bool) -> None:
    """`removeStaleState`: takes away what containers hold that are in no active pod."""
    names = {uid: {each.name for each in pod.in_order()} for uid, pod in active.items()}
    held = [(uid, name) for uid, containers in state.assignments.items() for name in containers]
    for uid, name in held:
        if name not in names.get(uid, ()):
            policy.remove(state, uid, name, whole_pods)


def placements(node: Node, pod: Pod) -> dict[str, Placement]:
    """What a pod's containers hold, by container; containers that hold nothing are absent."""
    found: dict[str, Placement] = {}
    for container in pod.in_order():
        cpus = node.state.cpu.of(pod.uid, container.name)
        placed = Placement(
            cpus=None if cpus is None else CpuSet.of_bits(cpus),
            memory=node.state.memory.of(pod.uid, container.name) or (),
            devices=_held_devices(node, pod.uid, container.name),
        )
        if placed != Placement():
            found[container.name] = placed
    return found


def _held_devices(node: Node, uid: str, container: str) -> dict[str, HeldDevices]:
    held: dict[str, HeldDevices] = {}
    for name, devices in sorted(node.state.devices.pods.get(uid, {}).get(container, {}).items()):
        ids, numa = zip(*sorted(devices.items()), strict=True) if devices else ((), ())
        held[name] = HeldDevices(tuple(ids), tuple(numa))
    return held
