"""What `/proc/cpuinfo` tells where sysfs is silent: CPU ids, sockets and cores."""

from __future__ import annotations

import msgspec

from numaagent.config import Roots
from numaagent.readers import kerneltext
from numaagent.readers.files import Source
from numacore.topology import Cpu

LIMIT = 8 * 1024 * 1024
"""1,024 CPUs print about 1.5 MiB."""


def tables(source: Source, roots: Roots) -> dict[int, dict[str, str]]:
    """The blocks of `/proc/cpuinfo` by CPU id."""
    text = source.text(f"{roots.proc}/cpuinfo", limit=LIMIT) or ""
    blocks = kerneltext.cpuinfo(text)
    return {int(block["processor"]): block for block in blocks if block.get("processor", "").isdecimal()}


def ids(source: Source, roots: Roots) -> list[int]:
    """CPU ids of a kernel without sysfs."""
    return sorted(tables(source, roots))


def complete(source: Source, roots: Roots, cpus: tuple[Cpu, ...]) -> tuple[Cpu, ...]:
    """Fills in `physical id` and `core id` for online CPUs of which sysfs names neither socket nor core."""
    if not any(_silent(cpu) for cpu in cpus):
        return cpus
    known = tables(source, roots)
    return tuple(_completed(cpu, known.get(cpu.id, {})) if _silent(cpu) else cpu for cpu in cpus)


def _silent(cpu: Cpu) -> bool:
    return cpu.online and cpu.socket is None and cpu.core is None


def _completed(cpu: Cpu, table: dict[str, str]) -> Cpu:
    socket, core = table.get("physical id", ""), table.get("core id", "")
    return msgspec.structs.replace(
        cpu,
        socket=int(socket) if socket.isdecimal() else None,
        core=int(core) if core.isdecimal() else None,
    )
