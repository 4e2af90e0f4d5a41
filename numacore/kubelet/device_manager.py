"""The device manager: hints and allocation of what device plugins report (kubelet 1.37, cm/devicemanager).

A plugin here has no preference among its devices and never fails; which of several equally good devices a container gets is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from numacore import hints
from numacore.hints import IMPOSSIBLE, Hints
from numacore.kubelet import resource
from numacore.kubelet.choices import Choices
from numacore.kubelet.errors import NIL_POINTER, AllocationError, PanicError
from numacore.kubelet.machine import Machine
from numacore.kubelet.offers import Offer
from numacore.kubelet.pod import Container, Pod

_FIRST_TO_SKIP_NODES = 36
"""Minor version that makes hints only of NUMA nodes with a device of the resource."""

_MOST_WAYS = 64
"""Ways to choose among equal devices that are told apart."""


class Device(msgspec.Struct, frozen=True):
    """A device as its plugin reports it; no NUMA node = the plugin names none."""

    id: str
    numa: tuple[int, ...] = ()
    healthy: bool = True

    @property
    def mask(self) -> int:
        return hints.mask_of(self.numa)


Devices = dict[str, Device]
Ids = frozenset[str]
NO_IDS: Ids = frozenset()
Held = dict[str, tuple[int, ...]]
"""NUMA nodes of devices by id, as their plugin named them when they were allocated."""


class DeviceState(msgspec.Struct):
    """Who has which devices, and which of them the pod that is served now may use again."""

    registered: dict[str, Devices] = {}
    """By resource and id."""
    allocated: dict[str, Ids] = {}
    pods: dict[str, dict[str, dict[str, Held]]] = {}
    """By pod, container and resource."""
    reusable: dict[str, dict[str, Ids]] = {}
    written: dict[str, dict[str, dict[str, Held]]] | None = None
    """`pods` as the manager's own file has them, which is written when devices are given or reported, not when pods go. None = the same."""

    def copied(self) -> DeviceState:
        """A copy that may change on its own."""
        return DeviceState(
            dict(self.registered), dict(self.allocated), dict(self.pods), dict(self.reusable), self.written
        )

    def restarted(self) -> DeviceState:
        """What a kubelet finds in the file when it starts again, its plugins registered anew."""
        pods = dict(self.pods if self.written is None else self.written)
        return DeviceState(dict(self.registered), _held_by(pods), pods)

    def of(self, uid: str, container: str, name: str) -> Ids | None:
        held = self.pods.get(uid, {}).get(container, {}).get(name)
        return None if held is None else frozenset(held)

    def of_pod(self, uid: str, name: str) -> Ids:
        return NO_IDS.union(*(held.get(name, ()) for held in self.pods.get(uid, {}).values()))

    def healthy(self, name: str) -> Ids:
        return frozenset(each.id for each in self.registered.get(name, {}).values() if each.healthy)

    def available(self, name: str) -> Ids:
        """`getAvailableDevices`."""
        return self.healthy(name) - self.allocated.get(name, NO_IDS)

    def managed(self, name: str) -> bool:
        """`isDevicePluginResource`."""
        return name in self.registered or name in self.allocated

    def register(self, report: Mapping[str, Iterable[Device]]) -> None:
        """Plugins report anew; resources that the report does not name stay."""
        for name, devices in report.items():
            self.registered[name] = {each.id: each for each in devices}
            self.written = dict(self.pods)

    def forget_all_but(self, active: Iterable[str]) -> None:
        """`UpdateAllocatedDevices`: what gone pods held is free again."""
        gone = self.pods.keys() - set(active)
        if not gone:
            return
        if self.written is None:
            self.written = self.pods
        self.pods = {uid: held for uid, held in self.pods.items() if uid not in gone}
        self.allocated = _held_by(self.pods)

    def hold(self, uid: str, container: str, name: str, ids: Ids) -> None:
        """Gives devices to a container."""
        taken = {
            each: self.registered[name][each].numa if each in self.registered[name] else () for each in ids
        }
        held = self.pods.get(uid, {})
        self.pods[uid] = held | {container: held.get(container, {}) | {name: taken}}


def _held_by(pods: Mapping[str, Mapping[str, Mapping[str, Held]]]) -> dict[str, Ids]:
    """All devices of these pods by resource (`podDevices.devices`)."""
    found: dict[str, Ids] = {}
    for held in pods.values():
        for resources in held.values():
            for name, devices in resources.items():
                found[name] = found.get(name, NO_IDS).union(devices)
    return found


class DeviceManager(msgspec.Struct, frozen=True):
    """`ManagerImpl`."""

    machine: Machine
    minor: int

    def container_hints(self, state: DeviceState, pod: Pod, container: Container) -> list[Offer]:
        """`GetTopologyHints`; empty = no preference."""
        asked = {name: each for name, each in container.limits.items() if state.managed(name)}
        return [
            self._offer(
                state,
                name,
                resource.parse(number).value,
                state.of(pod.uid, container.name, name) or NO_IDS,
                state.reusable.get(pod.uid, {}).get(name, NO_IDS),
            )
            for name, number in sorted(asked.items())
        ]

    def pod_hints(self, state: DeviceState, pod: Pod) -> list[Offer]:
        """`GetPodTopologyHints`: for the sum over containers that run together; empty = no preference."""
        asked = sorted({name for each in pod.in_order() for name in each.limits if state.managed(name)})
        return [
            self._offer(state, name, pod_limit(pod, name), state.of_pod(pod.uid, name), NO_IDS)
            for name in asked
        ]

    def _offer(self, state: DeviceState, name: str, requested: int, allocated: Ids, reusable: Ids) -> Offer:
        devices = state.registered.get(name, {})
        if not any(each.numa for each in devices.values()):
            return Offer(name, requested, None)
        available = allocated or state.available(name)
        reusable = NO_IDS if allocated else reusable
        per_node = {
            node: [each.id for each in devices.values() if node in each.numa] for node in self.machine.ids
        }
        free = {node: len((available | reusable).intersection(ids)) for node, ids in per_node.items()}
        total = {node: len(ids) for node, ids in per_node.items()}
        if allocated and len(allocated) != requested:
            return Offer(name, requested, IMPOSSIBLE, free, total)
        if len(available | reusable) < requested:
            return Offer(name, requested, IMPOSSIBLE, free, total)
        return Offer(name, requested, self.generate(devices, available, reusable, requested), free, total)

    def generate(self, devices: Devices, available: Ids, reusable: Ids, requested: int) -> Hints:
        """`generateDeviceTopologyHints`: NUMA nodes that touch every reusable device and enough others.

        A device that is available and reusable counts twice, as in the kubelet.

        Raises:
            PanicError: a device that the pod holds is not in the plugin's report any more; the kubelet looks up its NUMA nodes.
        """
        if (available | reusable) - devices.keys():
            raise PanicError(NIL_POINTER)
        nodes = self._nodes(devices)
        masks = hints.subsets(nodes)
        fixed = [devices[each].mask for each in reusable if devices[each].numa]
        totals = _touching(nodes, [each.mask for each in devices.values()])
        free = _touching(nodes, [devices[each].mask for each in available] + fixed)
        fewest = min(
            (
                mask.bit_count()
                for mask, count in zip(masks, totals, strict=True)
                if mask and count >= requested
            ),
            default=len(nodes),
        )
        offered = [
            mask
            for mask, count in zip(masks, free, strict=True)
            if count >= requested and mask and all(mask & each for each in fixed)
        ]
        return Hints(offered, [mask for mask in offered if mask.bit_count() == fewest])

    def _nodes(self, devices: Devices) -> tuple[int, ...]:
        """NUMA nodes of which hints are made (`deviceNUMANodes`)."""
        if self.minor < _FIRST_TO_SKIP_NODES:
            return self.machine.ids
        bearing = {node for each in devices.values() for node in each.numa}
        return tuple(node for node in self.machine.ids if node in bearing) or self.machine.ids

    def allocate(
        self, state: DeviceState, pod: Pod, container: Container, affinity: int | None, choices: Choices
    ) -> None:
        """`Allocate`: changes the state. Raises AllocationError. The order of resources is open."""
        state.reusable = {pod.uid: dict(state.reusable.get(pod.uid, {}))}
        waiting = sorted(name for name in container.limits if state.managed(name))
        given = False
        while waiting:
            name = waiting.pop(choices.pick(len(waiting)))
            number = resource.parse(container.limits[name]).value
            taken = self._devices_to_allocate(state, pod, container, name, number, affinity, choices)
            if taken:
                state.hold(pod.uid, container.name, name, taken)
                given = True
        if given:
            state.written = dict(state.pods)
        ends = any(each.name == container.name and not each.sidecar for each in pod.init)
        reusable = state.reusable[pod.uid]
        for name, devices in state.pods.get(pod.uid, {}).get(container.name, {}).items():
            kept = reusable.get(name, NO_IDS)
            reusable[name] = kept.union(devices) if ends else kept.difference(devices)

    def _devices_to_allocate(
        self,
        state: DeviceState,
        pod: Pod,
        container: Container,
        name: str,
        number: int,
        affinity: int | None,
        choices: Choices,
    ) -> Ids:
        """`devicesToAllocate`: reusable ones, then on the NUMA nodes of the affinity, then others."""
        held = state.of(pod.uid, container.name, name)
        if held is not None and len(held) != number:
            raise AllocationError(
                f'pod "{pod.uid}" container "{container.name}" changed request for resource "{name}" from {len(held)} to {number}'
            )
        self._check_healthy(state, name, held or NO_IDS)
        needed = 0 if held is not None else number
        if not needed:
            return NO_IDS
        devices = state.registered[name]
        reusable = state.reusable[pod.uid].get(name, NO_IDS)
        taken = _some(devices, reusable, needed, choices)
        state.allocated[name] = state.allocated.get(name, NO_IDS) | taken
        needed -= len(taken)
        available = state.available(name)
        if len(available) < needed:
            raise AllocationError(
                f"requested number of devices unavailable for {name}. Requested: {needed}, Available: {len(available)}"
            )
        for group in _by_affinity(devices, available, affinity):
            more = _some(devices, group, needed, choices)
            taken |= more
            needed -= len(more)
        state.allocated[name] |= taken
        return taken

    def _check_healthy(self, state: DeviceState, name: str, held: Ids) -> None:
        healthy = state.healthy(name)
        if name not in state.registered:
            raise AllocationError(f"cannot allocate unregistered device {name}")
        if not healthy:
            raise AllocationError(f"no healthy devices present; cannot allocate unhealthy devices {name}")
        if held - healthy:
            raise AllocationError(
                f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {name}"
            )


def pod_limit(pod: Pod, name: str) -> int:
    """`PodLimits` of one resource: init containers before the others, sidecars beside them."""
    sidecars = most = resource.ZERO
    for container in pod.init:
        if container.sidecar:
            sidecars += container.limit(name)
        most = max(
            most, sidecars if container.sidecar else sidecars + container.limit(name), key=lambda q: q.amount
        )
    running = sidecars
    for container in pod.containers:
        running += container.limit(name)
    return max(most, running, key=lambda q: q.amount).value


def _touching(nodes: tuple[int, ...], devices: list[int]) -> list[int]:
    """For every subset of the nodes the number of devices that touch it."""
    counts = hints.subset_sums(devices.count(1 << node) for node in nodes)
    for several in (mask for mask in devices if mask & (mask - 1)):
        counts = [
            count + (1 if mask & several else 0)
            for mask, count in zip(hints.subsets(nodes), counts, strict=True)
        ]
    return counts


def _by_affinity(devices: Devices, available: Ids, affinity: int | None) -> tuple[Ids, Ids, Ids]:
    """`filterByAffinity`: on NUMA nodes of the affinity, on others, on none."""
    if affinity is None or not any(each.numa for each in devices.values()):
        return NO_IDS, NO_IDS, available
    aligned = frozenset(each for each in available if devices[each].mask & affinity)
    placed = frozenset(each for each in available if devices[each].numa)
    return aligned, placed - aligned, available - placed


def _some(devices: Devices, ids: Ids, number: int, choices: Choices) -> Ids:
    """Up to `number` of these devices. Which is open; devices on the same NUMA nodes count as the same."""
    if len(ids) <= number:
        return ids
    kinds: dict[object, list[str]] = {}
    for each in sorted(ids):
        numa = devices[each].numa if each in devices else ()
        kinds.setdefault(numa if choices.devices_alike else each, []).append(each)
    ways = list(islice(_shares([len(same) for same in kinds.values()], number), _MOST_WAYS))
    counts = ways[choices.pick(len(ways))]
    return frozenset(
        each for same, count in zip(kinds.values(), counts, strict=True) for each in same[:count]
    )


def _shares(sizes: list[int], number: int) -> Iterator[tuple[int, ...]]:
    """Every way to take `number` things out of piles of these sizes."""
    if not sizes:
        if not number:
            yield ()
        return
    for count in range(min(sizes[0], number), -1, -1):
        yield from ((count, *rest) for rest in _shares(sizes[1:], number - count))
