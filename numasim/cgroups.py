"""Writes the control groups of a node's pods and services, version 1 or 2, and the log links that name containers."""

from __future__ import annotations

from numacore.cpuset import CpuSet
from numasim import groupfiles
from numasim.files import STAGING, Tree
from numasim.groupfiles import V2, Limits
from numasim.node import Node
from numasim.running import Running
from numasim.workload import Pod

V1_CONTROLLERS = ("cpuset", "cpu,cpuacct", "memory", "pids", "systemd")
SCOPES = {"containerd": "cri-containerd", "cri-o": "crio"}


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
    mems = CpuSet(node.spec.machine.with_memory)
    if node.spec.cgroup == 1:
        for name in ("cpu", "cpuacct"):
            tree.link(f"{V2}/{name}", "cpu,cpuacct")
        tree.put_all(f"{V2}/cpuset", {"cpuset.cpus": node.topology.online, "cpuset.mems": mems})
    else:
        names = "cpuset cpu io memory hugetlb pids"
        tree.put_all(V2, {"cgroup.controllers": names, "cgroup.subtree_control": names})
        tree.put_all(V2, {"cpuset.cpus.effective": node.topology.online, "cpuset.mems.effective": mems})
    parents = ["system.slice"]
    if node.settings.driver == "systemd":
        slices = (
            "kubepods.slice",
            "kubepods.slice/kubepods-burstable.slice",
            "kubepods.slice/kubepods-besteffort.slice",
        )
        parents += slices
    else:
        parents += ["kubepods", "kubepods/burstable", "kubepods/besteffort"]
    for parent in parents:
        _write_inner(tree, node, parent)


def _write_inner(tree: Tree, node: Node, path: str) -> None:
    """A group that only holds others."""
    online, mems = node.topology.online, CpuSet(node.spec.machine.with_memory)
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
        for file, text in groupfiles.static(
            controller, node.topology.online, CpuSet(node.spec.machine.with_memory), groupfiles.NONE
        ).items():
            tree.put(f"{made}/{file}", text)
        _write_leaf(tree, node, controller, f"{made}/{leaf(node, pod.ids[0])}", node.sandboxes[pod.uid])
        for each in running:
            _write_leaf(tree, node, controller, f"{made}/{leaf(node, each.id)}", each)
        tree.enter(made, f"{controller}/{path}")
        for each in running:
            inside = f"{controller}/{path}/{leaf(node, each.id)}"
            for file, text in {
                **groupfiles.cpuset(node, controller, each),
                **groupfiles.moving(node, controller, each),
            }.items():
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
            files = groupfiles.moving(node, controller, each)
            if cpusets:
                files |= groupfiles.cpuset(node, controller, each)
            for file, text in files.items():
                tree.keep(f"{path}/{file}", text)
        for service in node.services:
            for file, text in groupfiles.service_files(node, controller, service).items():
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
    online, mems = node.topology.online, CpuSet(node.spec.machine.with_memory)
    files = groupfiles.static(controller, online, mems, groupfiles.NONE)
    if isinstance(each, Running):
        limits = Limits(each.want.cpu, each.want.cpu_limit, each.want.memory_limit)
        files |= groupfiles.static(controller, online, mems, limits)
        files |= groupfiles.cpuset(node, controller, each) | groupfiles.moving(node, controller, each)
    tree.put(f"{path}/cgroup.procs", f"{each.pid if isinstance(each, Running) else each}\n")
    for file, text in files.items():
        tree.put(f"{path}/{file}", text)
