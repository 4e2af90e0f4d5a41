"""What thousands of simulated exporters answer, without trees: for load tests of collectors.

A few nodes are simulated and many endpoints send their sections, each with ids of its own. Sections are encoded once
and shared; an answer is put together from finished bytes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from urllib.parse import unquote

import msgspec

from numacore import wire
from numacore.kubeletstate import CpuManagerState, Kubelet, Setting
from numacore.topology import content_hash
from numacore.usage import CpuTimes, Usage, numa_usage
from numacore.workload import Container
from numasim import cgroups, faults, kubelet, managers, scenario, usage
from numasim.endpoint import Reply
from numasim.faults import Fault
from numasim.node import Node
from numasim.running import Running

STREAMS = 24
"""Different nodes that are simulated; the others are copies of these with identities of their own."""
TAG = "5eed0000"
"""Stands in the ids of a simulated node's containers where each copy puts its own number."""
CONTAINERS_OF = b"0" * 32


class Fleet:
    """The answers of `count` endpoints at any moment. `clock` gives the wall clock, seconds since 1970."""

    def __init__(
        self,
        count: int,
        *,
        model: str = "epyc-nps4",
        containers: int = 60,
        seed: int = 1,
        shares: Mapping[Fault, float] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.count = count
        self._clock = clock
        self._epoch = clock()
        self.faults = faults.assign(count, shares or {}, seed)
        spec = scenario.plain(model, model, containers)
        self._streams = [
            _Stream(Node(msgspec.structs.replace(spec, ordinal=i), seed + i))
            for i in range(min(count, STREAMS))
        ]
        self._exporters = [self._exporter(i) for i in range(count)]

    def name(self, index: int) -> str:
        """Name of an endpoint's node."""
        return f"node-{index:05d}"

    def answer(self, index: int, target: str) -> Reply:
        """What an endpoint answers to a request."""
        path, _, query = target.partition("?")
        if path == "/healthz":
            return Reply(b'{"status":"ok"}')
        if path != "/v1/snapshot":
            return Reply(b'{"detail":"not found"}', status="404 Not Found")
        asked = dict(part.partition("=")[::2] for part in query.split("&"))
        return self._snapshot(index, wire.parse_have(unquote(asked.get("have", ""))), asked.get("usage", ""))

    def _snapshot(self, index: int, have: dict[str, str], wanted: str) -> Reply:
        fault = self.faults[index]
        if fault == "error":
            return Reply(b'{"detail":"simulated failure"}', status="500 Internal Server Error")
        if fault == "redirect":
            return Reply(status="302 Found", head=b"Location: http://169.254.169.254/latest/meta-data/\r\n")
        body = faults.spoil(fault, self._body(index, have, wanted, fault))
        if fault in faults.STREAMED:
            return Reply(raw=faults.stream(fault, body))
        return Reply(body, delay=faults.SLOW if fault == "slow" else 0.0)

    def _body(self, index: int, have: dict[str, str], wanted: str, fault: Fault | None) -> bytes:
        now = self._clock()
        elapsed = now - self._epoch
        stream = self._streams[index % len(self._streams)]
        who = 0 if fault == "duplicate-identity" else index
        shown = elapsed % faults.RESET_EVERY if fault == "counter-reset" else elapsed
        skew = faults.SKEW if fault == "clock-skew" else 0.0
        sections = stream.sections(index, have, wanted, shown, fresh=fault == "counter-reset")
        return b'{"version":1,"exporter":%b,"taken":%.3f,"monotonic":%.3f,"sections":{%b}}' % (
            self._exporters[who],
            now + skew,
            elapsed + 100_000,
            sections,
        )

    def _exporter(self, index: int) -> bytes:
        return wire.encode_value(
            wire.Exporter(
                node=self.name(index),
                machine_id=f"{index + 1:032x}",
                boot_id=str(uuid.UUID(int=index + 1)),
                version="0.1.0",
                started=round(self._epoch, 3),
            )
        )


class _Fixed(msgspec.Struct, frozen=True):
    """A section that stays as it is, encoded with and without its data."""

    hash: str
    full: bytes
    bare: bytes

    @classmethod
    def of(cls, name: str, data: bytes) -> _Fixed:
        """Encodes a section."""
        found = content_hash(data)
        return cls(found, _section(name, found, data), _section(name, found, None))

    def for_caller(self, have: str | None) -> bytes:
        """What a caller gets that has the hash `have`."""
        return self.bare if have == self.hash else self.full


class _Stream:
    """One simulated node whose sections many endpoints send."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._running = list(node.containers())
        machine = wire.Machine(node.topology, node.spec.machine.attributes)
        self._machine = _Fixed.of(wire.MACHINE, wire.encode_value(machine))
        self._kubelet = wire.encode_value(_kubelet(node))
        self._kubelets: dict[int, _Fixed] = {}
        containers = wire.Containers(tuple(_container(node, each) for each in self._running))
        self._template = wire.encode_value(containers)
        self._hashes: dict[int, str] = {}
        self._moving = _Moving(-1, b"", b"")

    def sections(
        self, index: int, have: dict[str, str], wanted: str, elapsed: float, *, fresh: bool
    ) -> bytes:
        """The sections of one endpoint, as the inside of a JSON object."""
        containers = self._hashes.get(index)
        if containers is None:
            containers = self._hashes[index] = content_hash(self._containers(index))
        kubelet = self._kubelet_of(index)
        standing = {
            wire.MACHINE: self._machine.hash,
            wire.KUBELET: kubelet.hash,
            wire.CONTAINERS: containers,
        }
        known = have.get(wire.CONTAINERS) == containers
        moving = self._moving_at(elapsed, fresh)
        # A hash of these 14 KB would cost more than all the rest; a name that is as unique does as well.
        named = content_hash(b"%d/%d/%d" % (int(elapsed), fresh, index))
        if wire.wants_sums(wanted, have, standing):
            usage = _section(wire.NUMA, named, moving.sums)
        else:
            usage = _section(wire.USAGE, named, moving.usage.replace(CONTAINERS_OF, containers.encode(), 1))
        return b",".join(
            (
                self._machine.for_caller(have.get(wire.MACHINE)),
                kubelet.for_caller(have.get(wire.KUBELET)),
                _section(wire.CONTAINERS, containers, None if known else self._containers(index)),
                usage,
            )
        )

    def _containers(self, index: int) -> bytes:
        return _tagged(self._template, index)

    def _kubelet_of(self, index: int) -> _Fixed:
        """Its state file names the pods of this endpoint."""
        if index not in self._kubelets:
            self._kubelets[index] = _Fixed.of(wire.KUBELET, _tagged(self._kubelet, index))
        return self._kubelets[index]

    def _moving_at(self, elapsed: float, fresh: bool) -> _Moving:
        """Encoded once for each second."""
        second = int(elapsed)
        if fresh:
            return self._encoded(second, fresh=True)
        if self._moving.second != second:
            self._moving = self._encoded(second, fresh=False)
        return self._moving

    def _encoded(self, second: int, *, fresh: bool) -> _Moving:
        read = self._read(second, fresh=fresh)
        sums = numa_usage(self._node.topology, read.cpu, read.memory)
        return _Moving(second, wire.encode_value(read), wire.encode_value(sums))

    def _read(self, second: int, *, fresh: bool) -> Usage:
        self._node.now = float(second)
        return _usage(self._node, self._running, fresh=fresh)


def _tagged(template: bytes, index: int) -> bytes:
    return template.replace(TAG.encode(), b"%08x" % index)


class _Moving(msgspec.Struct, frozen=True):
    """What moves, of one second: the section `usage`, and the same by NUMA node."""

    second: int
    usage: bytes
    sums: bytes


def _section(name: str, found: str, data: bytes | None) -> bytes:
    if data is None:
        return b'"%b":{"hash":"%b"}' % (name.encode(), found.encode())
    return b'"%b":{"hash":"%b","data":%b}' % (name.encode(), found.encode(), data)


def _container(node: Node, each: Running) -> Container:
    return Container(
        id=TAG + each.id[8:],
        cgroup=f"{cgroups.pod_path(node, each.pod)}/{each.id[:12]}",
        runtime=node.spec.runtime,
        pod_uid=TAG + each.pod.uid[8:],
        pod=f"{each.pod.name}-{TAG}",
        namespace=each.pod.namespace,
        name=each.want.name,
        qos=each.pod.qos,
        cpus=node.cpus_of(each),
        mems=node.mems_of(each),
        exclusive=each.place.cpus,
        cpu_limit=each.want.cpu_limit or "max",
        memory_limit=each.want.memory_limit or "max",
        devices=each.place.claims,
    )


def _usage(node: Node, running: list[Running], *, fresh: bool) -> Usage:
    """Counters since boot, or since the simulation's start (`fresh`)."""
    times = usage.cpu_times(node)
    if fresh:
        busy = tuple(
            int((now - then) * usage.HZ)
            for now, then in zip(node.meter.busy(node.now), node.meter.busy(0.0), strict=True)
        )
        times = CpuTimes(times.cpus, busy, tuple(max(0, int(node.now * usage.HZ) - ticks) for ticks in busy))
    return Usage(
        containers_of=CONTAINERS_OF.decode(),
        cpu=times,
        memory=usage.memory(node),
        containers=usage.containers(node, running),
    )


def _kubelet(node: Node) -> Kubelet:
    where = f"/{kubelet.STATE}/config.yaml"
    wanted = {
        "cpuManagerPolicy": node.settings.cpu_policy,
        "topologyManagerPolicy": node.settings.topology_policy,
        "reservedSystemCPUs": str(node.settings.reserved),
    }
    held = {TAG + uid[8:]: dict(cpus) for uid, cpus in managers.cpu_entries(node).items()}
    return Kubelet(
        present=True,
        version=node.settings.version,
        settings={field: Setting(value, "file", where) for field, value in wanted.items()},
        config_path=where,
        allocatable_cpus=node.allocatable,
        cpu_state=CpuManagerState("static", node.pool, held),
    )
