"""What somebody wants of a node's kubelet, before any node is looked at.

A field that is None or empty leaves the node as it is. The codes of faults have sentences in `policies.words.changing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Literal

import msgspec

from numacore.diagnosis import Reason
from numacore.kubelet import cpu_manager, memory_manager, options, resource, topology_manager
from numacore.kubelet.checks import quantities
from numacore.quantity import QuantityError

TopologyPolicy = Literal["none", "best-effort", "restricted", "single-numa-node"]
Scope = Literal["container", "pod"]
CpuPolicy = Literal["none", "static"]
MemoryPolicy = Literal["None", "Static"]
Spread = Literal["even", "first"]
CPU_OPTIONS = (
    options.FULL_PCPUS_ONLY,
    options.STRICT_RESERVATION,
    options.DISTRIBUTE_ACROSS_NUMA,
    options.PREFER_ALIGN_UNCORE,
    options.ALIGN_BY_SOCKET,
    options.DISTRIBUTE_ACROSS_CORES,
)
DEFAULT_AMOUNT = "500m"
MOST_NODES = 64
"""NUMA nodes that the kubelet's masks can hold."""
_EXCLUSIVE = frozenset(map(frozenset, options.EXCLUSIVE))


class Wish(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is wanted, in the words of KubeletConfiguration."""

    topology_policy: TopologyPolicy | None = None
    scope: Scope | None = None
    prefer_closest: bool | None = None
    """The optimal NUMA distance: `prefer-closest-numa-nodes`."""
    max_allowable_numa_nodes: int | None = None
    cpu_policy: CpuPolicy | None = None
    """None beside a topology policy other than none: static, for without exclusive CPUs there is little to align."""
    cpu_options: dict[str, bool] = {}
    reserved_cpus: str = ""
    """CPUs by list, "0,16"; they take the place of the amounts."""
    system_reserved_cpu: str = DEFAULT_AMOUNT
    kube_reserved_cpu: str = DEFAULT_AMOUNT
    """Used where the static policy is wanted and the node reserves less in sum; nothing that is reserved is ever lowered."""
    memory_policy: MemoryPolicy | None = None
    reserved_memory: Spread | dict[int, int] | None = None
    """How the amount that the kubelet demands is spread over NUMA nodes: evenly, all on the first, or Mi by NUMA node. None: as it
    stands where its sum is right, else evenly."""


def read(given: Any) -> Wish:
    """A wish from what JSON was decoded to, where every key is a text. Raises msgspec.ValidationError."""
    return msgspec.convert(given, Wish, str_keys=True)


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a wish on any machine. `field`: of Wish."""

    field: str
    reason: Reason


def check(wish: Wish) -> tuple[Fault, ...]:
    """Everything that is wrong with it, whatever the machine."""
    return tuple(
        Fault(field, reason)
        for found in (_choices, _topology, _cpu_options, _amounts, _memory)
        for field, reason in found(wish)
    )


_Found = Iterator[tuple[str, Reason]]


def _choices(wish: Wish) -> _Found:
    for field, known in _CHOICES.items():
        value = getattr(wish, field)
        if value is not None and value not in known:
            yield field, Reason("wish-choice", {"value": str(value), "values": ", ".join(known)})


_CHOICES: dict[str, tuple[str, ...]] = {
    "topology_policy": topology_manager.POLICIES,
    "scope": (topology_manager.CONTAINER, topology_manager.POD),
    "cpu_policy": (cpu_manager.NONE, cpu_manager.STATIC),
    "memory_policy": (memory_manager.NONE, memory_manager.STATIC),
}


def _topology(wish: Wish) -> _Found:
    most = wish.max_allowable_numa_nodes
    if most is not None and not options.DEFAULT_MAX_NODES <= most <= MOST_NODES:
        yield (
            "max_allowable_numa_nodes",
            Reason("wish-max-nodes", {"least": options.DEFAULT_MAX_NODES, "most": MOST_NODES}),
        )
    if wish.topology_policy == topology_manager.NONE and wish.prefer_closest:
        yield "prefer_closest", Reason("wish-closest-without-policy")


def _cpu_options(wish: Wish) -> _Found:
    on = sorted(name for name, wanted in wish.cpu_options.items() if wanted)
    for name in sorted(wish.cpu_options):
        if name not in CPU_OPTIONS:
            yield (
                "cpu_options",
                Reason("wish-option-unknown", {"option": name, "values": ", ".join(CPU_OPTIONS)}),
            )
    for first, second in combinations(on, 2):
        if frozenset((first, second)) in _EXCLUSIVE:
            yield "cpu_options", Reason("wish-options-exclude", {"first": first, "second": second})
    if on and wish.cpu_policy == cpu_manager.NONE:
        yield "cpu_options", Reason("wish-options-without-static", {"options": ", ".join(on)})
    if options.ALIGN_BY_SOCKET in on and wish.topology_policy == topology_manager.SINGLE_NUMA_NODE:
        yield "cpu_options", Reason("wish-socket-single-numa")


def _amounts(wish: Wish) -> _Found:
    if fault := quantities.cpus_fault(wish.reserved_cpus):
        yield "reserved_cpus", Reason("wish-cpus", {"value": wish.reserved_cpus, "words": fault})
    for field in ("system_reserved_cpu", "kube_reserved_cpu"):
        text = getattr(wish, field)
        if milli(text, otherwise=-1) < 0:
            yield field, Reason("wish-amount", {"value": text})


def milli(text: Any, otherwise: int = 0) -> int:
    """Thousandths of what a file or a person says; `otherwise` for what is no quantity, or a number beyond all bounds."""
    try:
        return resource.parse(str(text)).milli
    except QuantityError:
        return otherwise


def _memory(wish: Wish) -> _Found:
    spread = wish.reserved_memory
    if spread is None:
        return
    if wish.memory_policy == memory_manager.NONE:
        yield "reserved_memory", Reason("wish-memory-without-static")
    if isinstance(spread, str):
        if spread not in ("even", "first"):
            yield "reserved_memory", Reason("wish-choice", {"value": spread, "values": "even, first"})
    elif not spread or any(numa < 0 or size <= 0 for numa, size in spread.items()):
        yield "reserved_memory", Reason("wish-memory-amounts")
