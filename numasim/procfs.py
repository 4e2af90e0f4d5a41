"""Writes `/proc` and `/etc` of a node, and the files of `/sys` that move: memory and allocation counters of NUMA nodes."""

from __future__ import annotations

from numasim import cgroups, kubelet, sysfs
from numasim.files import Tree, lines
from numasim.node import Node

HZ = 100
KIB = 1024


def write_base(tree: Tree, node: Node) -> None:
    """Writes what stays as it is."""
    attributes = node.spec.machine.attributes
    kernel, system = attributes.kernel or "6.1.0", attributes.os or "Linux"
    tree.put("proc/version", f"Linux version {kernel} (build@example) (gcc 12.2.0) #1 SMP\n")
    tree.put("proc/sys/kernel/osrelease", f"{kernel}\n")
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
    if node.spec.kubernetes:
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
        return "".join(
            f"processor\t: {cpu.id}\nBogoMIPS\t: 200.00\nCPU implementer\t: 0x48\n\n" for cpu in online
        )
    return "".join(
        f"processor\t: {cpu.id}\nmodel name\t: {model}\nphysical id\t: {cpu.socket}\ncore id\t\t: {cpu.core}\n\n"
        for cpu in online
    )


def update(tree: Tree, node: Node, boot: float) -> None:
    """Brings CPU times and memory up to date. `boot`: wall clock of the node's start, seconds since 1970."""
    tree.keep("proc/stat", _stat(node, boot))
    memory = _memory(node)
    tree.keep("proc/meminfo", _meminfo(node, memory))
    if node.topology.numa:
        for numa in node.topology.numa_ids:
            folder = f"{sysfs.NODE}/node{numa}"
            tree.keep(f"{folder}/meminfo", _node_meminfo(node, numa, memory[numa]))
            tree.keep(f"{folder}/numastat", _numastat(node, numa))
        for numa, sizes in node.hugepages().items():
            for pages in sizes:
                place = f"{sysfs.NODE}/node{numa}/hugepages/hugepages-{pages.page_size // KIB}kB"
                tree.keep(f"{place}/free_hugepages", f"{pages.free}\n")


def _stat(node: Node, boot: float) -> str:
    elapsed = int((node.uptime + node.now) * HZ)
    rows = [_ticks(busy, elapsed) for busy in node.meter.busy(node.now)]
    each = "".join(f"cpu{cpu} {row}" for cpu, row in zip(node.topology.online, map(_row, rows), strict=True))
    tail = f"intr {elapsed * 40} 0 0\nctxt {elapsed * 90}\nbtime {int(boot)}\nprocesses {elapsed // 8}\n"
    rest = "procs_running 3\nprocs_blocked 0\nsoftirq 4200000 0 0 0 0 0 0 0 0 0 0\n"
    return f"cpu  {_row(tuple(map(sum, zip(*rows, strict=True))))}{each}{tail}{rest}"


def _ticks(busy: float, elapsed: int) -> tuple[int, ...]:
    """user, system, idle, iowait, softirq of a CPU."""
    ticks = int(busy * HZ)
    system, soft = ticks // 6, ticks // 50
    idle = max(0, elapsed - ticks)
    return ticks - system - soft, system, idle - idle // 400, idle // 400, soft


def _row(ticks: tuple[int, ...]) -> str:
    user, system, idle, wait, soft = ticks
    return f"{user} 0 {system} {idle} {wait} 0 {soft} 0 0 0\n"


def _memory(node: Node) -> dict[int, tuple[int, int, int]]:
    """(total, anonymous, page cache) of each NUMA node, bytes; huge pages are apart."""
    size = node.spec.machine.page_size
    anon = dict.fromkeys(node.topology.numa_ids, 0)
    file = dict(anon)
    for each in node.containers():
        for numa, pages in cgroups.pages_of(node, each).items():
            anon[numa] += int(pages * cgroups.ANON) * size
            file[numa] += (pages - int(pages * cgroups.ANON)) * size
    found = {}
    for numa in anon:
        total = node.spec.machine.attributes.memory.get(numa) or 0
        found[numa] = (total, anon[numa] + total // 100, file[numa] + total // 40)
    return found


def _huge_bytes(node: Node, numa: int) -> int:
    return sum(p.page_size * (p.total or 0) for p in node.spec.machine.attributes.hugepages.get(numa, ()))


def _used(node: Node, numa: int, memory: tuple[int, int, int]) -> int:
    total, anon, file = memory
    return min(total - total // 200, anon + file + _huge_bytes(node, numa) + total // 100)


def _node_meminfo(node: Node, numa: int, memory: tuple[int, int, int]) -> str:
    total, anon, file = memory
    used = _used(node, numa, memory)
    values = {
        "MemTotal": total,
        "MemFree": total - used,
        "MemUsed": used,
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
    huge = node.hugepages().get(numa, ())
    standard = next((p for p in huge if p.page_size == 2 << 20), None)
    if standard is not None:
        rows += [
            f"Node {numa} HugePages_Total: {standard.total:>5}",
            f"Node {numa} HugePages_Free:  {standard.free:>5}",
        ]
        rows.append(f"Node {numa} HugePages_Surp:      0")
    return lines(rows)


def _meminfo(node: Node, memory: dict[int, tuple[int, int, int]]) -> str:
    total = sum(each[0] for each in memory.values())
    used = sum(_used(node, numa, each) for numa, each in memory.items())
    cached = sum(each[2] for each in memory.values())
    values = {
        "MemTotal": total,
        "MemFree": total - used,
        "MemAvailable": total - used + cached * 3 // 4,
        "Buffers": total // 2000,
        "Cached": cached,
        "SwapTotal": 0,
        "SwapFree": 0,
        "AnonPages": sum(each[1] for each in memory.values()),
    }
    return lines(f"{name + ':':<15} {value // KIB:>8} kB" for name, value in values.items())


def _numastat(node: Node, numa: int) -> str:
    """Allocations since boot: they go with the memory in use and with time; few go astray."""
    elapsed = int(node.uptime + node.now)
    memory = node.spec.machine.attributes.memory.get(numa) or 0
    hit = elapsed * (memory // (32 << 20)) if memory else 0
    away = hit // (40 + 7 * (numa % 5))
    values = {
        "numa_hit": hit,
        "numa_miss": away // 9,
        "numa_foreign": away // 11,
        "interleave_hit": 4000 + numa if memory else 0,
        "local_node": hit - away,
        "other_node": away,
    }
    return lines(f"{name} {value}" for name, value in values.items())
