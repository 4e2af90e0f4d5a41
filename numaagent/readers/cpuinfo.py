"""What `/proc/cpuinfo` tells where sysfs is silent: CPU ids, sockets and cores."""

from __future__ import annotations

import msgspec

from numaagent.config import Roots
from numaagent.readers import kerneltext
from numaagent.readers.files import Source
from numacore.cpuset import MAX_ID
from numacore.topology import Cpu

LIMIT = 8 * 1024 * 1024
"""1,024 CPUs print about 1.5 MiB."""


def tables(source: Source, roots: Roots) -> dict[int, dict[str, str]]:
    """The blocks of `/proc/cpuinfo` by CPU id."""
    text = source.text(f"{roots.proc}/cpuinfo", limit=LIMIT) or ""
    blocks = kerneltext.cpuinfo(text)
    numbered = ((_number(block, "processor"), block) for block in blocks)
    return {cpu: block for cpu, block in numbered if cpu is not None and cpu <= MAX_ID}


def ids(source: Source, roots: Roots) -> list[int]:
    """CPU ids of a kernel without sysfs."""
    return sorted(tables(source, roots))


def complete(source: Source, roots: Roots, cpus: tuple[Cpu, ...]) -> tuple[Cpu, ...]:
    """Fills in `physical id` and `core id` for online CPUs whose socket or core sysfs leaves out."""
    if all(cpu.socket is not None and cpu.core is not None for cpu in cpus if cpu.online):
        return cpus
    known = tables(source, roots)
    return tuple(_completed(cpu, known.get(cpu.id, {})) if cpu.online else cpu for cpu in cpus)


def _completed(cpu: Cpu, table: dict[str, str]) -> Cpu:
    socket = _number(table, "physical id") if cpu.socket is None else cpu.socket
    core = _number(table, "core id") if cpu.core is None else cpu.core
    return msgspec.structs.replace(cpu, socket=socket, core=core)


def _number(table: dict[str, str], name: str) -> int | None:
    text = table.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 10 else None
