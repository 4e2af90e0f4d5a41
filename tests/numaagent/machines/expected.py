"""What each recorded machine is, written by hand from its files.

Sets are lists of CPUs as the kernel prints them; `0-39:1/4` is every fourth one. Memory is in kB, as in the files.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from numacore.cpuset import CpuSet


def each(cpus: str) -> list[str]:
    """Each CPU alone."""
    return [str(cpu) for cpu in CpuSet.parse(cpus)]


def runs(cpus: str, size: int) -> list[str]:
    """Neighbours in groups of `size`."""
    ids = list(CpuSet.parse(cpus))
    return [f"{ids[i]}-{ids[i + size - 1]}" for i in range(0, len(ids), size)]


def numbered(groups: list[str], step: int = 1) -> dict[int, str]:
    """Groups numbered from 0."""
    return {i * step: group for i, group in enumerate(groups)}


def alike(nodes: int, local: int, remote: int) -> list[list[int]]:
    """Distances where every other NUMA node is equally far."""
    return [[local if a == b else remote for b in range(nodes)] for a in range(nodes)]


def rows(text: str) -> list[list[int]]:
    return [[int(field) for field in line.split()] for line in text.strip().splitlines()]


@dataclass
class Expected:
    """A machine. `core_ids`: CPUs by the core id that the kernel prints; `cores`: CPUs that share a core."""

    cpus: str
    sockets: dict[int, str]
    core_ids: dict[int, str]
    cores: list[str]
    nodes: dict[int, str]
    distances: list[list[int]] | None
    memory: dict[int, int]
    caches: list[tuple[int, str, int, list[str]]] = field(default_factory=list)
    dies: dict[int, str] = field(default_factory=dict)
    offline: str = ""
    offline_numa: dict[int, str] = field(default_factory=dict)
    numa: bool = True
    model: str | None = None
    arch: str | None = "x86_64"
    hugepages: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By NUMA node (size in kB, pages)."""
    containers: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By cgroup (CPUs, NUMA nodes)."""
    devices: dict[str, tuple[str, int | None, tuple[str, ...]]] = field(default_factory=dict)
    """By PCI address (kind, NUMA node, names)."""


def _blades() -> list[list[int]]:
    """Distances of 64 NUMA nodes in 16 blades of four: between blades as below, 22 inside a blade."""
    blades = rows("""
        10 26 26 30 30 34 30 34 30 34 30 34 30 34 30 34
        26 10 30 26 34 30 34 30 34 30 34 30 34 30 34 30
        26 30 10 26 30 34 30 34 30 34 30 34 30 34 30 34
        30 26 26 10 34 30 34 30 34 30 34 30 34 30 34 30
        30 34 30 34 10 26 26 30 30 34 30 34 30 34 30 34
        34 30 34 30 26 10 30 26 34 30 34 30 34 30 34 30
        30 34 30 34 26 30 10 26 30 34 30 34 30 34 30 34
        34 30 34 30 30 26 26 10 34 30 34 30 34 30 34 30
        30 34 30 34 30 34 30 34 10 26 26 30 30 34 30 34
        34 30 34 30 34 30 34 30 26 10 30 26 34 30 34 30
        30 34 30 34 30 34 30 34 26 30 10 26 30 34 30 34
        34 30 34 30 34 30 34 30 30 26 26 10 34 30 34 30
        30 34 30 34 30 34 30 34 30 34 30 34 10 26 26 30
        34 30 34 30 34 30 34 30 34 30 34 30 26 10 30 26
        30 34 30 34 30 34 30 34 30 34 30 34 26 30 10 26
        34 30 34 30 34 30 34 30 34 30 34 30 30 26 26 10
    """)
    return [
        [10 if a == b else 22 if a // 4 == b // 4 else blades[a // 4][b // 4] for b in range(64)]
        for a in range(64)
    ]


def _crossbar() -> list[list[int]]:
    """17 NUMA nodes: 16 with CPUs in four cells of four, one with memory alone that is equally far from all."""
    near = [[10 if a == b else 17 if a // 4 == b // 4 else 20 for b in range(16)] + [14] for a in range(16)]
    return [*near, [14] * 16 + [10]]


MACHINES: dict[str, Expected] = {
    "128ia64-17n4s2c": Expected(
        cpus="0-127",
        # Four cores of two sockets to a cell; ids are cell x 65536 + 256 x half + socket.
        sockets={
            cell * 65536
            + half * 256
            + socket: f"{cell * 8 + half * 4 + socket * 2}-{cell * 8 + half * 4 + socket * 2 + 1}"
            for cell in range(16)
            for half in (0, 1)
            for socket in (0, 1)
        },
        core_ids={0: "0-127:1/2", 1: "1-127:1/2"},
        cores=each("0-127"),
        nodes={**numbered(runs("0-127", 8)), 16: ""},
        distances=_crossbar(),
        memory={
            0: 100057088,
            1: 100073472,
            7: 100597728,
            13: 100597744,
            15: 100591248,
            16: 1020176,
            **dict.fromkeys((2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 14), 100597760),
        },
        arch="ia64",
        model="Dual-Core Intel(R) Itanium(R) Processor 9140N",
        hugepages={node: [(262144, 0)] for node in range(17)},
    ),
    "16amd64-4n4c-cgroup-distance-merge": Expected(
        cpus="0-15",
        sockets=numbered(runs("0-15", 4)),
        core_ids={0: "0,4,8,12", 1: "1,5,9,13", 2: "2,6,10,14", 3: "3,7,11,15"},
        cores=each("0-15"),
        nodes=numbered(runs("0-15", 4)),
        distances=alike(4, 10, 20),
        memory={0: 8387892, 1: 8388608, 2: 8388608, 3: 8388608},
        caches=[
            (1, "Data", 64, each("0-15")),
            (1, "Instruction", 64, each("0-15")),
            (2, "Unified", 512, each("0-15")),
            (3, "Unified", 2048, runs("0-15", 4)),
        ],
        model="Supermicro H8QM8",
        hugepages={node: [(2048, 512)] for node in range(4)},
        containers={"/prout": ("0-3", "2-3")},
    ),
    "16amd64-8n2c": Expected(
        cpus="0-15",
        sockets=numbered(runs("0-15", 2)),
        core_ids={0: "0-15:1/2", 1: "1-15:1/2"},
        cores=each("0-15"),
        nodes=numbered(runs("0-15", 2)),
        distances=alike(8, 10, 20),
        memory={0: 8386704, **dict.fromkeys(range(1, 8), 8388608)},
        caches=[
            (1, "Data", 64, each("0-15")),
            (1, "Instruction", 64, each("0-15")),
            (2, "Unified", 1024, each("0-15")),
        ],
        model="Dual Core AMD Opteron(tm) Processor 865",
    ),
    "16em64t-4s2c2t-offlines": Expected(
        cpus="0-15",
        offline="2,5,13-14",
        offline_numa={0: "2,5,13-14"},
        sockets={0: "0,4,8,12", 1: "1,9", 2: "6,10", 3: "3,7,11,15"},
        core_ids={0: "0-1,3,8-11", 1: "4,6-7,12,15"},
        cores=["0,8", "1,9", "3,11", "4,12", "6", "7,15", "10"],
        nodes={0: "0-1,3-4,6-12,15"},
        distances=[[10]],
        memory={0: 16772456},
        caches=[
            (1, "Data", 16, ["0,8", "1,9", "3,11", "4,12", "6", "7,15", "10"]),
            (2, "Unified", 1024, ["0,8", "1,9", "3,11", "4,12", "6", "7,15", "10"]),
            (3, "Unified", 4096, ["0,4,8,12", "1,9", "3,7,11,15", "6,10"]),
        ],
        model="Intel(R) Xeon(TM) CPU 2.60GHz",
    ),
    "20s390-2g6s4c": Expected(
        # Packages are all -1 and core_id names something larger than a core: the siblings tell.
        cpus="0-19",
        sockets=numbered(["0-2", "3-6", "7-9", "10-12", "13-14", "15", "16", "17-19"]),
        core_ids={1: "0-2,16", 2: "3-6,17-19", 3: "7-9", 4: "10-12", 5: "13-14", 6: "15"},
        cores=each("0-19"),
        nodes={0: "0-19"},
        distances=[[10]],
        memory={0: 2053992},
        numa=False,
        arch="s390x",
        hugepages={0: [(1024, 0)]},
    ),
    "256ia64-64n2s2c": Expected(
        cpus="0-255",
        # Two sockets to a NUMA node; ids are node x 512 and node x 512 + 3.
        sockets={
            node * 512 + 3 * half: f"{node * 4 + half * 2}-{node * 4 + half * 2 + 1}"
            for node in range(64)
            for half in (0, 1)
        },
        core_ids={0: "0-255:1/2", 1: "1-255:1/2"},
        cores=each("0-255"),
        nodes=numbered(runs("0-255", 4)),
        distances=_blades(),
        memory={
            **dict.fromkeys(range(64), 8077312),
            **dict.fromkeys((6, 14, 22, 29, 37, 45, 53, 61), 8077296),
            0: 8064400,
            63: 8054560,
        },
        arch="ia64",
        hugepages={node: [(262144, 0)] for node in range(64)},
    ),
    "2i386-2t-hugepagesizecount": Expected(
        cpus="0-1",
        sockets={0: "0-1"},
        core_ids={0: "0-1"},
        cores=["0-1"],
        nodes={0: "0-1"},
        distances=[[10]],
        memory={0: 400016779264},
        caches=[(1, "Data", 16, ["0-1"]), (2, "Unified", 2048, ["0-1"])],
        numa=False,
        arch="i686",
        model="Dell Computer Corporation PowerEdge 1850",
        hugepages={0: [(2048, 1), (16777216, 1)]},
    ),
    "32amd64-4s2n4c-cgroup2": Expected(
        # Core ids repeat in the two NUMA nodes of a socket.
        cpus="0-31",
        sockets=numbered(runs("0-31", 8)),
        core_ids={0: "0-31:1/4", 1: "1-31:1/4", 2: "2-31:1/4", 3: "3-31:1/4"},
        cores=each("0-31"),
        nodes=numbered(runs("0-31", 4)),
        distances=rows("""
            10 16 16 22 16 22 16 22
            16 10 22 16 22 16 22 16
            16 22 10 16 16 22 16 22
            22 16 16 10 22 16 22 16
            16 22 16 22 10 16 16 22
            22 16 22 16 16 10 22 16
            16 22 16 22 16 22 10 16
            22 16 22 16 22 16 16 10
        """),
        memory={0: 16775084, **dict.fromkeys(range(1, 8), 16777216)},
        caches=[
            (1, "Data", 64, each("0-31")),
            (1, "Instruction", 64, each("0-31")),
            (2, "Unified", 512, each("0-31")),
            (3, "Unified", 5118, runs("0-31", 4)),
        ],
        model="Supermicro H8QG6",
        hugepages={0: [(2048, 65)], **{node: [(2048, 64)] for node in range(1, 8)}},
        containers={"/uid_2008/job_15389/step_0": ("0-5", "0-5")},
    ),
    "32em64t-2n8c+dax+nvme+mic+dimms": Expected(
        cpus="0-15",
        sockets={0: "0-7", 1: "8-15"},
        core_ids={core: f"{core},{core + 8}" for core in range(8)},
        cores=each("0-15"),
        nodes={0: "0-7", 1: "8-15"},
        distances=alike(2, 10, 21),
        memory={0: 16747124, 1: 16777216},
        caches=[
            (1, "Data", 32, each("0-15")),
            (1, "Instruction", 32, each("0-15")),
            (2, "Unified", 256, each("0-15")),
            (3, "Unified", 20480, ["0-7", "8-15"]),
        ],
        model="Dell DCS8000Z",
        hugepages={0: [(2048, 0)], 1: [(2048, 0)]},
        devices={
            "0000:00:02.0": ("storage", None, ("nvme0n1",)),
            "0000:00:1f.2": ("storage", 0, ("sda",)),
            "0000:02:00.0": ("network", 0, ("eth0",)),
            "0000:02:00.3": ("network", 0, ("eth1",)),
            "0000:82:00.0": ("network", 1, ("ib0", "mlx4_0")),
            "0000:83:00.0": ("accelerator", 1, ("mic0",)),
        },
    ),
    "40intel64-2g2n4c+pcilocality": Expected(
        cpus="0-39",
        sockets={0: "0-39:1/4", 1: "1-39:1/4", 2: "2-39:1/4", 3: "3-39:1/4"},
        core_ids={
            0: "0-3",
            1: "4-7",
            2: "8-11",
            8: "12-15",
            9: "16-19",
            16: "20-23",
            17: "24-27",
            18: "28-31",
            24: "32-35",
            25: "36-39",
        },
        cores=each("0-39"),
        nodes={0: "0-39:1/4", 1: "1-39:1/4", 2: "2-39:1/4", 3: "3-39:1/4"},
        distances=alike(4, 10, 20),
        memory={0: 134204252, 1: 134217728, 2: 134217728, 3: 134217728},
        caches=[
            (1, "Data", 32, each("0-39")),
            (1, "Instruction", 32, each("0-39")),
            (2, "Unified", 256, each("0-39")),
            (3, "Unified", 30720, ["0-39:1/4", "1-39:1/4", "2-39:1/4", "3-39:1/4"]),
        ],
        model="Dell Inc. PowerEdge R910",
        hugepages={node: [(2048, 0)] for node in range(4)},
        containers={
            "/torque/511983.master.cm.cluster": ("27", "0-3"),
            "/torque/513099.master.cm.cluster": ("0-39", "0-3"),
            "/torque/513099.master.cm.cluster/0": ("39", "0-3"),
            "/torque/513099.master.cm.cluster/1": ("38", "0-3"),
            "/torque/513099.master.cm.cluster/2": ("37", "0-3"),
            "/torque/513099.master.cm.cluster/3": ("36", "0-3"),
        },
        devices={
            "0000:00:1f.2": ("storage", None, ("sr0",)),
            "0000:01:00.0": ("storage", None, ("sda",)),
            "0000:02:00.0": ("network", None, ("eth0",)),
            "0000:02:00.1": ("network", None, ("eth1",)),
            "0000:03:00.0": ("network", None, ("eth2",)),
            "0000:03:00.1": ("network", None, ("eth3",)),
            "0000:43:00.0": ("network", 2, ("ib0", "qib0")),
        },
    ),
    "4fake-4gr1nu1pu": Expected(
        cpus="0-3",
        sockets={0: "0-3"},
        core_ids={},
        cores=each("0-3"),
        nodes=numbered(each("0-3")),
        distances=None,
        memory=dict.fromkeys(range(4), 1048576),
        arch=None,
        containers={"/dummy": ("0-1", "0,2")},
    ),
    "64amd64-4s2n4ca2co": Expected(
        # Two half cores of a module are threads of one core to the kernel, each with a core id of its own.
        cpus="0-63",
        sockets=numbered(runs("0-63", 16)),
        core_ids={core: f"{core}-63:1/8" for core in range(8)},
        cores=runs("0-63", 2),
        nodes=numbered(runs("0-63", 8)),
        distances=rows("""
            10 16 16 22 16 22 16 22
            16 10 22 16 16 22 22 16
            16 22 10 16 16 16 16 16
            22 16 16 10 16 16 22 22
            16 16 16 16 10 16 16 22
            22 22 16 16 16 10 22 16
            16 22 16 22 16 22 10 16
            22 16 16 22 22 16 16 10
        """),
        memory={
            0: 16769836,
            1: 16777216,
            2: 16777216,
            3: 16777216,
            4: 16777216,
            5: 8388608,
            6: 16777216,
            7: 16760832,
        },
        caches=[
            (1, "Data", 16, each("0-63")),
            (1, "Instruction", 64, runs("0-63", 2)),
            (2, "Unified", 2048, runs("0-63", 2)),
            (3, "Unified", 6144, runs("0-63", 8)),
        ],
        model="Dell PowerEdge C6145",
        hugepages={node: [(2048, 0)] for node in range(8)},
    ),
    "64fake-4n2s2ca2c2t": Expected(
        # Lists of sharing CPUs contradict the masks here; the masks are right.
        cpus="0-63",
        sockets=numbered(runs("0-63", 8)),
        core_ids={core: f"{core}-63:1/4" for core in range(4)},
        cores=[f"{socket + core},{socket + core + 4}" for socket in range(0, 64, 8) for core in range(4)],
        nodes=numbered(runs("0-63", 16)),
        distances=None,
        memory=dict.fromkeys(range(4), 1048576),
        caches=[
            (1, "Data", 32, [f"{s + c},{s + c + 4}" for s in range(0, 64, 8) for c in range(4)]),
            (1, "Instruction", 32, [f"{s + c},{s + c + 4}" for s in range(0, 64, 8) for c in range(4)]),
            (2, "Unified", 256, [f"{s + c}-{s + 7}:1/2" for s in range(0, 64, 8) for c in (0, 1)]),
            (3, "Unified", 8192, runs("0-63", 8)),
        ],
        arch=None,
    ),
    "8em64t-2s4c-asymcaches": Expected(
        cpus="0-7",
        sockets={0: "0,2,4,6", 1: "1,3,5,7"},
        core_ids={0: "0-1", 1: "4-5", 2: "2-3", 3: "6-7"},
        cores=each("0-7"),
        nodes={0: "0-7"},
        distances=[[10]],
        memory={0: 16772032},
        caches=[
            (1, "Data", 32, ["0", "3", "4", "6", "7"]),
            (1, "Instruction", 32, ["0", "3", "4", "6", "7"]),
            (2, "Unified", 4096, ["1,5", "2,6", "3,7"]),
        ],
        model="Dell Inc. PowerEdge 2950",
        hugepages={0: [(2048, 0)]},
    ),
    "96em64t-4no4pa3ca2co": Expected(
        cpus="0-95",
        sockets={
            # In the first NUMA node the firmware swapped the first two.
            1: "0-23:1/4",
            0: "1-23:1/4",
            2: "2-23:1/4",
            3: "3-23:1/4",
            4: "24-47:1/4",
            5: "25-47:1/4",
            6: "26-47:1/4",
            7: "27-47:1/4",
            8: "48-71:1/4",
            9: "49-71:1/4",
            10: "50-71:1/4",
            11: "51-71:1/4",
            12: "72-95:1/4",
            13: "73-95:1/4",
            14: "74-95:1/4",
            15: "75-95:1/4",
        },
        core_ids={
            core: ",".join(f"{node + core * 4}-{node + core * 4 + 3}" for node in range(0, 96, 24))
            for core in range(6)
        },
        cores=each("0-95"),
        nodes=numbered(runs("0-95", 24)),
        distances=alike(4, 10, 26),
        memory={0: 132101504, 1: 132124160, 2: 132124160, 3: 132124160},
        caches=[
            (1, "Data", 32, each("0-95")),
            (1, "Instruction", 32, each("0-95")),
            (
                2,
                "Unified",
                3072,
                [
                    f"{n + h * 8 + s},{n + h * 8 + s + 4}"
                    for n in range(0, 96, 24)
                    for h in range(3)
                    for s in range(4)
                ],
            ),
            (3, "Unified", 16384, [f"{n + s}-{n + 23}:1/4" for n in range(0, 96, 24) for s in range(4)]),
        ],
        model="Genuine Intel(R) CPU                  @ 2.66GHz",
        hugepages={node: [(2048, 0)] for node in range(4)},
    ),
    "fakeheteromemtiers": Expected(
        # Three NUMA nodes with CPUs, four with memory alone, ids with gaps.
        cpus="0-5",
        sockets={0: "0-5"},
        dies={0: "0-5"},
        core_ids=numbered(each("0-5")),
        cores=each("0-5"),
        nodes={0: "0-1", 1: "2-3", 2: "4-5", 4: "", 6: "", 8: "", 9: ""},
        distances=alike(7, 10, 20),
        memory={0: 3005392, 1: 1002460, 2: 524288, 4: 524288, 6: 393216, 8: 393216, 9: 393216},
        caches=[
            (1, "Data", 32, each("0-5")),
            (1, "Instruction", 32, each("0-5")),
            (2, "Unified", 4096, each("0-5")),
            (3, "Unified", 16384, ["0-5"]),
        ],
        model="QEMU Standard PC (i440FX + PIIX, 1996)",
        hugepages={node: [(2048, 0)] for node in (0, 1, 2, 4, 6, 8, 9)},
        containers={
            "/init.scope": ("0-5", "0-2,4,6,8-9"),
            **{
                f"/system.slice/{name}.service": ("0-5", "0-2,4,6,8-9")
                for name in (
                    "cron",
                    "dbus",
                    "ifup@ens3",
                    "rsyslog",
                    "systemd-journald",
                    "systemd-logind",
                    "systemd-udevd",
                )
            },
            "/user.slice/user-0.slice/session-1.scope": ("0-5", "0-2,4,6,8-9"),
            "/user.slice/user-0.slice/user@0.service": ("0-5", "0-2,4,6,8-9"),
        },
    ),
    "memorysidecaches": Expected(
        cpus="0-79",
        sockets={0: "0-79:1/2", 1: "1-79:1/2"},
        dies={0: "0-79"},
        core_ids={
            core: f"{cpu}-{cpu + 1},{cpu + 40}-{cpu + 41}"
            for cpu, core in zip(
                range(0, 40, 2),
                (0, 4, 1, 3, 2, 12, 8, 11, 9, 10, 16, 20, 17, 19, 18, 28, 24, 27, 25, 26),
                strict=True,
            )
        },
        cores=[f"{cpu},{cpu + 40}" for cpu in range(40)],
        nodes={0: "0-79:1/4", 1: "1-79:1/4", 2: "2-79:1/4", 3: "3-79:1/4"},
        distances=rows("""
            10 21 11 21
            21 10 21 11
            11 21 10 21
            21 11 21 10
        """),
        memory={0: 388492316, 1: 390163848, 2: 390163840, 3: 390162812},
        caches=[
            (1, "Data", 32, [f"{cpu},{cpu + 40}" for cpu in range(40)]),
            (1, "Instruction", 32, [f"{cpu},{cpu + 40}" for cpu in range(40)]),
            (2, "Unified", 1024, [f"{cpu},{cpu + 40}" for cpu in range(40)]),
            (3, "Unified", 28160, ["0-79:1/2", "1-79:1/2"]),
        ],
        model="Dell Inc. PowerEdge R740",
        hugepages={node: [(2048, 0), (1048576, 0)] for node in range(4)},
    ),
}
