"""Use of CPUs and memory: counters as a node reports them, and rates between two readings.

Counters travel, rates do not: a reader that missed a reading loses nothing but resolution, and two readers never
disturb each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from numacore.cpuset import EMPTY, CpuSet
from numacore.topology import Amount, HugePages, Id, Topology

TICK = 0.01
"""Seconds of one unit of `/proc/stat` (USER_HZ is 100 on every architecture that runs Kubernetes)."""
IDLE_SLIP = 100
"""Ticks by which an idle counter may run backwards without meaning a reboot (proc_stat(5): idle and iowait may
decrease on tickless kernels)."""


class CpuTimes(msgspec.Struct, frozen=True):
    """Cumulative ticks of each online CPU. `busy[i]` and `idle[i]` belong to the i-th id of `cpus`, ascending.

    busy = user + nice + system + irq + softirq + steal; idle = idle + iowait. Guest time is in user already.
    """

    cpus: CpuSet
    busy: tuple[Amount, ...]
    idle: tuple[Amount, ...]

    def __post_init__(self) -> None:
        if not len(self.cpus) == len(self.busy) == len(self.idle):
            raise ValueError(
                f"{len(self.busy)} busy and {len(self.idle)} idle counters for {len(self.cpus)} CPUs"
            )


class MemoryUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Memory of one NUMA node now, bytes; `used` is the kernel's MemUsed = total - free, page cache included."""

    total: Amount | None = None
    free: Amount | None = None
    used: Amount | None = None
    file: Amount | None = None
    """Page cache (FilePages), most of it reclaimable."""
    anon: Amount | None = None
    hugepages: tuple[HugePages, ...] = ()
    counters: dict[str, Amount] = {}
    """numastat, pages since boot: numa_hit, numa_miss, numa_foreign, interleave_hit, local_node, other_node."""


NO_MEMORY = MemoryUse()
"""Of a NUMA node of which nothing is known."""


class ContainerUse(msgspec.Struct, frozen=True):
    """Columns over the containers of the same snapshot, in the order of its containers section."""

    cpu_time: tuple[Amount | None, ...]
    """Microseconds since the container started."""
    memory: tuple[Amount | None, ...]
    """Bytes charged to it."""
    pages: dict[Id, tuple[Amount | None, ...]]
    """Bytes by NUMA node (memory.numa_stat, anonymous + file, or numa_maps)."""
    cpu_time_by_numa: dict[Id, tuple[Amount | None, ...]] = {}
    """Microseconds by NUMA node where the kernel keeps them (cgroup v1 cpuacct.usage_percpu)."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of everything that moves. None = unreadable, with its cause in the snapshot's problems."""

    containers_of: str
    """Hash of the containers section that `containers` is in the order of."""
    cpu: CpuTimes | None = None
    memory: dict[Id, MemoryUse] = {}
    containers: ContainerUse | None = None


class NumaUsage(msgspec.Struct, frozen=True, kw_only=True):
    """One reading summed up by NUMA node: columns in the order of the machine's NUMA ids. None = unknown, or no CPU there."""

    cpus: CpuSet = EMPTY
    """Whose times are in the sums."""
    busy: tuple[Amount | None, ...]
    """Ticks as in `CpuTimes`, all CPUs of the NUMA node together."""
    idle: tuple[Amount | None, ...]
    used: tuple[Amount | None, ...]
    """As in `MemoryUse`, like the three below."""
    free: tuple[Amount | None, ...]
    file: tuple[Amount | None, ...]
    other_node: tuple[Amount | None, ...]


class Rates(msgspec.Struct, frozen=True):
    """What moved between two readings of a node. Unknown = left out (dicts) or None."""

    seconds: float
    busy: dict[int, float]
    """Busy share by CPU."""
    cpu_use: dict[str, float]
    """CPUs in use by container id."""
    numastat: dict[int, dict[str, float]]
    """Pages per second by NUMA node and counter."""


def rates(
    before: Usage, before_ids: Sequence[str], after: Usage, after_ids: Sequence[str], seconds: float
) -> Rates:
    """What moved between two readings taken `seconds` apart (monotonic clock of the node, same boot).

    `..._ids`: the container ids of each reading's containers section, in its order.
    """
    return Rates(
        seconds=seconds,
        busy=busy_shares(before.cpu, after.cpu),
        cpu_use=_container_rates(before, before_ids, after, after_ids, seconds),
        numastat=_numastat_rates(before.memory, after.memory, seconds),
    )


def busy_shares(before: CpuTimes | None, after: CpuTimes | None) -> dict[int, float]:
    """Busy share, 0..1, of each CPU that both readings know and whose counters did not start anew in between."""
    if before is None or after is None:
        return {}
    old = {cpu: i for i, cpu in enumerate(before.cpus)}
    found: dict[int, float] = {}
    for i, cpu in enumerate(after.cpus):
        if cpu in old:
            share = busy_share(
                after.busy[i] - before.busy[old[cpu]],
                after.idle[i] - before.idle[old[cpu]],
            )
            if share is not None:
                found[cpu] = share
    return found


def busy_share(busy: int, idle: int) -> float | None:
    """The busy share of so many ticks between two readings; None if the counters started anew or nothing passed."""
    if busy < 0 or idle < -IDLE_SLIP:
        return None
    elapsed = busy + max(idle, 0)
    return busy / elapsed if elapsed > 0 else None


def numa_busy(topology: Topology, busy: dict[int, float]) -> dict[int, float | None]:
    """Mean busy share of each NUMA node's online CPUs; None where no CPU's use is known (memory-only too)."""
    result: dict[int, float | None] = {}
    for node in topology.nodes:
        known = [busy[cpu] for cpu in node.cpus if cpu in busy]
        result[node.id] = sum(known) / len(known) if known else None
    return result


def numa_usage(topology: Topology, cpu: CpuTimes | None, memory: Mapping[int, MemoryUse]) -> NumaUsage:
    """A reading summed up by NUMA node."""
    place = {} if cpu is None else {each: i for i, each in enumerate(cpu.cpus)}
    busy: list[int | None] = []
    idle: list[int | None] = []
    for node in topology.nodes:
        columns = [place[each] for each in node.cpus if each in place]
        busy.append(sum(cpu.busy[i] for i in columns) if cpu and columns else None)
        idle.append(sum(cpu.idle[i] for i in columns) if cpu and columns else None)
    found = [memory.get(node.id, NO_MEMORY) for node in topology.nodes]
    return NumaUsage(
        cpus=cpu.cpus if cpu else EMPTY,
        busy=tuple(busy),
        idle=tuple(idle),
        used=tuple(each.used for each in found),
        free=tuple(each.free for each in found),
        file=tuple(each.file for each in found),
        other_node=tuple(each.counters.get("other_node") for each in found),
    )


def counter_rate(before: int | None, after: int | None, seconds: float) -> float | None:
    """Growth per second of a counter; None if one is unknown, no time passed, or the counter started anew."""
    if before is None or after is None or seconds <= 0 or after < before:
        return None
    return (after - before) / seconds


def total(values: Sequence[int | None]) -> int | None:
    """The sum, or None if there is nothing or a part is unknown."""
    known = [each for each in values if each is not None]
    return sum(known) if known and len(known) == len(values) else None


def _container_rates(
    before: Usage, before_ids: Sequence[str], after: Usage, after_ids: Sequence[str], seconds: float
) -> dict[str, float]:
    if before.containers is None or after.containers is None:
        return {}
    old = dict(zip(before_ids, before.containers.cpu_time, strict=False))
    found: dict[str, float] = {}
    for container, now in zip(after_ids, after.containers.cpu_time, strict=False):
        rate = counter_rate(old.get(container), now, seconds)
        if rate is not None:
            found[container] = rate / 1_000_000
    return found


def _numastat_rates(
    before: Mapping[int, MemoryUse], after: Mapping[int, MemoryUse], seconds: float
) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for node, now in after.items():
        old = before[node].counters if node in before else {}
        grown = {key: counter_rate(old.get(key), value, seconds) for key, value in now.counters.items()}
        found[node] = {key: value for key, value in grown.items() if value is not None}
    return found
