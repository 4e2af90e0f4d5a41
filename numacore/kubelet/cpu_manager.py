"""The CPU manager with its static policy (kubelet 1.37, cm/cpumanager/policy_static.go, cpu_manager.go).

Sets of CPUs are integers with a bit per CPU. A policy is fixed at start; what changes is a `CpuState`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

import msgspec

from numacore import hints
from numacore.hints import IMPOSSIBLE, Hints
from numacore.kubelet import errors, resource
from numacore.kubelet.cpu_assignment import take_packed
from numacore.kubelet.cpu_distribution import Way, take_distributed
from numacore.kubelet.cpus import CpuListError, parse, shown
from numacore.kubelet.errors import AdmissionError, AllocationError, StartError
from numacore.kubelet.machine import CpuTopology, Machine, check_masks, union
from numacore.kubelet.offers import Offer
from numacore.kubelet.options import StaticPolicyOptions, static_policy_options
from numacore.kubelet.pod import Container, Demand
from numacore.kubelet.settings import Settings

NONE = "none"
STATIC = "static"
_FIRST_TO_ALIGN_DISTRIBUTED = 37
"""Minor version whose distribution minds sockets, asks no NUMA node for more than it has, and keeps what is allocated
also where it breaks the alignment to cores."""


class CpuState(msgspec.Struct):
    """What `cpu_manager_state` holds, and what the policy remembers of the pod that it serves now."""

    default: int = 0
    """The shared pool."""
    assignments: dict[str, dict[str, int]] = {}
    pods: dict[str, int] = {}
    """CPUs of whole pods (pod-level resources)."""
    reusable: dict[str, int] = {}
    """CPUs of init containers that have ended, by pod; never more than one pod."""

    def copied(self) -> CpuState:
        """A copy that may change on its own."""
        return CpuState(self.default, dict(self.assignments), dict(self.pods), dict(self.reusable))

    def of(self, uid: str, container: str) -> int | None:
        return self.assignments.get(uid, {}).get(container)

    def assign(self, uid: str, container: str, cpus: int) -> None:
        self.assignments[uid] = self.assignments.get(uid, {}) | {container: cpus}

    def forget(self, uid: str, container: str) -> int | None:
        """Takes the entry out and returns it."""
        kept = dict(self.assignments.get(uid, {}))
        cpus = kept.pop(container, None)
        if kept:
            self.assignments[uid] = kept
        else:
            self.assignments.pop(uid, None)
        return cpus

    def siblings(self, uid: str, container: str) -> int:
        """CPUs of the pod's other containers (`getAssignedCPUsOfSiblings`)."""
        return union(cpus for name, cpus in self.assignments.get(uid, {}).items() if name != container)


class StaticPolicy(msgspec.Struct, frozen=True):
    """`staticPolicy`: who may have CPUs of his own, and which."""

    topology: CpuTopology
    options: StaticPolicyOptions
    minor: int
    reserved: int = 0
    reserved_physical: int = 0
    """Reserved CPUs with all their siblings."""

    @property
    def newest(self) -> bool:
        return self.minor >= _FIRST_TO_ALIGN_DISTRIBUTED

    def available(self, state: CpuState) -> int:
        """`GetAvailableCPUs`: the shared pool without the reserved CPUs."""
        return state.default & ~self.reserved

    # Hints

    def container_hints(self, state: CpuState, demand: Demand, container: Container) -> Offer | None:
        """`GetTopologyHints`; None = no preference."""
        requested = demand.guaranteed_cpus(container)
        if not requested or demand.skipped:
            return None
        uid = demand.pod.uid
        allocated = state.of(uid, container.name)
        if allocated is None:
            return self._offer(requested, self.available(state), state.reusable.get(uid, 0))
        return self._regenerated(requested, allocated)

    def pod_hints(self, state: CpuState, demand: Demand) -> Offer | None:
        """`GetPodTopologyHints`; None = no preference."""
        requested = demand.pod_guaranteed_cpus()
        if not requested or demand.skipped:
            return None
        if demand.managed_as_a_whole and self._empty_shared_pool(demand):
            return Offer(resource.CPU, requested, IMPOSSIBLE)
        uid = demand.pod.uid
        assigned = 0
        for container in demand.pod.in_order():
            allocated = state.of(uid, container.name)
            if allocated is None:
                continue
            if allocated.bit_count() != demand.guaranteed_cpus(container):
                return Offer(resource.CPU, requested, IMPOSSIBLE)
            assigned |= allocated
        if assigned.bit_count() == requested:
            return self._regenerated(requested, assigned)
        return self._offer(requested, self.available(state), state.reusable.get(uid, 0) | assigned)

    def _regenerated(self, requested: int, allocated: int) -> Offer:
        """What a container has already, offered again: impossible when it has another number now."""
        if allocated.bit_count() != requested:
            return Offer(resource.CPU, requested, IMPOSSIBLE)
        return self._offer(requested, allocated, 0)

    def _offer(self, requested: int, available: int, reusable: int) -> Offer:
        offered = self.generate(available, reusable, requested)
        per_numa = self.topology.in_numa
        free = {node: (cpus & (available | reusable)).bit_count() for node, cpus in per_numa.items()}
        total = {node: cpus.bit_count() for node, cpus in per_numa.items()}
        return Offer(resource.CPU, requested, offered, free, total)

    def generate(self, available: int, reusable: int, requested: int) -> Hints:
        """`generateCPUTopologyHints`: NUMA nodes with every reusable CPU and enough others.

        A CPU that is available and reusable counts twice, as in the kubelet.
        """
        in_numa = self.topology.in_numa
        nodes = tuple(in_numa)
        check_masks(nodes)
        fixed = hints.mask_of(node for node, cpus in in_numa.items() if cpus & reusable)
        missing = requested - reusable.bit_count()
        sums = hints.subset_sums((cpus & available).bit_count() for cpus in in_numa.values())
        pairs = zip(hints.subsets(nodes), sums, strict=True)
        masks = [mask for mask, free in pairs if free >= missing and mask & fixed == fixed and mask]
        return Hints(masks, self._preferred(masks, self._fewest_nodes(requested)))

    def _fewest_nodes(self, requested: int) -> int:
        """NUMA nodes that an empty machine would need: what is busy does not count."""
        sizes = sorted((cpus.bit_count() for cpus in self.topology.in_numa.values()), reverse=True)
        return next((n for n, size in enumerate(accumulate(sizes), 1) if size >= requested), len(sizes))

    def _preferred(self, masks: list[int], fewest: int) -> list[int]:
        if self.options.align_by_socket:
            return [m for m in masks if m.bit_count() == fewest or self._socket_aligned(m, fewest)]
        return [mask for mask in masks if mask.bit_count() == fewest]

    def _socket_aligned(self, mask: int, fewest: int) -> bool:
        """`isHintSocketAligned`: touches no more sockets than necessary."""
        per_socket = len(self.topology.in_numa) // self.topology.sockets
        return bool(per_socket) and len(self.topology.sockets_of(mask)) == -(-fewest // per_socket)

    # Allocation

    def allocate(self, state: CpuState, demand: Demand, container: Container, affinity: int | None) -> None:
        """`Allocate`: changes the state. Raises AdmissionError or AllocationError."""
        number = demand.guaranteed_cpus(container)
        if not number or demand.skipped:
            return
        uid = demand.pod.uid
        allocated = state.of(uid, container.name)
        if allocated is None or not self.newest:
            self._enforce_smt_alignment(state, number)
        if allocated is None:
            allocated = self._allocate_cpus(state, number, affinity, state.reusable.get(uid, 0))
            state.assign(uid, container.name, allocated)
        _update_reusable(state, demand, container, allocated)

    def _enforce_smt_alignment(self, state: CpuState, number: int) -> None:
        """`enforceSMTAlignment`: with full-pcpus-only whole cores, and enough of them."""
        if not self.options.full_pcpus_only:
            return
        per_core = self.topology.per_core
        if number % per_core:
            raise AdmissionError(
                errors.SMT_ALIGNMENT,
                f"SMT Alignment Error: requested {number} cpus not multiple cpus per core = {per_core}",
            )
        available = (state.default & ~self.reserved_physical).bit_count()
        if number > available:
            raise AdmissionError(
                errors.SMT_ALIGNMENT,
                f"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = {available}, "
                f"requested CPUs = {number}, CPUs per core = {per_core}",
            )

    def _allocate_cpus(self, state: CpuState, number: int, affinity: int | None, reusable: int) -> int:
        """`allocateCPUs`: first from the NUMA nodes of the affinity, the rest from anywhere."""
        allocatable = self.available(state) | reusable
        taken = 0
        if affinity is not None:
            aligned = self._aligned(affinity, allocatable)
            taken = self.take_by_topology(aligned, min(number, aligned.bit_count()))
        taken |= self.take_by_topology(allocatable & ~taken, number - taken.bit_count())
        state.default &= ~taken
        return taken

    def _aligned(self, affinity: int, allocatable: int) -> int:
        """`getAlignedCPUs`: with align-by-socket all of the sockets that the NUMA nodes touch."""
        if not self.options.align_by_socket:
            return allocatable & self.topology.numa_cpus(affinity)
        sockets = self.topology.sockets_of(affinity)
        return allocatable & union(self.topology.in_socket[socket] for socket in sockets)

    def take_by_topology(self, available: int, number: int) -> int:
        """`takeByTopology`. Raises AllocationError."""
        options = self.options
        if not options.distribute_across_numa:
            return take_packed(
                self.topology,
                available,
                number,
                spread=options.distribute_across_cores,
                uncore=options.prefer_align_uncore,
            )
        way = Way(
            group=self.topology.per_core if options.full_pcpus_only else 1,
            spread=options.distribute_across_cores,
            align_by_socket=options.align_by_socket and self.newest,
            capped=self.newest,
        )
        return take_distributed(self.topology, available, number, way)

    # Pods that ask as a whole

    def allocate_pod(self, state: CpuState, demand: Demand, affinity: int | None) -> None:
        """`AllocatePod`: CPUs for the pod, then parted among its containers (KEP-5526)."""
        number = demand.pod_guaranteed_cpus()
        if not number:
            return
        if fault := self._empty_shared_pool(demand):
            raise AdmissionError(errors.EMPTY_POD_SHARED_POOL, fault)
        self._enforce_smt_alignment(state, number)
        uid = demand.pod.uid
        bubble = self._allocate_cpus(state, number, affinity, 0)
        state.pods[uid] = bubble
        own = self._own_slices(demand, bubble)
        shared = bubble & ~union(own[each.name] for each in _long_running(demand) if each.name in own)
        for container in demand.pod.in_order():
            state.assign(uid, container.name, own.get(container.name, shared))

    def _own_slices(self, demand: Demand, bubble: int) -> dict[str, int]:
        """CPUs by container of those that do not simply share what is left of the pod's."""
        own: dict[str, int] = {}
        left = bubble
        for container in demand.pod.init:
            number = demand.guaranteed_cpus(container)
            if number:
                own[container.name] = self.take_by_topology(left, number)
            elif not container.sidecar:
                own[container.name] = left
            if number and container.sidecar:
                left &= ~own[container.name]
        for container in demand.pod.containers:
            if number := demand.guaranteed_cpus(container):
                own[container.name] = self.take_by_topology(left, number)
                left &= ~own[container.name]
        return own

    def _empty_shared_pool(self, demand: Demand) -> str | None:
        """`validatePodScopeResources`: why containers without CPUs of their own would have none at all."""
        total = demand.pod_guaranteed_cpus()
        taken = 0
        sharing = False
        for container in demand.pod.init:
            number = demand.guaranteed_cpus(container)
            if container.sidecar:
                taken += number
                sharing = sharing or not number
            elif not number and taken >= total:
                return "pod rejected, pod has shared init containers but no cpus available for them"
        for container in demand.pod.containers:
            number = demand.guaranteed_cpus(container)
            taken += number
            sharing = sharing or not number
        if sharing and taken >= total:
            return (
                "pod rejected, sum of exclusive container cpu requests equals pod budget, "
                "leaving no cpus for shared containers"
            )
        return None

    def remove(self, state: CpuState, uid: str, container: str, whole_pods: bool) -> None:
        """`RemoveContainer`: gives back what no other container of the pod uses."""
        cpus = state.forget(uid, container)
        if cpus is None:
            return
        if whole_pods and uid in state.pods:
            if uid not in state.assignments:
                state.default |= state.pods.pop(uid)
            return
        state.default |= cpus & ~state.siblings(uid, container)

    # Start

    def validate(self, state: CpuState, whole_pods: bool) -> None:
        """`validateState`: initialises an empty state, refuses one that does not fit the machine. Raises StartError."""
        everything = self.topology.all
        strict = self.options.strict_reservation
        if strict:
            everything &= ~self.reserved
        if not state.default:
            if state.assignments:
                raise StartError("default cpuset cannot be empty")
            state.default = everything
            return
        self._validate_reserved(state.default, strict)
        overlaps = tuple(
            f'pod: {uid}, container: {name} cpuset: "{shown(cpus)}" overlaps with default cpuset "{shown(state.default)}"'
            for uid, containers in sorted(state.assignments.items())
            for name, cpus in sorted(containers.items())
            if cpus & state.default
        )
        if overlaps:
            raise StartError(overlaps[0], overlaps[1:])
        known = state.default | union(cpus for pod in state.assignments.values() for cpus in pod.values())
        if whole_pods:
            known |= union(state.pods.values())
        if known != everything:
            raise StartError(
                f'current set of available CPUs "{shown(everything)}" doesn\'t match with CPUs in state "{shown(known)}"'
            )

    def _validate_reserved(self, default: int, strict: bool) -> None:
        if strict and self.reserved & default:
            raise StartError(
                f'some of strictly reserved cpus: "{shown(self.reserved & default)}" are present in '
                f'defaultCpuSet: "{shown(default)}"'
            )
        if not strict and self.reserved & ~default:
            raise StartError(
                f'not all reserved cpus: "{shown(self.reserved)}" are present in defaultCpuSet: "{shown(default)}"'
            )


def _long_running(demand: Demand) -> list[Container]:
    """Containers that keep their CPUs while the pod's others run, if they have own ones."""
    lasting = [each for each in demand.pod.init if each.sidecar]
    return [each for each in (*lasting, *demand.pod.containers) if demand.guaranteed_cpus(each)]


def _update_reusable(state: CpuState, demand: Demand, container: Container, cpus: int) -> None:
    """`updateCPUsToReuse`: an init container leaves its CPUs to the next ones, anything else keeps them."""
    uid = demand.pod.uid
    before = state.reusable.get(uid, 0)
    ends = any(each.name == container.name and not each.sidecar for each in demand.pod.init)
    state.reusable = {uid: before | cpus if ends else before & ~cpus}


def static_policy(settings: Settings, machine: Machine) -> StaticPolicy:
    """`NewStaticPolicy` as `NewManager` calls it. Raises StartError."""
    number = _reserved_number(settings.reservation)
    try:
        return _new_static_policy(settings, machine, number)
    except StartError as error:
        raise error.wrapped("new static policy error: ") from None


def _reserved_number(reservation: Mapping[str, str]) -> int:
    if resource.CPU not in reservation:
        raise StartError("[cpumanager] unable to determine reserved CPU resources for static policy")
    reserved = resource.parse(reservation[resource.CPU])
    if not reserved.amount:
        raise StartError(
            "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero"
        )
    return -(-reserved.milli // 1000)


def _new_static_policy(settings: Settings, machine: Machine, number: int) -> StaticPolicy:
    options = static_policy_options(settings)
    topology = machine.topology
    _validate_options(options, topology, settings.topology_manager_policy)
    policy = StaticPolicy(topology, options, settings.minor)
    reserved = _listed(settings.reserved_system_cpus) or _taken_as_reserved(policy, number)
    if reserved.bit_count() != number:
        raise StartError(
            f"[cpumanager] unable to reserve the required amount of CPUs (size of {shown(reserved)} did not equal {number})"
        )
    if unknown := reserved & ~topology.all:
        cpus = [f"unknown CPU ID: {cpu}" for cpu in hints.nodes_of(unknown)]
        fault = StartError(cpus[0], tuple(cpus[1:]))
        raise fault.wrapped("[cpumanager] unable to build the reserved physical CPUs from the reserved set: ")
    physical = union(cpus for cpus in topology.in_core.values() if cpus & reserved)
    return msgspec.structs.replace(policy, reserved=reserved, reserved_physical=physical)


def _listed(reserved: str) -> int:
    try:
        return parse(reserved)
    except CpuListError as error:
        raise StartError(str(error)) from None


def _taken_as_reserved(policy: StaticPolicy, number: int) -> int:
    """CPUs reserved by number are taken like a container's: the options decide which."""
    try:
        return policy.take_by_topology(policy.topology.all, number)
    except AllocationError:
        return 0


def _validate_options(options: StaticPolicyOptions, topology: CpuTopology, topology_policy: str) -> None:
    """`ValidateStaticPolicyOptions` (the misspelling is the kubelet's)."""
    if not options.align_by_socket:
        return
    if topology_policy == "single-numa-node":
        raise StartError(
            "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option"
        )
    if topology.sockets > len(topology.in_numa):
        raise StartError(
            "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA"
        )


def policy(settings: Settings, machine: Machine) -> StaticPolicy | None:
    """`NewManager`: the policy, None for `none`. Raises StartError."""
    machine.topology  # noqa: B018  the manager discovers the CPUs first, and may fail on it
    if settings.cpu_manager_policy == STATIC:
        return static_policy(settings, machine)
    if settings.cpu_manager_policy != NONE:
        raise StartError(f'unknown policy: "{settings.cpu_manager_policy}"')
    if given := settings.cpu_manager_policy_options:
        listed = " ".join(f"{name}:{value}" for name, value in sorted(given.items()))
        raise StartError(f"new none policy error: None policy: received unsupported options=map[{listed}]")
    return None
