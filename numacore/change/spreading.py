"""`reservedMemory`: the amount that Node Allocatable demands, spread over NUMA nodes so that its sum is exact.

Rule: kubelet 1.37, cm/memorymanager/memory_manager.go `validateReservedMemory`, `convertReserved`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numacore.diagnosis import Reason
from numacore.kubelet import resource
from numacore.kubelet.machine import Machine, Node

MIB = 1 << 20


class SpreadError(ValueError):
    """Memory that cannot be reserved as it is wanted."""

    def __init__(self, code: str, **values: str | int | float) -> None:
        super().__init__(code)
        self.reason = Reason(code, values)


def spread(how: str | Mapping[int, int], need: int, machine: Machine) -> dict[int, int]:
    """Bytes by NUMA node; `how`: "even", "first", or Mi by NUMA node. What is less than one Mi goes to the first of them.

    Raises SpreadError.
    """
    room = {each.id: _room(each) for each in machine.nodes}
    if isinstance(how, str):
        homes = [each.id for each in machine.nodes if each.cores and room[each.id]] or [
            numa for numa, free in room.items() if free
        ]
        made = _filled(
            _even(need, homes) if how == "even" else {homes[0]: need} if homes else {}, room, homes
        )
        if sum(made.values()) != need:
            raise SpreadError("ask-memory-too-small", need=need, room=sum(room.values()))
        return made
    return _as_named(how, need, room)


def _as_named(how: Mapping[int, int], need: int, room: Mapping[int, int]) -> dict[int, int]:
    for numa in sorted(how):
        if numa not in room:
            raise SpreadError("ask-memory-no-node", numa=numa, nodes=", ".join(map(str, room)))
    made = {numa: how[numa] * MIB for numa in sorted(how)}
    rest = need - sum(made.values())
    if not 0 <= rest < MIB:
        raise SpreadError("ask-memory-sum", have=sum(made.values()), need=need)
    made[min(made)] += rest
    for numa, size in made.items():
        if size > room[numa]:
            raise SpreadError("ask-memory-node-too-small", numa=numa, size=size, room=room[numa])
    return made


def _room(node: Node) -> int:
    """What can be reserved: huge pages lie in the same memory and cannot be."""
    return max(0, node.memory - sum(size * 1024 * number for size, number in node.hugepages.items()))


def _even(need: int, homes: Iterable[int]) -> dict[int, int]:
    homes = list(homes)
    if not homes:
        return {}
    share, more = divmod(need // MIB, len(homes))
    made = {numa: (share + (at < more)) * MIB for at, numa in enumerate(homes)}
    made[homes[0]] += need % MIB
    return made


def _filled(wanted: Mapping[int, int], room: Mapping[int, int], homes: Iterable[int]) -> dict[int, int]:
    """What does not fit into its NUMA node goes to the next that has room."""
    made = {numa: min(size, room[numa]) for numa, size in wanted.items()}
    rest = sum(wanted.values()) - sum(made.values())
    for numa in [*homes, *room]:
        more = min(rest, room[numa] - made.get(numa, 0))
        if more > 0:
            made[numa] = made.get(numa, 0) + more
            rest -= more
    return {numa: size for numa, size in sorted(made.items()) if size}


def entries(sizes: Mapping[int, int]) -> list[dict[str, Any]]:
    """As the field's value."""
    return [{"numaNode": numa, "limits": {resource.MEMORY: text(size)}} for numa, size in sizes.items()]


def text(size: int) -> str:
    """A number of bytes as a quantity that Go holds as an int64."""
    for unit, shift in (("Mi", 20), ("Ki", 10)):
        if size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def amounts(stands: Iterable[Mapping[str, Any]]) -> dict[int, int] | None:
    """Bytes by NUMA node of what stands there; None = other kinds than memory, or no whole bytes, stand there too."""
    made: dict[int, int] = {}
    for each in stands:
        numa, limits = each.get("numaNode", 0), each.get("limits") or {}
        if set(limits) != {resource.MEMORY} or numa in made:
            return None
        size = resource.parse(str(limits[resource.MEMORY])).int64
        if size is None:
            return None
        made[numa] = size
    return dict(sorted(made.items()))


def holds(stands: Iterable[Mapping[str, Any]], need: int, machine: Machine) -> bool:
    """Whether what stands there is what the kubelet demands, on NUMA nodes that can bear it."""
    found = amounts(stands)
    room = {each.id: _room(each) for each in machine.nodes}
    return (
        found is not None
        and sum(found.values()) == need
        and all(0 < size <= room.get(numa, -1) for numa, size in found.items())
    )
