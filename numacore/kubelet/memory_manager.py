"""The memory manager with its Static policy (kubelet 1.37, cm/memorymanager/policy_static.go, memory_manager.go).

Amounts are bytes and wrap around at 2 to the power of 64, as Go's uint64 does. A policy is fixed at start; what changes is a
`MemoryState`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from numacore import hints
from numacore.hints import IMPOSSIBLE, Hint, Hints
from numacore.kubelet import errors, memory_pods, memory_start, resource
from numacore.kubelet.choices import Choices
from numacore.kubelet.errors import AdmissionError, AllocationError, PanicError, StartError
from numacore.kubelet.machine import Machine, Node, check_masks
from numacore.kubelet.memory_state import Blocks, MemoryState, MemoryTable, NodeState, Requested
from numacore.kubelet.offers import Offer
from numacore.kubelet.pod import Container, Demand
from numacore.kubelet.resource import UINT64
from numacore.kubelet.settings import Settings
from numacore.workload import MemoryBlock

NONE = "None"
STATIC = "Static"

_FIRST_TO_SKIP_WITHOUT_MEMORY = 37
"""Minor version that allocates nothing for a container without memory; before it such a container was refused without a NUMA
affinity, and held no blocks with one."""


class StaticPolicy(msgspec.Struct, frozen=True):
    """`staticPolicy`: guaranteed memory on as few NUMA nodes as possible."""

    machine: Machine
    system_reserved: dict[int, Requested]
    minor: int

    # Hints

    def container_hints(self, state: MemoryState, demand: Demand, container: Container) -> dict[str, Offer]:
        """`GetTopologyHints`; empty = no preference."""
        requested = demand.memory(container)
        if demand.qos != "Guaranteed" or not requested or demand.skipped:
            return {}
        uid = demand.pod.uid
        blocks = state.of(uid, container.name)
        if blocks is not None:
            return regenerate(blocks, requested)
        return self._offers(state, uid, requested)

    def pod_hints(self, state: MemoryState, demand: Demand) -> dict[str, Offer]:
        """`GetPodTopologyHints`; empty = no preference. One container with memory speaks for the whole pod."""
        requested = demand.pod_memory()
        if demand.qos != "Guaranteed" or requested is None or demand.skipped:
            return {}
        if demand.managed_as_a_whole and memory_pods.empty_shared_pool(demand, requested):
            return {kind: Offer(kind, size, IMPOSSIBLE) for kind, size in requested.items()}
        if not requested:
            return {}
        uid = demand.pod.uid
        for container in demand.pod.in_order():
            blocks = state.of(uid, container.name)
            if blocks is not None:
                return regenerate(blocks, requested)
        return self._offers(state, uid, requested)

    def _offers(self, state: MemoryState, uid: str, requested: Requested) -> dict[str, Offer]:
        """No possible NUMA node at all = no preference to the topology manager; the allocation fails then."""
        offered = self.calculate_hints(state, uid, requested)
        return {
            kind: Offer(
                kind,
                size,
                offered if offered.masks else None,
                {node: each.table(kind).free for node, each in state.nodes.items()},
                {node: each.table(kind).allocatable for node, each in state.nodes.items()},
            )
            for kind, size in requested.items()
        }

    def calculate_hints(self, state: MemoryState, uid: str, requested: Requested) -> Hints:
        """`calculateHints`: the same masks for every kind of memory asked for."""
        nodes = tuple(sorted(state.nodes))
        check_masks(nodes)
        if not requested:
            return IMPOSSIBLE
        masks = hints.subsets(nodes)
        able: Sequence[int] = range(1, len(masks))
        for kind, size in requested.items():
            sums = _sums(tuple(state.nodes[node].table(kind).allocatable for node in nodes))
            able = [at for at in able if sums[at] >= size]
        sizes = hints.subset_sizes(len(nodes))
        fewest = min(map(sizes.__getitem__, able), default=len(nodes))
        able = _allowed(state, masks, able)
        offered = self._with_enough_free(state, uid, requested, able)
        return Hints([masks[at] for at in offered], [masks[at] for at in offered if sizes[at] == fewest])

    def _with_enough_free(
        self, state: MemoryState, uid: str, requested: Requested, able: Sequence[int]
    ) -> Sequence[int]:
        """Of these subsets of the NUMA nodes those with enough free memory; what the pod may use again counts as free where it lies."""
        nodes = tuple(sorted(state.nodes))
        masks = hints.subsets(nodes)
        free = {
            kind: _sums(tuple(state.nodes[node].table(kind).free for node in nodes)) for kind in requested
        }
        again = {mask for mask, _ in state.reusable.get(uid, {})}
        extra = {
            at
            for at in (able if again else ())
            if masks[at] in again
            and all(
                free[kind][at] + state.reuse(uid, masks[at], kind) >= size for kind, size in requested.items()
            )
        }
        found = able
        for kind, size in requested.items():
            sums = free[kind]
            found = [at for at in found if sums[at] >= size]
        return sorted(extra.union(found)) if extra else found

    # Allocation

    def allocate(self, state: MemoryState, demand: Demand, container: Container, affinity: Hint) -> None:
        """`Allocate`: changes the state. Raises AllocationError; PanicError where the kubelet dies."""
        if demand.qos != "Guaranteed" or demand.skipped:
            return
        requested = demand.memory(container)
        if requested is None:
            raise AllocationError(memory_pods.NO_QUANTITY)
        if not requested and self.minor >= _FIRST_TO_SKIP_WITHOUT_MEMORY:
            return
        uid = demand.pod.uid
        blocks = state.of(uid, container.name)
        if blocks is not None:
            _update_reusable(state, demand, container, blocks)
            return
        mask = self._best_mask(state, uid, requested, affinity)
        blocks = tuple(
            MemoryBlock(kind, size, tuple(hints.nodes_of(mask))) for kind, size in requested.items()
        )
        for kind, size in requested.items():
            state.charge(mask, kind, max(0, size - state.reuse(uid, mask, kind)))
        _update_reusable(state, demand, container, blocks)
        state.assign(uid, container.name, blocks)
        _shrink_init_blocks(state, demand, container, blocks)

    def _best_mask(self, state: MemoryState, uid: str, requested: Requested, affinity: Hint) -> int:
        """The affinity, or the default one, extended to what the request needs."""
        best = affinity
        if best.mask is None:
            best = self._default_hint(state, uid, requested)
            if affinity.preferred and not best.preferred:
                raise AllocationError("[memorymanager] failed to find the default preferred hint")
        if best.mask is None:  # the kubelet takes the best of no hint at all, and follows it
            raise PanicError(errors.NIL_POINTER)
        if not _satisfies(state, best.mask, requested):
            extended = self._extended(state, uid, requested, best.mask)
            if best.preferred and not extended.preferred:
                raise AllocationError("[memorymanager] failed to find the extended preferred hint")
            best = extended
        if best.mask is None or _violates(state, best.mask):
            raise AllocationError("[memorymanager] preferred hint violates NUMA node allocation")
        return best.mask

    def _default_hint(self, state: MemoryState, uid: str, requested: Requested) -> Hint:
        """`getDefaultHint`."""
        offered = self.calculate_hints(state, uid, requested)
        if not offered.masks or not requested:
            raise AllocationError(
                "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"
            )
        return _best_hint(offered, offered.masks if resource.MEMORY in requested else ())

    def _extended(self, state: MemoryState, uid: str, requested: Requested, mask: int) -> Hint:
        """`extendTopologyManagerHint`: the best of the hints that include the mask."""
        offered = self.calculate_hints(state, uid, requested)
        including = [each for each in offered.masks if each & mask == mask and resource.MEMORY in requested]
        if not including:
            raise AllocationError(
                "[memorymanager] failed to find NUMA nodes to extend the current topology hint"
            )
        return _best_hint(offered, including)

    # Pods that ask as a whole

    def allocate_pod(self, state: MemoryState, demand: Demand, affinity: Hint) -> None:
        """`AllocatePod`: memory for the pod; its containers bind to the same NUMA nodes (KEP-5526)."""
        requested = demand.pod_memory()
        if demand.qos != "Guaranteed" or requested is None:
            return
        if fault := memory_pods.empty_shared_pool(demand, requested):
            raise AdmissionError(errors.EMPTY_POD_SHARED_POOL, fault)
        uid = demand.pod.uid
        mask = self._best_mask(state, uid, requested, affinity)
        own, shared = memory_pods.slices(demand, requested)
        numa = tuple(hints.nodes_of(mask))
        state.pods[uid] = _blocks(numa, requested)
        for kind, size in requested.items():
            state.charge(mask, kind, size)
        for container in demand.pod.in_order():
            state.assign(uid, container.name, _blocks(numa, own.get(container.name, shared)))

    def remove(self, state: MemoryState, uid: str, container: str, whole_pods: bool) -> None:
        """`RemoveContainer`."""
        if whole_pods and uid in state.pods:
            state.forget(uid, container)
            if uid not in state.assignments:
                state.release(state.pods.pop(uid))
            return
        blocks = state.forget(uid, container)
        if blocks is not None:
            state.release(blocks)

    # Start

    def default_machine_state(self) -> dict[int, NodeState]:
        """`getDefaultMachineState`: everything free."""
        return {node.id: self._default_node(node) for node in self.machine.nodes}

    def _default_node(self, node: Node) -> NodeState:
        reserved = self.system_reserved.get(node.id, {})
        memory: dict[str, MemoryTable] = {}
        pages = 0
        for page_size, number in node.hugepages.items():
            kind = resource.huge_page_resource(page_size * 1024)
            total = number * page_size * 1024
            memory[kind] = memory_start.unused(total, reserved.get(kind, 0), 0)
            pages += total
        memory[resource.MEMORY] = memory_start.unused(node.memory, reserved.get(resource.MEMORY, 0), pages)
        return NodeState(0, memory, (node.id,))

    def validate(self, state: MemoryState, whole_pods: bool, choices: Choices) -> None:
        """`validateState`: initialises an empty state, refuses one that does not fit the machine. Where groups overlap it may be
        chance whether it fits. Raises StartError."""
        if not state.nodes:
            if state.assignments:
                raise StartError(
                    "[memorymanager] machine state can not be empty when it has memory assignments"
                )
            state.nodes = self.default_machine_state()
            return
        expected = self.expected(state, whole_pods)
        fits = list(dict.fromkeys(not memory_start.differences(state.nodes, each) for each in expected))
        if memory_start.compares_what_is_not_there(state.nodes):
            raise PanicError(errors.NIL_POINTER)
        if not fits[choices.pick(len(fits))]:
            raise StartError("[memorymanager] the expected machine state is different from the real one")

    def expected(self, state: MemoryState, whole_pods: bool) -> Iterator[dict[int, NodeState]]:
        """What the machine may look like with everything that is assigned. Raises StartError: an assignment has no place on it."""
        return memory_start.expectations(self.default_machine_state(), state, whole_pods)


@lru_cache(maxsize=16)
def _sums(amounts: tuple[int, ...]) -> Sequence[int]:
    """Sums over all subsets of NUMA nodes, as uint64. Hints and allocation ask for the same ones soon after each other."""
    sums = hints.subset_sums(amounts)
    return sums if sums[-1] <= UINT64 else [each & UINT64 for each in sums]


def _allowed(state: MemoryState, masks: Sequence[int], able: Sequence[int]) -> Sequence[int]:
    """Subsets that respect what is in use: a node of a group serves nothing alone, a node in use no other group."""
    grouped = hints.mask_of(node for node, each in state.nodes.items() if len(each.cells) > 1)
    used = hints.mask_of(node for node, each in state.nodes.items() if each.assignments > 0)
    if not grouped | used:
        return able
    groups = {
        mask
        for mask in {hints.mask_of(each.cells) for each in state.nodes.values() if len(each.cells) > 1}
        if not _violates(state, mask)
    }
    alone = {1 << node for node in state.nodes if not grouped >> node & 1}
    single = {1 << node for node in state.nodes}
    return [
        at
        for at in able
        if (masks[at] in alone or (masks[at] not in single and (not masks[at] & used or masks[at] in groups)))
    ]


def _violates(state: MemoryState, mask: int) -> bool:
    """`isAffinityViolatingNUMAAllocations`: several nodes, one of them in use alone or in another group."""
    group = hints.nodes_of(mask)
    if len(group) == 1:
        return False
    return any(
        state.nodes[node].assignments > 0
        and (len(state.nodes[node].cells) == 1 or sorted(state.nodes[node].cells) != group)
        for node in group
    )


def _satisfies(state: MemoryState, mask: int, requested: Requested) -> bool:
    """`isAffinitySatisfyRequest`: by what is free alone."""
    nodes = [state.nodes[node] for node in hints.nodes_of(mask)]
    free = {kind: sum(node.table(kind).free for node in nodes) & UINT64 for kind in requested}
    return all(free[kind] >= size for kind, size in requested.items())


def _best_hint(offered: Hints, masks: Iterable[int]) -> Hint:
    """`findBestHint`: preferred ones first, then the narrowest; of none an empty hint."""
    preferred = set(offered.preferred)
    best = min(masks, key=lambda mask: (mask not in preferred, hints.narrowest(mask)), default=None)
    return Hint(best, best in preferred)


def regenerate(blocks: Blocks, requested: Requested) -> dict[str, Offer]:
    """`regenerateHints`: what is allocated already, as preferred hints; a mismatch gives none at all, which the topology
    manager takes for no preference."""
    if len(blocks) != len(requested) or any(requested.get(block.kind) != block.size for block in blocks):
        return {}
    found: dict[str, list[int]] = {kind: [] for kind in requested}
    for block in blocks:
        found[block.kind].append(hints.mask_of(block.numa))
    return {kind: Offer(kind, requested[kind], Hints(masks, masks)) for kind, masks in found.items()}


def _update_reusable(state: MemoryState, demand: Demand, container: Container, blocks: Blocks) -> None:
    """`updatePodReusableMemory`: an init container leaves its memory to the next ones, anything else uses it up."""
    uid = demand.pod.uid
    state.reusable = {uid: state.reusable[uid]} if uid in state.reusable else {}
    ends = any(each.name == container.name and not each.sidecar for each in demand.pod.init)
    known = dict(state.reusable.get(uid, {}))
    for block in blocks:
        key = (hints.mask_of(block.numa), block.kind)
        if ends:
            known[key] = max(known.get(key, 0), block.size)
        elif key in known:
            known[key] = max(0, known[key] - block.size)
    if ends or uid in state.reusable:
        state.reusable[uid] = known


def _shrink_init_blocks(state: MemoryState, demand: Demand, container: Container, blocks: Blocks) -> None:
    """`updateInitContainersMemoryBlocks`: what a container reuses no longer counts to the init containers before it."""
    uid = demand.pod.uid
    before: list[Container] = []
    for each in demand.pod.init:
        if each.name == container.name:
            break
        before.append(each)
    for block in blocks:
        left = block.size
        for each in before:
            if not each.sidecar and left:
                left = _shrink(state, uid, each.name, block, left)


def _shrink(state: MemoryState, uid: str, container: str, used: MemoryBlock, left: int) -> int:
    """Takes up to `left` bytes out of a container's blocks like `used`; returns what is still left."""
    shrunk: list[MemoryBlock] = []
    for block in state.of(uid, container) or ():
        taken = min(left, block.size) if (block.kind, set(block.numa)) == (used.kind, set(used.numa)) else 0
        shrunk.append(msgspec.structs.replace(block, size=block.size - taken))
        left -= taken
    if shrunk:
        state.assign(uid, container, tuple(shrunk))
    return left


def _blocks(numa: tuple[int, ...], sizes: Requested) -> Blocks:
    return tuple(MemoryBlock(kind, size, numa) for kind, size in sizes.items() if size > 0)


def policy(settings: Settings, machine: Machine) -> StaticPolicy | None:
    """`NewManager`: the policy, None for `None`. Raises StartError."""
    name = settings.memory_manager_policy
    if name == NONE:
        return None
    if name == "BestEffort":
        raise StartError('policy "BestEffort" is not available for platform "linux"')
    if name != STATIC:
        raise StartError(f'unknown policy: "{name}"')
    memory_start.validate_reserved_memory(settings, machine)
    reserved = memory_start.converted(settings, machine)
    if not sum(kinds.get(resource.MEMORY, 0) for kinds in reserved.values()) & UINT64:
        raise StartError("[memorymanager] you should specify the system reserved memory")
    return StaticPolicy(machine, reserved, settings.minor)
