"""The nodes of a simulated cluster: eight different servers with differently set kubelets, and more of their kind."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from numacore.cpuset import CpuSet
from numasim import kinds
from numasim.kubelet import Settings
from numasim.models import model
from numasim.spec import Spec

STATE = "var/lib/kubelet"


def _snc() -> Spec:
    """GPUs with everything in line: single-numa-node and the memory manager."""
    return Spec(
        name="gpu-xeon-1",
        machine=model("xeon-snc"),
        settings=Settings(
            options={"full-pcpus-only": "true", "strict-cpu-reservation": "true"},
            reserved=CpuSet.parse("0-1,56-57"),
            memory_policy="Static",
            reserved_memory={0: 2048, 1: 1024, 2: 1024, 3: 1024},
            topology_policy="single-numa-node",
            scope="pod",
        ),
        mix=kinds.MIX | {"inference": 14, "database": 3},
        containers=26,
    )


def _nps4() -> Spec:
    """The large one: packed as tightly as it goes, pods over two NUMA nodes allowed."""
    return Spec(
        name="db-epyc-1",
        machine=model("epyc-nps4"),
        settings=Settings(
            options={"full-pcpus-only": "true"},
            reserved=CpuSet.parse("0-3,192-195"),
            topology_policy="best-effort",
        ),
        mix=kinds.MIX | {"database": 12, "wide": 2},
        residents=("wide", "wide", "database", "database"),
        containers=70,
    )


def _kunpeng(name: str, settings: Settings, cgroup: int = 2) -> Spec:
    """NPUs and network functions on four NUMA nodes."""
    return Spec(
        name=name,
        machine=model("kunpeng-920"),
        settings=settings,
        cgroup=cgroup,
        accelerator="huawei.com/Ascend910",
        network="huawei.com/hns-vf",
        mix=kinds.MIX | {"inference": 10},
        residents=("wide", "inference"),
        containers=28,
    )


def _kunpeng_restricted() -> Spec:
    """Control groups version 1, as on many openEuler nodes."""
    settings = Settings(
        version="v1.28.15",
        reserved=CpuSet.parse("0-1"),
        topology_policy="restricted",
        driver="cgroupfs",
    )
    return _kunpeng("npu-kunpeng-1", settings, cgroup=1)


def _kunpeng_none() -> Spec:
    """Nothing is aligned: CPUs exclusive, yet NPUs and network functions wherever they were free."""
    return _kunpeng("npu-kunpeng-2", Settings(reserved=CpuSet.parse("0,32,64,96"), topology_policy="none"))


def _grace() -> Spec:
    """NUMA nodes without CPUs, and state files of the newest form."""
    return Spec(
        name="gpu-grace-1",
        machine=model("grace"),
        settings=Settings(
            version="v1.37.0", reserved=CpuSet.parse("0-3"), topology_policy="best-effort", newest_state=True
        ),
        containers=24,
    )


def _cxl() -> Spec:
    """Everything floats, memory goes to the expander too; CRI-O. Its drop-in waits for a restart of the kubelet."""
    return Spec(
        name="cache-cxl-1",
        machine=model("cxl"),
        settings=Settings(
            cpu_policy="none",
            topology_policy="none",
            drop_in={
                "cpuManagerPolicy": "static",
                "reservedSystemCPUs": "0,48",
                "topologyManagerPolicy": "restricted",
            },
        ),
        runtime="cri-o",
        containers=26,
    )


def _power() -> Spec:
    """Eight threads to a core; its CPU manager's state cannot be read."""
    return Spec(
        name="sap-power-1",
        machine=model("power-smt8"),
        settings=Settings(reserved=CpuSet.parse("0-7"), topology_policy="restricted"),
        hidden=("sys/devices/system/node/node8/distance",),
        garbled=(f"{STATE}/cpu_manager_state",),
        containers=22,
    )


def _laptop() -> Spec:
    """A small box at the edge with two kinds of core."""
    return Spec(
        name="edge-1",
        machine=model("laptop"),
        settings=Settings(reserved=CpuSet.parse("18-19"), topology_policy="best-effort"),
        accelerator="gpu.intel.com/i915",
        containers=12,
    )


DEFAULT = (_snc, _nps4, _kunpeng_restricted, _kunpeng_none, _grace, _cxl, _power, _laptop)


def cluster(count: int, models: Sequence[str] = ()) -> list[Spec]:
    """Specs of `count` nodes with names of their own; of these models in turn if any are named.

    Raises:
        models.UnknownModelError: for a name that is no model.
    """
    if models:
        made = [plain(models[i % len(models)], f"{models[i % len(models)]}-{i + 1}") for i in range(count)]
    else:
        made = [_again(DEFAULT[i % len(DEFAULT)](), i // len(DEFAULT)) for i in range(count)]
    return [msgspec.structs.replace(spec, ordinal=i) for i, spec in enumerate(made)]


def plain(name: str, node: str, containers: int = 24) -> Spec:
    """A node of one model with a static policy, best-effort alignment and no surprises."""
    machine = model(name)
    first = next(iter(machine.topology.online))
    arm = machine.attributes.arch == "aarch64"
    return Spec(
        name=node,
        machine=machine,
        settings=Settings(reserved=CpuSet([first]), topology_policy="best-effort"),
        accelerator="huawei.com/Ascend910" if arm and name != "grace" else "nvidia.com/gpu",
        containers=containers,
    )


def _again(spec: Spec, times: int) -> Spec:
    """A further server of its kind."""
    stem, _, number = spec.name.rpartition("-")
    return msgspec.structs.replace(spec, name=f"{stem}-{int(number) + 10 * times}")
