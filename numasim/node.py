"""One simulated node: its machine, its kubelet and the pods on it, as a function of seed and simulated time."""

from __future__ import annotations

import heapq
import random
import uuid
from collections.abc import Iterator
from itertools import count

import msgspec

from numacore.cpuset import EMPTY, CpuSet
from numasim import kinds, placement, wave
from numasim.memory import Memory
from numasim.meter import Account, Meter
from numasim.placement import Place
from numasim.running import Running, Service
from numasim.spec import Spec
from numasim.workload import Pod, Room, Want

MIB = 1 << 20
SERVICES = (
    ("kubelet.service", 0.25, 180),
    ("{runtime}.service", 0.15, 220),
    ("systemd-journald.service", 0.02, 60),
    ("sshd.service", 0.005, 12),
    ("chronyd.service", 0.002, 6),
)
"""Units of the system: CPUs in use, MiB."""


class Node:
    """A node at a moment of simulated time. `advance` moves it on; the same seed gives the same node."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self.spec = spec
        self.topology, self.settings = spec.machine.topology, spec.settings
        self.now = 0.0
        self.version = 0
        """Counts the changes of what runs where."""
        self._rng = random.Random(f"{seed}/{spec.name}")
        self.machine_id = f"{self._rng.getrandbits(128):032x}"
        self.boot_id = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        self.uptime = self._rng.uniform(3, 60) * 86400
        self.meter = Meter(self._rng, self.topology.online, self.uptime)
        self.running: dict[str, list[Running]] = {}
        self.sandboxes: dict[str, int] = {}
        """Process of each pod's sandbox."""
        self._pids = count(2000)
        self._events: list[tuple[float, int, Pod | None]] = []
        self._order = count()
        self.free = placement.everything(spec.machine, self.settings, self.allocatable)
        self._memory = Memory(spec.machine, self._rng)
        self.services = [self._service(*each) for each in SERVICES]
        self.room = self._room()
        self._populate()
        self._regroup(0.0)

    # ------------------------------------------------------------ time

    def advance(self, now: float) -> None:
        """Lets everything happen that happens until `now`, seconds of simulated time."""
        while self._events and self._events[0][0] <= now:
            at, _, pod = heapq.heappop(self._events)
            if pod is None:
                self._arrival(at)
            elif pod.uid in self.running:
                self._leave(pod)
                self._regroup(at)
        self.now = now

    def _populate(self) -> None:
        for pod in kinds.daemons(self._rng, self.room):
            self._admit(pod, 0.0)
        for kind in self.spec.residents:
            self._admit(kinds.resident(self._rng, kind, self.room), 0.0)
        for _ in range(20 * self.spec.containers):
            missing = self.spec.containers - self.containers_now
            if missing <= 0:
                break
            pod = kinds.draw(self._rng, -self._rng.uniform(60, 7200), self.room)
            if len(pod.containers) <= missing:
                left = self._rng.uniform(10, pod.dies - pod.born)
                self._admit(msgspec.structs.replace(pod, dies=left), 0.0)
        self._schedule_arrival(0.0)

    @property
    def containers_now(self) -> int:
        """How many containers of pods run."""
        return sum(len(each) for each in self.running.values())

    def _schedule_arrival(self, now: float) -> None:
        # A place that came free stays so for a little while; a small node asks less often than a large one.
        every = min(60.0, 600.0 / max(1, self.spec.containers))
        heapq.heappush(self._events, (now + self._rng.expovariate(1 / every), next(self._order), None))

    def _arrival(self, at: float) -> None:
        pod = kinds.draw(self._rng, at, self.room)
        if self.containers_now < self.spec.containers and self._admit(pod, at):
            self._regroup(at)
        self._schedule_arrival(at)

    # ------------------------------------------------------------ pods

    def _admit(self, pod: Pod, now: float) -> bool:
        resources = {"accelerator": self.spec.accelerator, "network": self.spec.network}
        if any(pod.name == each[0].pod.name for each in self.running.values()):
            return False
        places = placement.place(self.topology, self.settings, self.free, pod, resources)
        if places is None:
            return False
        self.sandboxes[pod.uid] = next(self._pids)
        self.running[pod.uid] = [
            self._start(pod, want, place, now, pod.ids[i + 1])
            for i, (want, place) in enumerate(zip(pod.containers, places, strict=True))
        ]
        if pod.dies != float("inf"):
            heapq.heappush(self._events, (pod.dies, next(self._order), pod))
        return True

    def _start(self, pod: Pod, want: Want, place: Place, now: float, container_id: str) -> Running:
        spent = max(0.0, now - pod.born) * want.load.mean
        pages = self._memory.take(pod, want, place)
        return Running(
            id=container_id,
            pod=pod,
            want=want,
            place=place,
            account=Account(want.load, now, spent),
            pages=pages,
            pid=next(self._pids),
        )

    def _leave(self, pod: Pod) -> None:
        del self.sandboxes[pod.uid]
        for each in self.running.pop(pod.uid):
            placement.give_back(self.free, each.place)
            self._memory.give_back(each.pages, each.want.memory)

    def _regroup(self, at: float) -> None:
        """Shares the CPUs out anew after something came or went."""
        self.version += 1
        everyone = list(self.containers())
        floating = [each.account for each in everyone if not each.place.cpus]
        services = [each.account for each in self.services]
        apart = self.settings.strict and bool(self.settings.reserved)
        groups = [(each.place.cpus, [each.account]) for each in everyone if each.place.cpus]
        if apart:
            groups.append((self.settings.reserved & self.topology.online, services))
        groups.append((self.pool, floating if apart else floating + services))
        self.meter.regroup(at, groups)

    # ------------------------------------------------------------ what is where

    def containers(self) -> Iterator[Running]:
        """Containers of pods."""
        for each in self.running.values():
            yield from each

    @property
    def exclusive(self) -> CpuSet:
        """CPUs that containers own."""
        found = EMPTY
        for each in self.containers():
            found |= each.place.cpus
        return found

    @property
    def pool(self) -> CpuSet:
        """CPUs of the shared pool (the kubelet's default set)."""
        kept = self.settings.reserved if self.settings.strict else EMPTY
        return self.topology.online - self.exclusive - kept

    @property
    def allocatable(self) -> CpuSet:
        """CPUs that may become exclusive, whoever has them now; none without the static policy."""
        if self.settings.cpu_policy != "static":
            return EMPTY
        return self.topology.online - self.settings.reserved

    def cpus_of(self, each: Running) -> CpuSet:
        """CPUs that a container may run on."""
        return each.place.cpus or (
            self.pool if self.settings.cpu_policy == "static" else self.topology.online
        )

    def mems_of(self, each: Running) -> CpuSet:
        """NUMA nodes that a container's memory may come from."""
        pinned = CpuSet(node for block in each.place.blocks for node in block.numa)
        return pinned or CpuSet(self.spec.machine.with_memory)

    # ------------------------------------------------------------ beginnings

    def _room(self) -> Room:
        attributes = self.spec.machine.attributes
        total = sum(
            attributes.memory.get(n) or 0 for n in self.topology.numa_ids if n in self.spec.machine.with_cpus
        )
        return Room(
            mix=self.spec.mix,
            ordinal=self.spec.ordinal * 10,
            largest=max(1, len(self.topology.online) // 6),
            numa_cpus=max(len(node.cpus) for node in self.topology.nodes),
            memory=int(total * 1.3 / (self.spec.containers + 8)) // MIB * MIB,
            accelerators=sum(device.kind == "accelerator" for device in attributes.devices),
            accelerator=self.spec.accelerator,
            network=self.spec.network if any(d.kind == "network" for d in attributes.devices) else "",
            huge_size=max((size for sizes in self.free.huge.values() for size in sizes), default=0),
        )

    def _service(self, name: str, cpu: float, mib: int) -> Service:
        name = name.format(runtime={"cri-o": "crio"}.get(self.spec.runtime, self.spec.runtime))
        load = wave.daily(self._rng, cpu, 0.6)
        account = Account(load, 0.0, self.uptime * cpu)
        # It was touched first by CPUs at boot: never memory without CPUs, such as a GPU's or an expander's.
        home = self._rng.choice(self.spec.machine.local)
        return Service(name=name, account=account, memory=mib * MIB, home=home, pid=next(self._pids))
