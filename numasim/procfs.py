"""Writes `/proc` and `/etc` of a node, and the files of `/sys` that move: memory and allocation counters of NUMA nodes."""

from __future__ import annotations

from numacore.usage import MemoryUse
from numasim import cgroups, kubelet, sysfs, usage
from numasim.files import Tree, lines
from numasim.node import Node

KIB = 1024
ARM = {"Kunpeng-920": ("0x48", "0xd01"), "Neoverse-V2": ("0x41", "0xd4f")}
"""Implementer and part number by which an Arm kernel tells a CPU."""


def write_base(tree: Tree, node: Node) -> None:
    """Writes what stays as it is."""
    attributes = node.spec.machine.attributes
    kernel, system = attributes.kernel or "6.1.0", attributes.os or "Linux"
    tree.put("proc/version", f"Linux version {kernel} (build@example) (gcc 12.2.0) #1 SMP\n")
    tree.put("proc/sys/kernel/osrelease", f"{kernel}\n")
    tree.put("proc/sys/kernel/arch", f"{attributes.arch}\n")
    tree.put("proc/sys/kernel/hostname", f"{node.spec.name}\n")
    tree.put("proc/sys/kernel/random/boot_id", f"{node.boot_id}\n")
    tree.put("proc/cpuinfo", _cpuinfo(node))
    tree.put("proc/mounts", lines(_mounts(node)))
    tree.put("proc/1/comm", "systemd\n")
    tree.put("proc/1/cgroup", _membership(node, "init.scope"))
    tree.put("etc/machine-id", f"{node.machine_id}\n")
    tree.put("etc/hostname", f"{node.spec.name}\n")
    identity = system.split()[0].lower()
    tree.put("etc/os-release", f'PRETTY_NAME="{system}"\nNAME="{system.rpartition(" ")[0]}"\nID={identity}\n')
    _write_kubelet_process(tree, node)


def _write_kubelet_process(tree: Tree, node: Node) -> None:
    pid = next(service.pid for service in node.services if service.name == "kubelet.service")
    tree.put(f"proc/{pid}/comm", "kubelet\n")
    tree.put(f"proc/{pid}/cmdline", "".join(f"{word}\0" for word in kubelet.command_line(node.settings)))
    tree.put(f"proc/{pid}/cgroup", _membership(node, "system.slice/kubelet.service"))


def _membership(node: Node, path: str) -> str:
    if node.spec.cgroup == 2:
        return f"0::/{path}\n"
    return lines(
        f"{i}:{name.replace('systemd', 'name=systemd')}:/{path}"
        for i, name in enumerate(cgroups.V1_CONTROLLERS, 1)
    )


def _mounts(node: Node) -> list[str]:
    base = [
        "sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0",
        "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0",
        "/dev/sda2 / ext4 rw,relatime 0 0",
    ]
    if node.spec.cgroup == 2:
        return [*base, "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate 0 0"]
    options = {"systemd": "xattr,name=systemd"}
    return [
        *base,
        "tmpfs /sys/fs/cgroup tmpfs ro,nosuid,nodev,noexec,mode=755 0 0",
        *(
            f"cgroup /sys/fs/cgroup/{name} cgroup rw,nosuid,nodev,noexec,relatime,{options.get(name, name)} 0 0"
            for name in cgroups.V1_CONTROLLERS
        ),
    ]


def _cpuinfo(node: Node) -> str:
    model = node.spec.machine.cpu_model
    arch = node.spec.machine.attributes.arch
    online = [cpu for cpu in node.topology.cpus if cpu.online]
    if arch == "ppc64le":
        return "".join(
            f"processor\t: {cpu.id}\ncpu\t\t: {model}\nclock\t\t: 3000.000000MHz\n\n" for cpu in online
        )
    if arch == "aarch64":
        maker, part = ARM[model]
        rows = f"BogoMIPS\t: 200.00\nCPU implementer\t: {maker}\nCPU architecture: 8\nCPU part\t: {part}\n"
        return "".join(f"processor\t: {cpu.id}\n{rows}\n" for cpu in online)
    return "".join(
        f"processor\t: {cpu.id}\nmodel name\t: {model}\nphysical id\t: {cpu.socket}\ncore id\t\t: {cpu.core}\n\n"
        for cpu in online
    )


def update(tree: Tree, node: Node, boot: float) -> None:
    """Brings CPU times and memory up to date. `boot`: wall clock of the node's start, seconds since 1970."""
    tree.keep("proc/stat", _stat(node, boot))
    memory = usage.memory(node)
    tree.keep("proc/meminfo", _meminfo(memory))
    if not node.topology.numa:
        return
    for numa, use in memory.items():
        folder = f"{sysfs.NODE}/node{numa}"
        tree.keep(f"{folder}/meminfo", _node_meminfo(numa, use))
        tree.keep(f"{folder}/numastat", lines(f"{name} {value}" for name, value in use.counters.items()))
        for pages in use.hugepages:
            tree.keep(
                f"{folder}/hugepages/hugepages-{pages.page_size // KIB}kB/free_hugepages", f"{pages.free}\n"
            )


def _stat(node: Node, boot: float) -> str:
    times = usage.cpu_times(node)
    rows = [_split(busy, idle) for busy, idle in zip(times.busy, times.idle, strict=True)]
    each = "".join(f"cpu{cpu} {row}" for cpu, row in zip(times.cpus, map(_row, rows), strict=True))
    elapsed = usage.elapsed_ticks(node)
    tail = f"intr {elapsed * 40} 0 0\nctxt {elapsed * 90}\nbtime {int(boot)}\nprocesses {elapsed // 8}\n"
    rest = "procs_running 3\nprocs_blocked 0\nsoftirq 4200000 0 0 0 0 0 0 0 0 0 0\n"
    return f"cpu  {_row(tuple(map(sum, zip(*rows, strict=True))))}{each}{tail}{rest}"


def _split(busy: int, idle: int) -> tuple[int, ...]:
    """user, system, idle, iowait, softirq of a CPU."""
    system, soft = busy // 6, busy // 50
    return busy - system - soft, system, idle - idle // 400, idle // 400, soft


def _row(ticks: tuple[int, ...]) -> str:
    user, system, idle, wait, soft = ticks
    return f"{user} 0 {system} {idle} {wait} 0 {soft} 0 0 0\n"


def _node_meminfo(numa: int, use: MemoryUse) -> str:
    total, anon, file = use.total or 0, use.anon or 0, use.file or 0
    values = {
        "MemTotal": total,
        "MemFree": use.free or 0,
        "MemUsed": use.used or 0,
        "SwapCached": 0,
        "Active": anon + file // 2,
        "Inactive": file // 2,
        "Dirty": 0,
        "Writeback": 0,
        "FilePages": file,
        "Mapped": file // 3,
        "AnonPages": anon,
        "Shmem": 0,
        "KernelStack": total // 20000,
        "PageTables": anon // 500,
        "Slab": total // 200,
    }
    rows = [f"Node {numa} {name + ':':<15} {value // KIB:>8} kB" for name, value in values.items()]
    standard = next((pages for pages in use.hugepages if pages.page_size == 2 << 20), None)
    if standard is not None:
        rows.append(f"Node {numa} HugePages_Total: {standard.total:>5}")
        rows.append(f"Node {numa} HugePages_Free:  {standard.free:>5}")
        rows.append(f"Node {numa} HugePages_Surp:      0")
    return lines(rows)


def _meminfo(memory: dict[int, MemoryUse]) -> str:
    total, free = (
        sum(use.total or 0 for use in memory.values()),
        sum(use.free or 0 for use in memory.values()),
    )
    cached = sum(use.file or 0 for use in memory.values())
    values = {
        "MemTotal": total,
        "MemFree": free,
        "MemAvailable": free + cached * 3 // 4,
        "Buffers": total // 2000,
        "Cached": cached,
        "SwapTotal": 0,
        "SwapFree": 0,
        "AnonPages": sum(use.anon or 0 for use in memory.values()),
    }
    return lines(f"{name + ':':<15} {value // KIB:>8} kB" for name, value in values.items())
