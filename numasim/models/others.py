"""Server models with Arm and POWER processors."""

from __future__ import annotations

from numasim import pci
from numasim.machine import GIB, Level, Machine, Part, Plan, build, without_numa
from numasim.models import parts
from numasim.models.parts import MIB


def kunpeng_920() -> Machine:
    """Two sockets of 64 cores without SMT, four cores to a cluster, two NUMA nodes to a socket."""
    nodes = parts.even(2, 2, 32, 64)
    rows = ((10, 12, 20, 22), (12, 10, 22, 24), (20, 22, 10, 12), (22, 24, 12, 10))
    plan = Plan(
        parts=nodes,
        levels=parts.levels(64, 64, 512, Level(3, "Unified", 32768, "numa")),
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
        attributes=parts.attributes(
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
        levels=parts.levels(64, 64, 1024, Level(3, "Unified", 116736, "socket")),
        distances=rows,
        has_die=False,
    )
    devices = pci.cards(("nic-100g", 0), ("gb200", 0), ("gb200", 0), ("nvme", 1), ("gb200", 1), ("gb200", 1))
    return Machine(
        name="grace",
        title="2 Grace CPUs with 4 GPUs, 144 CPUs, 6 NUMA nodes of which 4 are memory only",
        topology=build(plan),
        attributes=parts.attributes(
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


def power() -> Machine:
    """Two POWER chips with eight threads to a core; NUMA nodes and chips are numbered 0 and 8."""
    nodes = (Part(id=0, socket=0, cores=12, memory=256), Part(id=8, socket=8, cores=12, memory=256))
    plan = Plan(
        parts=nodes,
        levels=parts.levels(32, 48, 1024, Level(3, "Unified", 8192, "core")),
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
        attributes=parts.attributes(
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
    attributes = parts.attributes(
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
