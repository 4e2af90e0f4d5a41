"""Words in which server models are written down."""

from __future__ import annotations

from numacore.topology import Attributes, Device, HugePages, Performance
from numasim.machine import GIB, Level, Part, Plan, memory

MIB = 1 << 20
Rows = tuple[tuple[int, ...], ...]


def levels(l1d: int, l1i: int, l2: int, *last: Level) -> tuple[Level, ...]:
    own = (
        Level(1, "Data", l1d, "core"),
        Level(1, "Instruction", l1i, "core"),
        Level(2, "Unified", l2, "core"),
    )
    return own + last


def grouped(parts: tuple[Part, ...], near: int, far: int) -> Rows:
    """Distances of parts in sockets: `near` within one socket, `far` to another."""
    return tuple(
        tuple(10 if a.id == b.id else near if a.socket == b.socket else far for b in parts) for a in parts
    )


def even(sockets: int, per_socket: int, cores: int, gib: float) -> tuple[Part, ...]:
    return tuple(
        Part(id=i, socket=i // per_socket, cores=cores, memory=gib) for i in range(sockets * per_socket)
    )


def attributes(
    plan: Plan,
    model: str,
    *,
    arch: str = "x86_64",
    kernel: str = "6.12.41-1-amd64",
    os: str = "Debian GNU/Linux 13 (trixie)",
    devices: tuple[Device, ...] = (),
    huge: dict[int, dict[int, int]] | None = None,
    sizes: tuple[int, ...] = (2 * MIB, GIB),
    performance: tuple[Performance, ...] = (),
    tiers: dict[int, int] | None = None,
) -> Attributes:
    """Attributes of a plan. `huge`: pages of each size by NUMA node; the kernel offers `sizes` on every node."""
    pages = {
        part.id: tuple(HugePages(size, *[(huge or {}).get(part.id, {}).get(size, 0)] * 2) for size in sizes)
        for part in plan.parts
        if part.memory
    }
    return Attributes(
        memory=memory(plan),
        hugepages=pages,
        devices=devices,
        performance=performance,
        memory_tiers=tiers or {},
        arch=arch,
        kernel=kernel,
        os=os,
        model=model if arch == "ppc64le" else f"Simulated {model}",
    )
