"""One simulated node: its machine, its kubelet and the pods on it, as a function of seed and simulated time."""

from __future__ import annotations

import heapq
import random
import uuid
from collections.abc import Iterator
from itertools import count

import msgspec

from numacore.cpuset import EMPTY, CpuSet
from numacore.topology import Device, HugePages
from numasim import placement, wave, workload
from numasim.kubelet import Block, Entries, NodeTable, Settings, Table
from numasim.machine import Machine
from numasim.meter import Account, Meter
from numasim.placement import Free, Place
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


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulated node is made from."""

    name: str
    machine: Machine
    settings: Settings = Settings()
    kubernetes: bool = True
    cgroup: int = 2
    runtime: str = "containerd"
    accelerator: str = "nvidia.com/gpu"
    network: str = "rdma/hca"
    containers: int = 24
    """About how many containers run at a time."""
    mix: dict[str, int] = msgspec.field(default_factory=lambda: dict(workload.MIX))
    """How often each kind of pod comes."""
    ordinal: int = 0
    """Place in the cluster."""
    residents: tuple[str, ...] = ()
    """Kinds of pods that are there from the beginning and stay."""
    hidden: tuple[str, ...] = ()
    """Paths that are taken away from the finished tree, so that something is unknown."""
    garbled: tuple[str, ...] = ()
    """Files that hold rubbish instead of what should be in them."""


class Running(msgspec.Struct, kw_only=True):
    """A container on the node."""

    id: str
    pod: Pod
    want: Want
    place: Place
    account: Account
    pages: dict[int, wave.Wave]
    """Share of its memory by NUMA node."""
    pid: int

    @property
    def devices(self) -> tuple[Device, ...]:
        """Its devices."""
        return self.place.devices


class Service(msgspec.Struct, kw_only=True):
    """A unit of the system outside Kubernetes."""

    name: str
    account: Account
    memory: int
    home: int
    pid: int


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
        self.free = self._everything()
        self._committed = dict.fromkeys(self.topology.numa_ids, 0)
        self.services = [
            self._service(*each) for each in SERVICES if spec.kubernetes or each[0] != "kubelet.service"
        ]
        self.room = self._room()
        if spec.kubernetes:
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
        for pod in workload.daemons(self._rng, self.room):
            self._admit(pod, 0.0)
        for kind in self.spec.residents:
            self._admit(workload.resident(self._rng, kind, self.room), 0.0)
        for _ in range(20 * self.spec.containers):
            missing = self.spec.containers - self.containers_now
            if missing <= 0:
                break
            pod = workload.draw(self._rng, -self._rng.uniform(60, 7200), self.room)
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
        pod = workload.draw(self._rng, at, self.room)
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
        pages = self._pages(pod, want, place)
        for node, share in pages.items():
            self._committed[node] += int(share.mean * want.memory)
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
            for node, share in each.pages.items():
                self._committed[node] -= int(share.mean * each.want.memory)

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
        return pinned or CpuSet(self.with_memory)

    @property
    def with_memory(self) -> tuple[int, ...]:
        """NUMA nodes that have memory."""
        return tuple(node for node in self.topology.numa_ids if self.spec.machine.attributes.memory.get(node))

    def cpu_entries(self) -> Entries:
        """Exclusive CPUs as the CPU manager writes them down."""
        found: dict[str, dict[str, CpuSet]] = {}
        for each in self.containers():
            if each.place.cpus:
                found.setdefault(each.pod.uid, {})[each.want.name] = each.place.cpus
        return found

    def memory_entries(self) -> dict[str, dict[str, tuple[Block, ...]]]:
        """Memory blocks as the memory manager writes them down."""
        found: dict[str, dict[str, tuple[Block, ...]]] = {}
        for each in self.containers():
            if each.place.blocks:
                found.setdefault(each.pod.uid, {})[each.want.name] = each.place.blocks
        return found

    def memory_tables(self) -> dict[int, NodeTable]:
        """NUMA nodes as the memory manager writes them down; empty without the policy Static."""
        if self.settings.memory_policy != "Static":
            return {}
        return {node: self._node_table(node) for node in self.topology.numa_ids}

    def hugepages(self) -> dict[int, tuple[HugePages, ...]]:
        """Huge pages by NUMA node, with those that containers use taken off the free ones."""
        used: dict[tuple[int, int], int] = {}
        for each in self.containers():
            for node, sizes in each.place.huge.items():
                for size, pages in sizes.items():
                    used[node, size] = used.get((node, size), 0) + pages
        return {
            node: tuple(
                HugePages(p.page_size, p.total, (p.total or 0) - used.get((node, p.page_size), 0))
                for p in sizes
            )
            for node, sizes in self.spec.machine.attributes.hugepages.items()
        }

    # ------------------------------------------------------------ beginnings

    def _everything(self) -> Free:
        attributes = self.spec.machine.attributes
        huge = {
            node: {p.page_size: p.total for p in sizes if p.total}
            for node, sizes in attributes.hugepages.items()
            if any(p.total for p in sizes)
        }
        memory = {node: self._allocatable_memory(node) for node in self.topology.numa_ids}
        devices = [device for device in attributes.devices if device.kind in ("accelerator", "network")]
        return Free(cpus=self.allocatable, memory=memory, huge=huge, devices=devices)

    def _huge_total(self, node: int) -> int:
        return sum(p.page_size * (p.total or 0) for p in self.spec.machine.attributes.hugepages.get(node, ()))

    def _allocatable_memory(self, node: int) -> int:
        total = self.spec.machine.attributes.memory.get(node) or 0
        return total - self._huge_total(node) - self.settings.reserved_memory.get(node, 0) * MIB

    def _node_table(self, node: int) -> NodeTable:
        blocks = [b for each in self.containers() for b in each.place.blocks if b.numa == (node,)]
        total = self.spec.machine.attributes.memory.get(node) or 0
        kept = self.settings.reserved_memory.get(node, 0) * MIB
        given = sum(block.size for block in blocks if block.kind == "memory")
        room = self._allocatable_memory(node)
        tables = {"memory": Table(total, kept, room, given, room - given)}
        for pages in self.spec.machine.attributes.hugepages.get(node, ()):
            name, size = placement.huge_name(pages.page_size), pages.page_size * (pages.total or 0)
            used = sum(block.size for block in blocks if block.kind == name)
            tables[name] = Table(size, 0, size, used, size - used)
        return NodeTable(len(blocks), tables, (node,))

    def _room(self) -> Room:
        attributes = self.spec.machine.attributes
        total = sum(attributes.memory.get(n) or 0 for n in self.topology.numa_ids if n in self._with_cpus)
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

    @property
    def _with_cpus(self) -> tuple[int, ...]:
        return tuple(node.id for node in self.topology.nodes if node.cpus)

    def _service(self, name: str, cpu: float, mib: int) -> Service:
        name = name.format(runtime={"cri-o": "crio"}.get(self.spec.runtime, self.spec.runtime))
        load = wave.daily(self._rng, cpu, 0.6)
        account = Account(load, 0.0, self.uptime * cpu)
        home = self._rng.choice(self.with_memory)
        return Service(name=name, account=account, memory=mib * MIB, home=home, pid=next(self._pids))

    # ------------------------------------------------------------ memory

    def _pages(self, pod: Pod, want: Want, place: Place) -> dict[int, wave.Wave]:
        pinned = {node for block in place.blocks for node in block.numa}
        homes = [n for n in (pinned or self.topology.numa_of(place.cpus)) if n in self.with_memory]
        if not homes and place.cpus:
            homes = [self._nearest(self.topology.numa_of(place.cpus)[0])]
        full = any(self._memory_left(node) < want.memory for node in homes)
        if not homes or ((pod.habit == "anywhere" or full) and not pinned):
            return self._anywhere(want)
        if pod.habit == "drifted" and not pinned and set(self._usual) - set(homes):
            return self._drifted(homes)
        return {node: wave.Wave(1 / len(homes)) for node in homes}

    @property
    def _usual(self) -> list[int]:
        """NUMA nodes whose memory programs get without asking for it: a GPU's own memory is not among them."""
        tiers = self.spec.machine.attributes.memory_tiers
        return [node for node in self.with_memory if tiers or node in self._with_cpus]

    def _memory_left(self, node: int) -> int:
        total = self.spec.machine.attributes.memory.get(node) or 0
        return total * 17 // 20 - self._huge_total(node) - self._committed[node]

    def _nearest(self, node: int) -> int:
        return min(self.with_memory, key=lambda other: (self.topology.distance(node, other) or 0, other))

    def _anywhere(self, want: Want) -> dict[int, wave.Wave]:
        """First touch: where there is room, on up to three NUMA nodes."""
        wide = [node for node in self._usual if self._memory_left(node) > want.memory] or self._usual
        chosen = self._rng.sample(wide, min(len(wide), self._rng.choice([1, 2, 2, 3])))
        parts = [self._rng.uniform(0.2, 1.0) for _ in chosen]
        return {node: wave.Wave(part / sum(parts)) for node, part in zip(chosen, parts, strict=True)}

    def _drifted(self, homes: list[int]) -> dict[int, wave.Wave]:
        """Part of the memory on another NUMA node, a little more or less over the minutes."""
        away = self._rng.choice([node for node in self._usual if node not in homes])
        lost = self._rng.uniform(0.15, 0.55)
        swing = (0.04, 6.283 / self._rng.uniform(120, 400), self._rng.uniform(0, 6.283))
        kept = {
            node: wave.Wave((1 - lost) / len(homes), ((-swing[0] / len(homes), *swing[1:]),))
            for node in homes
        }
        return kept | {away: wave.Wave(lost, (swing,))}
