"""Which CPUs Volcano believes that a container gets.

Rules: volcano 1.15.1, pkg/scheduler/plugins/numaaware/provider/cpumanager/cpu_assignment.go: an old kubelet's `takeByTopology` whose tests for
whole sockets and whole cores became "the id of the socket, or core, is also the id of a free CPU".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from numacore.cpuset import CpuSet
from numacore.volcano.order import slice_order
from numacore.volcano.topology import Index

_STARTS = 120
"""How many starting orders of sockets are tried where Go's map order decides; all of them up to five sockets."""


def takes(index: Index, available: int, number: int) -> tuple[int | None, ...]:
    """Every set that may come out when `number` of the CPUs in `available` are taken; (None,) = there are not enough.

    It is one set, except where the order of sockets depends on the order of a Go map. A set can be larger than `number`: a core
    id that two sockets share is taken in both.
    """
    available &= index.every
    if number < 1:
        return (0,)
    if number > available.bit_count():
        return (None,)
    taking = _Taking(index, available, number)
    taking.whole_sockets()
    if taking.done() or not taking.wants(index.per_core):
        return (taking.single_cpus(),)
    found: dict[int | None, None] = {}
    for sockets in _socket_orders(taking):
        branch = taking.copy()
        branch.whole_cores(sockets)
        found[branch.single_cpus()] = None
    return tuple(found)


class _Taking:
    """CPUs taken so far, those still free, and how many are wanted."""

    def __init__(self, index: Index, free: int, wanted: int, taken: int = 0) -> None:
        self.index = index
        self.free = free
        self.wanted = wanted
        self.taken = taken

    def copy(self) -> _Taking:
        return _Taking(self.index, self.free, self.wanted, self.taken)

    def done(self) -> bool:
        return self.wanted < 1

    def wants(self, number: int) -> bool:
        return self.wanted >= number

    def take(self, cpus: int) -> None:
        self.taken |= cpus
        self.free &= ~cpus
        self.wanted -= cpus.bit_count()

    def whole_sockets(self) -> None:
        free = [socket for socket in self.sockets() if _has(self.free, socket)]
        for socket in free:
            if self.done() or not self.wants(self.index.per_socket):
                return
            self.take(self.index.sockets[socket] & self.free)

    def whole_cores(self, sockets: Iterable[int]) -> None:
        free = [core for socket in sockets for core in self.cores(socket)]
        for core in free:
            if self.done() or not self.wants(self.index.per_core):
                return
            self.take(self.index.cores[core] & self.free)

    def single_cpus(self) -> int | None:
        """Takes what is still wanted CPU by CPU. Returns everything taken, None = there was not enough."""
        if not self.done():
            for cpu in [cpu for core in self.loose_cores() for cpu in self.free_in(core)]:
                self.take(1 << cpu)
                if self.done():
                    break
        return self.taken if self.done() else None

    def sockets(self) -> list[int]:
        """Sockets with a free CPU, ascending."""
        return sorted(socket for socket, cpus in self.index.sockets.items() if cpus & self.free)

    def cores(self, socket: int) -> list[int]:
        """Core ids of free CPUs of the socket that are ids of free CPUs too, ascending."""
        of_socket = self.index.sockets[socket] & self.free
        return sorted(
            core for core, cpus in self.index.cores.items() if cpus & of_socket and _has(self.free, core)
        )

    def free_in(self, core: int) -> CpuSet:
        return CpuSet.of_bits(self.index.cores[core] & self.free)

    def loose_cores(self) -> list[int]:
        """Core ids with a free CPU: near to what was taken first, then from the fullest socket and core."""
        keys = {core: self._key(core) for core, cpus in self.index.cores.items() if cpus & self.free}
        return slice_order(sorted(keys), lambda a, b: _comes_before(keys[a], keys[b]))

    def _key(self, core: int) -> tuple[int, ...]:
        number = self.index.socket_of(core)
        socket = self.index.sockets[number]
        return (
            -(socket & self.taken).bit_count(),
            (socket & self.free).bit_count(),
            (self.index.cores[core] & self.free).bit_count(),
            number,
            core,
        )


def _socket_orders(taking: _Taking) -> Iterable[tuple[int, ...]]:
    """The orders in which `freeCores` may go through the sockets, the one that it means first.

    It sorts a list in the order of a Go map by "fewer free cores *or* lower id". Sockets that each come before the other end up in an
    order that depends on where they started.
    """
    keys = {socket: (len(taking.cores(socket)), socket) for socket in taking.sockets()}
    meant = sorted(keys, key=lambda socket: keys[socket])
    found = {tuple(meant): None}
    if any(socket > other for socket, other in itertools.pairwise(meant)):
        for start in itertools.islice(itertools.permutations(meant), _STARTS):
            found[tuple(slice_order(list(start), lambda a, b: _comes_before(keys[a], keys[b])))] = None
    return found


def _comes_before(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Volcano's comparison: a chain of "or", so that both of two items may come before the other."""
    return any(mine < theirs for mine, theirs in zip(one, other, strict=True))


def _has(cpus: int, number: int) -> bool:
    return number >= 0 and bool(cpus >> number & 1)
