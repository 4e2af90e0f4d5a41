"""Writes the control groups of a node's pods and services, version 1 or 2, and the log links that name containers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from numacore.cpuset import CpuSet
from numasim import usage
from numasim.files import STAGING, Tree, lines
from numasim.node import Node, Running, Service
from numasim.workload import Pod

V2 = "sys/fs/cgroup"
V1_CONTROLLERS = ("cpuset", "cpu,cpuacct", "memory", "pids", "systemd")
SCOPES = {"containerd": "cri-containerd", "cri-o": "crio", "docker": "docker"}
QUIET = [
    "kernel_stack",
    "pagetables",
    "sec_pagetables",
    "shmem",
    "file_mapped",
    "file_dirty",
    "file_writeback",
    "swapcached",
    "anon_thp",
    "file_thp",
    "shmem_thp",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
    "slab_reclaimable",
    "slab_unreclaimable",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
    "workingset_nodereclaim",
]
"""Rows of memory.numa_stat that stay at 0 here."""


def pod_path(node: Node, pod: Pod) -> str:
    """Path of a pod below the cgroup root."""
    quality = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}[pod.qos]
    if node.settings.driver == "cgroupfs":
        return "/".join(filter(None, ("kubepods", quality, f"pod{pod.uid}")))
    uid = pod.uid.replace("-", "_")
    if not quality:
        return f"kubepods.slice/kubepods-pod{uid}.slice"
    return f"kubepods.slice/kubepods-{quality}.slice/kubepods-{quality}-pod{uid}.slice"


def leaf(node: Node, container_id: str) -> str:
    """Name of a container's own directory."""
    if node.settings.driver == "cgroupfs":
        return container_id
    return f"{SCOPES[node.spec.runtime]}-{container_id}.scope"


def controllers(node: Node) -> tuple[str, ...]:
    """Where the hierarchy is mounted, below the root of the tree."""
    return (V2,) if node.spec.cgroup == 2 else tuple(f"{V2}/{name}" for name in V1_CONTROLLERS)


def write_base(tree: Tree, node: Node) -> None:
    """Writes the root and the directories that stay."""
    mems = CpuSet(node.with_memory)
    if node.spec.cgroup == 1:
        for name in ("cpu", "cpuacct"):
            tree.link(f"{V2}/{name}", "cpu,cpuacct")
        tree.put_all(f"{V2}/cpuset", {"cpuset.cpus": node.topology.online, "cpuset.mems": mems})
    else:
        names = "cpuset cpu io memory hugetlb pids"
        tree.put_all(V2, {"cgroup.controllers": names, "cgroup.subtree_control": names})
        tree.put_all(V2, {"cpuset.cpus.effective": node.topology.online, "cpuset.mems.effective": mems})
    parents = ["system.slice"]
    if node.spec.kubernetes and node.settings.driver == "systemd":
        slices = (
            "kubepods.slice",
            "kubepods.slice/kubepods-burstable.slice",
            "kubepods.slice/kubepods-besteffort.slice",
        )
        parents += slices
    elif node.spec.kubernetes:
        parents += ["kubepods", "kubepods/burstable", "kubepods/besteffort"]
    for parent in parents:
        _write_inner(tree, node, parent)


def _write_inner(tree: Tree, node: Node, path: str) -> None:
    """A group that only holds others."""
    online, mems = node.topology.online, CpuSet(node.with_memory)
    if node.spec.cgroup == 1:
        for controller in controllers(node):
            tree.put_all(f"{controller}/{path}", {"cgroup.procs": ""})
        tree.put_all(f"{V2}/cpuset/{path}", {"cpuset.cpus": online, "cpuset.mems": mems})
        return
    tree.put_all(
        f"{V2}/{path}",
        {
            "cpuset.cpus": "",
            "cpuset.cpus.effective": online,
            "cpuset.mems": "",
            "cpuset.mems.effective": mems,
        },
    )
    tree.put(f"{V2}/{path}/cgroup.procs", "")


def start_pod(tree: Tree, node: Node, pod: Pod, running: list[Running]) -> None:
    """Makes a pod's directories aside and moves each hierarchy's part into place."""
    path = pod_path(node, pod)
    staged = f"{STAGING}/{pod.uid}"
    for number, controller in enumerate(controllers(node)):
        made = f"{staged}/{number}"
        tree.folder(made)
        tree.put(f"{made}/cgroup.procs", "")
        for file, text in _static(controller, node.topology.online, CpuSet(node.with_memory), 0.0, 0).items():
            tree.put(f"{made}/{file}", text)
        _write_leaf(tree, node, controller, f"{made}/{leaf(node, pod.ids[0])}", node.sandboxes[pod.uid])
        for each in running:
            _write_leaf(tree, node, controller, f"{made}/{leaf(node, each.id)}", each)
        tree.enter(made, f"{controller}/{path}")
        for each in running:
            inside = f"{controller}/{path}/{leaf(node, each.id)}"
            for file, text in {**_cpuset(node, controller, each), **_moving(node, controller, each)}.items():
                tree.adopt(f"{inside}/{file}", text)
    tree.leave(staged)
    for each in running:
        _link_logs(tree, each)


def stop_pod(tree: Tree, node: Node, pod: Pod) -> None:
    """Takes a pod's directories and links away."""
    for controller in controllers(node):
        tree.leave(f"{controller}/{pod_path(node, pod)}")
    for want, container_id in zip(pod.containers, pod.ids[1:], strict=True):
        tree.leave(f"var/log/containers/{_log_name(pod, want.name, container_id)}")
    tree.leave(f"var/log/pods/{_log_folder(pod)}")


def update(tree: Tree, node: Node, *, cpusets: bool) -> None:
    """Brings the counters of all containers and services up to date, and their cpusets where those may have moved."""
    for controller in controllers(node):
        for each in node.containers():
            path = f"{controller}/{pod_path(node, each.pod)}/{leaf(node, each.id)}"
            files = _moving(node, controller, each)
            if cpusets:
                files |= _cpuset(node, controller, each)
            for file, text in files.items():
                tree.keep(f"{path}/{file}", text)
        for service in node.services:
            for file, text in _service_files(node, controller, service).items():
                tree.keep(f"{controller}/system.slice/{service.name}/{file}", text)


def _log_name(pod: Pod, container: str, container_id: str) -> str:
    return f"{pod.name}_{pod.namespace}_{container}-{container_id}.log"


def _log_folder(pod: Pod) -> str:
    return f"{pod.namespace}_{pod.name}_{pod.uid}"


def _link_logs(tree: Tree, each: Running) -> None:
    log = f"var/log/pods/{_log_folder(each.pod)}/{each.want.name}/0.log"
    tree.put(log, "", 0o640)
    tree.link(f"var/log/containers/{_log_name(each.pod, each.want.name, each.id)}", f"/{log}")


def _write_leaf(tree: Tree, node: Node, controller: str, path: str, each: Running | int) -> None:
    """A container's directory, or the sandbox's (its process), which has no CPU set of its own."""
    online, mems = node.topology.online, CpuSet(node.with_memory)
    files = _static(controller, online, mems, 0.0, 0)
    if isinstance(each, Running):
        files |= _static(controller, online, mems, each.want.cpu_limit, each.want.memory_limit)
        files |= _cpuset(node, controller, each) | _moving(node, controller, each)
    tree.put(f"{path}/cgroup.procs", f"{each.pid if isinstance(each, Running) else each}\n")
    for file, text in files.items():
        tree.put(f"{path}/{file}", text)


def _static(
    controller: str, cpus: CpuSet, mems: CpuSet, cpu_limit: float, memory_limit: int
) -> dict[str, str]:
    """Limits, and the CPU set of a group that was given none. 0 = no limit."""
    quota = int(cpu_limit * 100_000)
    name = controller.removeprefix(V2).lstrip("/")
    if name == "":
        return {
            "cpuset.cpus": "\n",
            "cpuset.cpus.effective": f"{cpus}\n",
            "cpuset.cpus.partition": "member\n",
            "cpuset.mems": "\n",
            "cpuset.mems.effective": f"{mems}\n",
            "cpu.max": f"{quota or 'max'} 100000\n",
            "memory.max": f"{memory_limit or 'max'}\n",
        }
    if name == "cpuset":
        return {"cpuset.cpus": f"{cpus}\n", "cpuset.mems": f"{mems}\n"}
    if name == "cpu,cpuacct":
        return {"cpu.cfs_quota_us": f"{quota or -1}\n", "cpu.cfs_period_us": "100000\n"}
    if name == "memory":
        return {"memory.limit_in_bytes": f"{memory_limit or 0x7FFFFFFFFFFFF000}\n"}
    return {}


def _cpuset(node: Node, controller: str, each: Running) -> dict[str, str]:
    cpus, mems = node.cpus_of(each), node.mems_of(each)
    if controller == V2:
        given = "" if cpus == node.topology.online else str(cpus)
        return {
            "cpuset.cpus": f"{given}\n",
            "cpuset.cpus.effective": f"{cpus}\n",
            "cpuset.mems": f"{mems if each.place.blocks else ''}\n",
            "cpuset.mems.effective": f"{mems}\n",
        }
    if controller.endswith("/cpuset"):
        return {
            "cpuset.cpus": f"{cpus}\n",
            "cpuset.effective_cpus": f"{cpus}\n",
            "cpuset.mems": f"{mems}\n",
            "cpuset.effective_mems": f"{mems}\n",
        }
    return {}


def _moving(node: Node, controller: str, each: Running) -> dict[str, str]:
    found = _counters(node, controller, each.account.seconds(node.now), usage.pages_of(node, each))
    if controller.endswith("/cpu,cpuacct"):
        spent = each.account.by_cpu(node.now)
        row = " ".join(str(int(spent.get(cpu.id, 0.0) * 1e9)) for cpu in node.topology.cpus)
        # The kernel ends this one with a blank before the newline.
        found["cpuacct.usage_percpu"] = f"{row} \n"
    return found


def _service_files(node: Node, controller: str, service: Service) -> dict[str, str]:
    online, mems = node.topology.online, CpuSet(node.with_memory)
    pages = {service.home: service.memory // node.spec.machine.page_size}
    moving = _counters(node, controller, service.account.seconds(node.now), pages)
    return _static(controller, online, mems, 0.0, 0) | moving | {"cgroup.procs": f"{service.pid}\n"}


def _counters(node: Node, controller: str, seconds: float, pages: dict[int, int]) -> dict[str, str]:
    name = controller.removeprefix(V2).lstrip("/")
    micros = int(seconds * 1e6)
    size = node.spec.machine.page_size
    if name == "":
        return {
            "cpu.stat": f"usage_usec {micros}\nuser_usec {micros * 4 // 5}\nsystem_usec {micros - micros * 4 // 5}\n",
            "memory.current": f"{sum(pages.values()) * size}\n",
            "memory.numa_stat": _numa_stat(node, pages, size),
        }
    if name == "cpu,cpuacct":
        return {"cpuacct.usage": f"{micros * 1000}\n"}
    if name == "memory":
        return {
            "memory.usage_in_bytes": f"{sum(pages.values()) * size}\n",
            "memory.numa_stat": _numa_stat_v1(node, pages),
        }
    return {}


def _numa_stat(node: Node, pages: dict[int, int], size: int) -> str:
    ids = node.with_memory
    anon = {numa: usage.anonymous(count) for numa, count in pages.items()}
    rows = [
        "anon " + " ".join(f"N{i}={anon.get(i, 0) * size}" for i in ids),
        "file " + " ".join(f"N{i}={(pages.get(i, 0) - anon.get(i, 0)) * size}" for i in ids),
    ]
    return lines(rows) + _quiet_rows(ids)


@lru_cache
def _quiet_rows(ids: tuple[int, ...]) -> str:
    zeros = " ".join(f"N{i}=0" for i in ids)
    return lines(f"{name} {zeros}" for name in QUIET)


def _numa_stat_v1(node: Node, pages: dict[int, int]) -> str:
    anon = {numa: usage.anonymous(count) for numa, count in pages.items()}
    kinds: dict[str, dict[int, int]] = {
        "total": pages,
        "file": {numa: count - anon[numa] for numa, count in pages.items()},
        "anon": anon,
        "unevictable": {},
    }
    return lines(_v1_rows(node, kinds))


def _v1_rows(node: Node, kinds: dict[str, dict[int, int]]) -> Iterator[str]:
    for prefix in ("", "hierarchical_"):
        for kind, amounts in kinds.items():
            parts = " ".join(f"N{i}={amounts.get(i, 0)}" for i in node.with_memory)
            yield f"{prefix}{kind}={sum(amounts.values())} {parts}"
