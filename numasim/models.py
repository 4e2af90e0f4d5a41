"""Named server models. Each stands for a kind of machine that a page or a rule must get right."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from numacore.cpuset import CpuSet
from numacore.topology import Attributes, Cache, Device, HugePages, Performance
from numasim import pci
from numasim.machine import GIB, Level, Machine, Part, Plan, build, memory, merge, without_numa

MIB = 1 << 20
Rows = tuple[tuple[int, ...], ...]


def _levels(l1d: int, l1i: int, l2: int, *last: Level) -> tuple[Level, ...]:
    own = (
        Level(1, "Data", l1d, "core"),
        Level(1, "Instruction", l1i, "core"),
        Level(2, "Unified", l2, "core"),
    )
    return own + last


def _grouped(parts: tuple[Part, ...], near: int, far: int) -> Rows:
    """Distances of parts in sockets: `near` within one socket, `far` to another."""
    return tuple(
        tuple(10 if a.id == b.id else near if a.socket == b.socket else far for b in parts) for a in parts
    )


def _even(sockets: int, per_socket: int, cores: int, gib: float) -> tuple[Part, ...]:
    return tuple(
        Part(id=i, socket=i // per_socket, cores=cores, memory=gib) for i in range(sockets * per_socket)
    )


def _attributes(
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


def xeon_snc() -> Machine:
    """Two sockets, each split into two NUMA nodes by sub-NUMA clustering; the last-level cache spans both."""
    parts = _even(2, 2, 14, 128)
    plan = Plan(
        parts=parts,
        levels=_levels(48, 32, 2048, Level(3, "Unified", 53760, "socket")),
        distances=_grouped(parts, 12, 21),
        threads=2,
    )
    devices = pci.cards(
        ("nic-e810", 0),
        ("nvme", 0),
        ("a100", 0),
        ("a100", 1),
        ("nvme", 2),
        ("nic-100g", 2),
        ("a100", 2),
        ("a100", 3),
    )
    huge = {0: {2 * MIB: 8192}, 2: {GIB: 16}}
    return Machine(
        name="xeon-snc",
        title="2-socket Xeon with sub-NUMA clustering, 112 CPUs, 4 NUMA nodes, 4 GPUs",
        topology=build(plan),
        attributes=_attributes(plan, "PowerEdge R760xa", devices=devices, huge=huge),
        cpu_model="INTEL(R) XEON(R) GOLD 6530",
    )


def epyc_nps4() -> Machine:
    """Two 96-core EPYC with four NUMA nodes each; eight cores share a last-level cache."""
    parts = _even(2, 4, 24, 96)
    plan = Plan(
        parts=parts,
        levels=_levels(32, 32, 1024, Level(3, "Unified", 32768, "complex")),
        distances=_grouped(parts, 12, 32),
        threads=2,
        complex=8,
    )
    devices = pci.cards(("nic-100g", 1), ("nvme", 1), ("nvme", 2), ("nic-100g", 5), ("nvme", 6), ("nvme", 7))
    return Machine(
        name="epyc-nps4",
        title="2-socket EPYC 9654 at NPS4, 384 CPUs, 8 NUMA nodes",
        topology=build(plan),
        attributes=_attributes(plan, "ProLiant DL385 Gen11", devices=devices, huge={4: {GIB: 8}}),
        cpu_model="AMD EPYC 9654 96-Core Processor",
    )


def kunpeng_920() -> Machine:
    """Two sockets of 64 cores without SMT, four cores to a cluster, two NUMA nodes to a socket."""
    parts = _even(2, 2, 32, 64)
    rows = ((10, 12, 20, 22), (12, 10, 22, 24), (20, 22, 10, 12), (22, 24, 12, 10))
    plan = Plan(
        parts=parts,
        levels=_levels(64, 64, 512, Level(3, "Unified", 32768, "numa")),
        distances=rows,
        has_die=False,
        cluster=4,
    )
    devices = pci.cards(
        ("nic-hns", 0),
        ("nvme", 0),
        ("ascend", 0),
        ("ascend", 1),
        ("nic-hns", 2),
        ("ascend", 2),
        ("ascend", 3),
    )
    return Machine(
        name="kunpeng-920",
        title="2-socket Kunpeng 920, 128 CPUs, 4 NUMA nodes, 4 NPUs",
        topology=build(plan),
        attributes=_attributes(
            plan,
            "TaiShan 200 (Model 2280)",
            arch="aarch64",
            kernel="5.10.0-216.0.0.115.oe2203sp4.aarch64",
            os="openEuler 22.03 (LTS-SP4)",
            devices=devices,
            huge={1: {2 * MIB: 4096}},
            sizes=(64 * 1024, 2 * MIB, 32 * MIB, GIB),
        ),
        cpu_model="Kunpeng-920",
    )


def grace() -> Machine:
    """Two 72-core Grace with four GPUs whose memory is a NUMA node each, with ids eight apart."""
    cores = (Part(id=0, socket=0, cores=72, memory=480), Part(id=1, socket=1, cores=72, memory=480))
    gpus = tuple(Part(id=i, memory=186) for i in (2, 10, 18, 26))
    rows = (
        (10, 40, 80, 80, 120, 120),
        (40, 10, 120, 120, 80, 80),
        (80, 120, 10, 11, 160, 160),
        (80, 120, 11, 10, 160, 160),
        (120, 80, 160, 160, 10, 11),
        (120, 80, 160, 160, 11, 10),
    )
    plan = Plan(
        parts=cores + gpus,
        levels=_levels(64, 64, 1024, Level(3, "Unified", 116736, "socket")),
        distances=rows,
        has_die=False,
    )
    devices = pci.cards(("nic-100g", 0), ("gb200", 0), ("gb200", 0), ("nvme", 1), ("gb200", 1), ("gb200", 1))
    return Machine(
        name="grace",
        title="2 Grace CPUs with 4 GPUs, 144 CPUs, 6 NUMA nodes of which 4 are memory only",
        topology=build(plan),
        attributes=_attributes(
            plan,
            "GB200 NVL",
            arch="aarch64",
            kernel="6.8.0-1031-nvidia-64k",
            os="Ubuntu 24.04.2 LTS",
            devices=devices,
            sizes=(2 * MIB, 512 * MIB),
        ),
        cpu_model="Neoverse-V2",
        page_size=65536,
    )


def laptop() -> Machine:
    """One NUMA node; six fast cores with two threads, eight small ones that share their second-level cache by four."""
    fast = Plan(
        parts=(Part(id=0, socket=0, cores=6, memory=16),),
        levels=_levels(48, 32, 2048),
        distances=((10,),),
        threads=2,
        adjacent=True,
        cluster=1,
        core_step=4,
    )
    small = msgspec.structs.replace(
        fast,
        parts=(Part(id=0, socket=0, cores=8, memory=16),),
        levels=(
            Level(1, "Data", 32, "core"),
            Level(1, "Instruction", 64, "core"),
            Level(2, "Unified", 4096, "cluster"),
        ),
        threads=1,
        cluster=4,
        core_step=1,
        first_core=24,
        first_cpu={0: 12},
    )
    everyone = CpuSet(range(20))
    return Machine(
        name="laptop",
        title="Laptop with two kinds of core, 20 CPUs, 1 NUMA node",
        topology=merge(
            (build(fast), build(small)), Cache(level=3, kind="Unified", cpus=everyone, size=24576 * 1024)
        ),
        attributes=_attributes(fast, "Latitude 7440", devices=pci.cards(("iris", None), ("nvme", None))),
        cpu_model="13th Gen Intel(R) Core(TM) i7-1370P",
        core_kinds={"cpu_core": CpuSet(range(12)), "cpu_atom": CpuSet(range(12, 20))},
    )


def power() -> Machine:
    """Two POWER chips with eight threads to a core; NUMA nodes and chips are numbered 0 and 8."""
    parts = (Part(id=0, socket=0, cores=12, memory=256), Part(id=8, socket=8, cores=12, memory=256))
    plan = Plan(
        parts=parts,
        levels=_levels(32, 48, 1024, Level(3, "Unified", 8192, "core")),
        distances=((10, 40), (40, 10)),
        threads=8,
        adjacent=True,
        has_die=False,
        core_step=8,
    )
    return Machine(
        name="power-smt8",
        title="2-socket POWER10 with eight threads to a core, 192 CPUs, NUMA nodes 0 and 8",
        topology=build(plan),
        attributes=_attributes(
            plan,
            "IBM,9105-22A",
            arch="ppc64le",
            kernel="6.4.0-150600.23.53-default",
            os="SUSE Linux Enterprise Server 15 SP6",
            devices=pci.cards(("nic-25g", 0), ("nvme", 0), ("nic-25g", 8), ("nvme", 8)),
        ),
        cpu_model="POWER10 (raw), altivec supported",
        page_size=65536,
    )


def half_dark() -> Machine:
    """Two sockets with CPUs offline, and a third whose memory has failed: a NUMA node with CPUs only."""
    parts = (
        Part(id=0, socket=0, cores=16, memory=96),
        Part(id=1, socket=1, cores=16, memory=96),
        Part(id=2, socket=2, cores=16, memory=0),
    )
    plan = Plan(
        parts=parts,
        levels=_levels(32, 32, 1024, Level(3, "Unified", 22528, "socket")),
        distances=((10, 21, 21), (21, 10, 31), (21, 31, 10)),
        threads=2,
        offline=CpuSet.parse("14-15,40,62-63,80-83"),
    )
    return Machine(
        name="half-dark",
        title="3-socket Xeon, 9 of 96 CPUs offline, one NUMA node without memory",
        topology=build(plan),
        attributes=_attributes(plan, "Synergy 660 Gen10", devices=pci.cards(("nic-25g", 0), ("nvme", 2))),
        cpu_model="Intel(R) Xeon(R) Gold 6242 CPU @ 2.80GHz",
    )


def cxl() -> Machine:
    """Two sockets and a CXL memory expander behind the first; the firmware tells latency and bandwidth (HMAT)."""
    parts = (
        Part(id=0, socket=0, cores=24, memory=192),
        Part(id=1, socket=1, cores=24, memory=192),
        Part(id=2, memory=256),
    )
    plan = Plan(
        parts=parts,
        levels=_levels(48, 32, 2048, Level(3, "Unified", 61440, "socket")),
        distances=((10, 21, 14), (21, 10, 24), (14, 24, 10)),
        threads=2,
    )
    performance = tuple(
        Performance(
            node=node,
            access=access,
            initiators=(near,),
            read_latency=latency,
            write_latency=latency + 5,
            read_bandwidth=bandwidth,
            write_bandwidth=bandwidth * 3 // 4,
        )
        for node, near, latency, bandwidth in ((0, 0, 112, 307200), (1, 1, 112, 307200), (2, 0, 255, 57344))
        for access in (0, 1)
    )
    return Machine(
        name="cxl",
        title="2-socket Xeon with a CXL memory expander, 96 CPUs, 3 NUMA nodes, HMAT",
        topology=build(plan),
        attributes=_attributes(
            plan,
            "SYS-221H-TNR",
            devices=pci.cards(("nic-100g", 0), ("nvme", 0), ("nvme", 1)),
            performance=performance,
            tiers={0: 4, 1: 4, 2: 22},
        ),
        cpu_model="INTEL(R) XEON(R) PLATINUM 8558P",
    )


def thousand() -> Machine:
    """Eight sockets with two NUMA nodes each and 1,024 CPUs; sockets sit on two rings of four."""
    parts = _even(8, 2, 32, 256)
    rows = tuple(
        tuple(
            10
            if a.id == b.id
            else 13
            if a.socket == b.socket
            else 22
            if (a.socket or 0) // 4 == (b.socket or 0) // 4
            else 28
            for b in parts
        )
        for a in parts
    )
    plan = Plan(
        parts=parts,
        levels=_levels(48, 32, 2048, Level(3, "Unified", 115200, "socket")),
        distances=rows,
        threads=2,
    )
    return Machine(
        name="superdome",
        title="8-socket Xeon, 1,024 CPUs, 16 NUMA nodes",
        topology=build(plan),
        attributes=_attributes(
            plan,
            "Compute Scale-up Server 3200",
            devices=pci.cards(("nic-100g", 0), ("nvme", 0), ("nic-100g", 8)),
        ),
        cpu_model="INTEL(R) XEON(R) PLATINUM 8490H",
    )


def high_ids() -> Machine:
    """A partition of a large machine: two NUMA nodes far apart, CPU ids up to 2,079."""
    parts = (Part(id=0, socket=0, cores=16, memory=64), Part(id=65, socket=32, cores=16, memory=64))
    plan = Plan(
        parts=parts,
        levels=_levels(32, 32, 1024, Level(3, "Unified", 22528, "socket")),
        distances=((10, 64), (64, 10)),
        threads=2,
        first_cpu={0: 0, 65: 2048},
    )
    return Machine(
        name="high-ids",
        title="Partition of a large machine, CPU ids to 2,079, NUMA nodes 0 and 65",
        topology=build(plan),
        attributes=_attributes(plan, "Superdome Flex", devices=pci.cards(("nic-25g", 65))),
        cpu_model="Intel(R) Xeon(R) Platinum 8280L CPU @ 2.70GHz",
    )


def edge() -> Machine:
    """A small board under a kernel built without NUMA."""
    plan = Plan(
        parts=(Part(id=0, socket=0, cores=8, memory=16),),
        levels=(
            Level(1, "Data", 64, "core"),
            Level(1, "Instruction", 64, "core"),
            Level(2, "Unified", 512, "core"),
            Level(3, "Unified", 4096, "socket"),
        ),
        distances=((10,),),
        has_die=False,
        cluster=4,
    )
    attributes = _attributes(
        plan,
        "Atlas 500 Pro",
        arch="aarch64",
        kernel="5.15.0-edge",
        os="openEuler 22.03 (LTS-SP4)",
        devices=pci.cards(("nic-hns", None), ("ascend", None)),
    )
    return Machine(
        name="edge",
        title="Edge box, 8 CPUs, kernel without NUMA",
        topology=without_numa(build(plan)),
        attributes=attributes,
        cpu_model="Kunpeng-920",
    )


MODELS: dict[str, Callable[[], Machine]] = {
    "xeon-snc": xeon_snc,
    "epyc-nps4": epyc_nps4,
    "kunpeng-920": kunpeng_920,
    "grace": grace,
    "laptop": laptop,
    "power-smt8": power,
    "half-dark": half_dark,
    "cxl": cxl,
    "superdome": thousand,
    "high-ids": high_ids,
    "edge": edge,
}


class UnknownModelError(ValueError):
    """A name that is no model."""


def model(name: str) -> Machine:
    """The model of that name.

    Raises:
        UnknownModelError: naming the models that there are.
    """
    if name not in MODELS:
        raise UnknownModelError(f"no server model is named {name!r}; there are: {', '.join(MODELS)}")
    return MODELS[name]()
