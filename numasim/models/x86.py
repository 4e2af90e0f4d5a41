"""Server models of the x86 family."""

from __future__ import annotations

import msgspec

from numacore.cpuset import CpuSet
from numacore.topology import Cache, Performance
from numasim import pci
from numasim.machine import GIB, Level, Machine, Part, Plan, build, merge
from numasim.models import parts
from numasim.models.parts import MIB


def xeon_snc() -> Machine:
    """Two sockets, each split into two NUMA nodes by sub-NUMA clustering; the last-level cache spans both."""
    nodes = parts.even(2, 2, 14, 128)
    plan = Plan(
        parts=nodes,
        levels=parts.levels(48, 32, 2048, Level(3, "Unified", 53760, "socket")),
        distances=parts.grouped(nodes, 12, 21),
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
        attributes=parts.attributes(plan, "PowerEdge R760xa", devices=devices, huge=huge),
        cpu_model="INTEL(R) XEON(R) GOLD 6530",
    )


def epyc_nps4() -> Machine:
    """Two 96-core EPYC with four NUMA nodes each; eight cores share a last-level cache."""
    nodes = parts.even(2, 4, 24, 96)
    plan = Plan(
        parts=nodes,
        levels=parts.levels(32, 32, 1024, Level(3, "Unified", 32768, "complex")),
        distances=parts.grouped(nodes, 12, 32),
        threads=2,
        complex=8,
    )
    devices = pci.cards(("nic-100g", 1), ("nvme", 1), ("nvme", 2), ("nic-100g", 5), ("nvme", 6), ("nvme", 7))
    return Machine(
        name="epyc-nps4",
        title="2-socket EPYC 9654 at NPS4, 384 CPUs, 8 NUMA nodes",
        topology=build(plan),
        attributes=parts.attributes(plan, "ProLiant DL385 Gen11", devices=devices, huge={4: {GIB: 8}}),
        cpu_model="AMD EPYC 9654 96-Core Processor",
    )


def laptop() -> Machine:
    """One NUMA node; six fast cores with two threads, eight small ones that share their second-level cache by four."""
    fast = Plan(
        parts=(Part(id=0, socket=0, cores=6, memory=16),),
        levels=parts.levels(48, 32, 2048),
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
        attributes=parts.attributes(fast, "Latitude 7440", devices=pci.cards(("iris", None), ("nvme", None))),
        cpu_model="13th Gen Intel(R) Core(TM) i7-1370P",
        core_kinds={"cpu_core": CpuSet(range(12)), "cpu_atom": CpuSet(range(12, 20))},
    )


def half_dark() -> Machine:
    """Two sockets with CPUs offline, and a third whose memory has failed: a NUMA node with CPUs only."""
    nodes = (
        Part(id=0, socket=0, cores=16, memory=96),
        Part(id=1, socket=1, cores=16, memory=96),
        Part(id=2, socket=2, cores=16, memory=0),
    )
    plan = Plan(
        parts=nodes,
        levels=parts.levels(32, 32, 1024, Level(3, "Unified", 22528, "socket")),
        distances=((10, 21, 21), (21, 10, 31), (21, 31, 10)),
        threads=2,
        offline=CpuSet.parse("14-15,40,62-63,80-83"),
    )
    return Machine(
        name="half-dark",
        title="3-socket Xeon, 9 of 96 CPUs offline, one NUMA node without memory",
        topology=build(plan),
        attributes=parts.attributes(
            plan, "Synergy 660 Gen10", devices=pci.cards(("nic-25g", 0), ("nvme", 2))
        ),
        cpu_model="Intel(R) Xeon(R) Gold 6242 CPU @ 2.80GHz",
    )


def cxl() -> Machine:
    """Two sockets and a CXL memory expander behind the first; the firmware tells latency and bandwidth (HMAT)."""
    nodes = (
        Part(id=0, socket=0, cores=24, memory=192),
        Part(id=1, socket=1, cores=24, memory=192),
        Part(id=2, memory=256),
    )
    plan = Plan(
        parts=nodes,
        levels=parts.levels(48, 32, 2048, Level(3, "Unified", 61440, "socket")),
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
        attributes=parts.attributes(
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
    nodes = parts.even(8, 2, 32, 256)
    rows = tuple(
        tuple(
            10
            if a.id == b.id
            else 13
            if a.socket == b.socket
            else 22
            if (a.socket or 0) // 4 == (b.socket or 0) // 4
            else 28
            for b in nodes
        )
        for a in nodes
    )
    plan = Plan(
        parts=nodes,
        levels=parts.levels(48, 32, 2048, Level(3, "Unified", 115200, "socket")),
        distances=rows,
        threads=2,
    )
    return Machine(
        name="superdome",
        title="8-socket Xeon, 1,024 CPUs, 16 NUMA nodes",
        topology=build(plan),
        attributes=parts.attributes(
            plan,
            "Compute Scale-up Server 3200",
            devices=pci.cards(("nic-100g", 0), ("nvme", 0), ("nic-100g", 8)),
        ),
        cpu_model="INTEL(R) XEON(R) PLATINUM 8490H",
    )


def high_ids() -> Machine:
    """A partition of a large machine: two NUMA nodes far apart, CPU ids up to 2,079."""
    nodes = (Part(id=0, socket=0, cores=16, memory=64), Part(id=65, socket=32, cores=16, memory=64))
    plan = Plan(
        parts=nodes,
        levels=parts.levels(32, 32, 1024, Level(3, "Unified", 22528, "socket")),
        distances=((10, 64), (64, 10)),
        threads=2,
        first_cpu={0: 0, 65: 2048},
    )
    return Machine(
        name="high-ids",
        title="Partition of a large machine, CPU ids to 2,079, NUMA nodes 0 and 65",
        topology=build(plan),
        attributes=parts.attributes(plan, "Superdome Flex", devices=pci.cards(("nic-25g", 65))),
        cpu_model="Intel(R) Xeon(R) Platinum 8280L CPU @ 2.70GHz",
    )
