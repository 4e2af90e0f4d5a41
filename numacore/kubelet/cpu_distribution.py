"""CPUs in equal shares over NUMA nodes (option distribute-cpus-across-numa).

Kubelet 1.37, cm/cpumanager/cpu_assignment.go `takeByTopologyNUMADistributed`, KEP-2902.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, inf, sqrt

import msgspec

from numacore.kubelet.cpu_assignment import Accumulator, accumulator, take_packed
from numacore.kubelet.errors import AllocationError, HangError
from numacore.kubelet.machine import CpuTopology, union

HANG = "takeByTopologyNUMADistributed hands out the rest of the CPUs in a loop that never ends"


class Way(msgspec.Struct, frozen=True):
    """How CPUs are taken: in `group`s of whole cores, packed or spread, with an eye on sockets, by which kubelet."""

    group: int = 1
    spread: bool = False
    align_by_socket: bool = False
    capped: bool = True
    """No NUMA node is asked for more than it has free (since 1.37)."""


class Combination(msgspec.Struct, frozen=True):
    """NUMA nodes of a combination, in memory that others may share.

    The kubelet keeps the best combination as a Go slice while it goes on trying. Where the slice has room, the next
    combinations are written into the same memory, so what was kept may change afterwards. `nodes` tells the present content.
    """

    memory: list[int]
    length: int

    @property
    def nodes(self) -> list[int]:
        return self.memory[: self.length]


class Choice(msgspec.Struct, frozen=True):
    """A combination, how uneven it leaves the machine, and where the rest comes from."""

    balance: float
    combination: Combination
    rest: Combination | None
    one_socket: bool


def take_distributed(topology: CpuTopology, available: int, number: int, way: Way) -> int:
    """The CPUs of `number` shares. Raises AllocationError: not enough CPUs; HangError: the kubelet would not come back."""
    if number % way.group:
        return take_packed(topology, available, number, spread=way.spread)
    acc = accumulator(topology, available, number)
    if acc.satisfied:
        return acc.taken
    nodes = acc.numa_nodes()
    fewest, most = _nodes_needed(acc, way.group)
    for size in range(fewest, most + 1):
        chosen = _best_combination(acc, nodes, size, way)
        if chosen:
            return _take(acc, chosen, way)
    return take_packed(topology, available, number, spread=way.spread)


def _nodes_needed(acc: Accumulator, group: int) -> tuple[int, int]:
    """`rangeNUMANodesNeededToSatisfy`."""
    topology = acc.topology
    groups_in_all = -(-topology.all.bit_count() // group)
    per_node = -(-groups_in_all // len(topology.in_numa))
    needed = -(-acc.needed // group)
    available = sum(1 for cpus in topology.in_numa.values() if cpus & acc.free)
    return -(-needed // per_node), min(needed, available)


def _best_combination(acc: Accumulator, nodes: list[int], size: int, way: Way) -> Choice | None:
    """The combination of `size` nodes that leaves the machine most even; with align-by-socket, inside a socket first."""
    free = {node: (acc.topology.in_numa[node] & acc.free).bit_count() for node in nodes}
    best: Choice | None = None
    for combination in combinations(nodes, size):
        if best and best.balance == 0 and (not way.align_by_socket or best.one_socket):
            break
        tried = _try(acc, free, combination, way)
        if tried and _better(tried, best, way):
            best = tried
    return best


def _better(tried: Choice, best: Choice | None, way: Way) -> bool:
    if way.align_by_socket and tried.one_socket != (best is not None and best.one_socket):
        return tried.one_socket
    return tried.balance < (best.balance if best else inf)


def _try(acc: Accumulator, free: dict[int, int], combination: Combination, way: Way) -> Choice | None:
    """What taking from these nodes would leave; None = they cannot give it in equal shares.

    A node that spans sockets is listed under each, and may stand in a combination twice: it then counts twice, as in the kubelet.
    """
    combo = combination.nodes
    group = way.group
    if sum(free[node] for node in set(combo)) < acc.needed:
        return None
    if sum(free[node] // group for node in combo) * group < acc.needed:
        return None
    share = acc.needed // len(combo) // group * group
    if way.align_by_socket:
        share = min(share, *(free[node] // group * group for node in combo))
    if any(free[node] < share for node in combo):
        return None
    left = {node: count - share * combo.count(node) for node, count in free.items()}
    rest = acc.needed - share * len(combo)
    one_socket = way.align_by_socket and _in_one_socket(acc.topology, combo)
    if not rest:
        return Choice(spread_of(list(left.values())), combination, None, one_socket)
    able = [node for node in combo if left[node] >= group]
    balance, subset = _best_rest(left, able, rest, group)
    return Choice(balance, combination, subset, one_socket)


def _in_one_socket(topology: CpuTopology, combo: Sequence[int]) -> bool:
    """`AreNUMANodesInSameSocket`."""
    cpus = union(topology.in_numa[node] for node in combo)
    return sum(1 for within in topology.in_socket.values() if within & cpus) <= 1


def _best_rest(
    left: dict[int, int], able: list[int], rest: int, group: int
) -> tuple[float, Combination | None]:
    """The subset of nodes, as many as possible, that gives the rest and leaves the machine most even."""
    best: tuple[float, Combination | None] = (inf, None)
    for size in range(len(able), 0, -1):
        for subset in combinations(able, size):
            if sum(left[node] for node in subset.nodes) < rest:
                continue
            balance = spread_of(list(_handed_out(left, subset.nodes, rest, group).values()))
            if balance < best[0]:
                best = balance, subset
    return best


def _handed_out(left: dict[int, int], nodes: list[int], rest: int, group: int) -> dict[int, int]:
    """The rest given in rounds of one group a node."""
    left = dict(left)
    while rest > 0:
        before = rest
        for node in nodes:
            if rest and left[node] >= group:
                left[node] -= group
                rest -= group
        if rest == before:
            raise HangError(HANG)
    return left


def _take(acc: Accumulator, chosen: Choice, way: Way) -> int:
    combo = chosen.combination.nodes
    in_numa = acc.topology.in_numa
    number = acc.needed
    share = number // len(combo) // way.group * way.group
    if way.capped:
        share = min(
            share, *((in_numa[node] & acc.free).bit_count() // way.group * way.group for node in combo)
        )
    for node in combo:
        _take_from(acc, in_numa[node], share, way)
    rest = number - share * len(combo)
    nodes = chosen.rest.nodes if chosen.rest else []
    while rest > 0:
        before = rest
        for node in nodes:
            if rest and (in_numa[node] & acc.free).bit_count() >= way.group:
                _take_from(acc, in_numa[node], way.group, way)
                rest -= way.group
        if rest == before:
            raise HangError(HANG)
    if acc.needed:
        kind = "not enough" if acc.needed > 0 else "too many"
        raise AllocationError(f"accounting error, {kind} CPUs allocated, remaining: {acc.needed}")
    return acc.taken


def _take_from(acc: Accumulator, node: int, number: int, way: Way) -> None:
    """From one node, as if nothing else were there; a node that cannot give it gives nothing (the kubelet drops the error)."""
    try:
        acc.take(take_packed(acc.topology, node & acc.free, number, spread=way.spread))
    except AllocationError:
        return


def spread_of(counts: list[int]) -> float:
    """`standardDeviation`, of the population; mean and result rounded to three places."""
    mean = _rounded(sum(counts) / len(counts))
    return _rounded(sqrt(sum((count - mean) ** 2 for count in counts) / len(counts)))


def _rounded(value: float) -> float:
    """Go's math.Round of thousandths: halves go up."""
    scaled = value * 1000
    whole = floor(scaled)
    return (whole + (scaled - whole >= 0.5)) / 1000


def combinations(items: Sequence[int], size: int) -> Iterator[Combination]:
    """`iterateCombinations`: all combinations in order, in the memory that Go's append would put them in."""

    def extended(memory: list[int], length: int, start: int) -> Iterator[Combination]:
        if length == size:
            yield Combination(memory, size)
            return
        for index in range(start, len(items) - (size - length) + 1):
            grown = memory if length < len(memory) else memory + [0] * max(1, length)
            grown[length] = items[index]
            yield from extended(grown, length + 1, index + 1)

    if size > 0:
        yield from extended([], 0, 0)
