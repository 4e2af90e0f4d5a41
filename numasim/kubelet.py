"""How a kubelet is set up, and the configuration file, drop-in and flags in which that is written down."""

from __future__ import annotations

from typing import Literal

import msgspec

from numacore.cpuset import EMPTY, CpuSet
from numasim.files import Tree

MIB = 1 << 20
STATE = "var/lib/kubelet"
DROP_INS = "etc/kubernetes/kubelet.conf.d"
EVICTION = 100 * MIB


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a node's kubelet is set up."""

    version: str = "v1.34.2"
    cpu_policy: Literal["none", "static"] = "static"
    options: dict[str, str] = {}
    reserved: CpuSet = EMPTY
    memory_policy: Literal["None", "Static"] = "None"
    reserved_memory: dict[int, int] = {}
    """MiB kept for the system on each NUMA node, under the memory policy Static."""
    topology_policy: Literal["none", "best-effort", "restricted", "single-numa-node"] = "none"
    scope: Literal["container", "pod"] = "container"
    driver: Literal["systemd", "cgroupfs"] = "systemd"
    drop_in: dict[str, object] = {}
    """Settings that a drop-in asks for and that the running kubelet has not taken up: the state differs."""
    newest_state: bool = False
    """State files carry the `data` field of kubelet 1.37."""

    @property
    def strict(self) -> bool:
        """Whether the shared pool leaves the reserved CPUs out."""
        return self.options.get("strict-cpu-reservation") == "true"


def write_config(tree: Tree, settings: Settings) -> None:
    """Writes the configuration file, a drop-in where there is one, and the flags."""
    tree.put(f"{STATE}/config.yaml", _yaml(_config(settings)))
    if settings.drop_in:
        head: dict[str, object] = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
        }
        tree.put(f"{DROP_INS}/50-site.conf", _yaml(head | settings.drop_in))
    flags = "--container-runtime-endpoint=unix:///run/containerd/containerd.sock"
    tree.put(f"{STATE}/kubeadm-flags.env", f'KUBELET_KUBEADM_ARGS="{flags}"\n')


def command_line(settings: Settings) -> list[str]:
    """The kubelet's command line."""
    found = [
        "/usr/bin/kubelet",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        f"--config=/{STATE}/config.yaml",
    ]
    return [*found, f"--config-dir=/{DROP_INS}"] if settings.drop_in else found


def _config(settings: Settings) -> dict[str, object]:
    found: dict[str, object] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
        "cgroupDriver": settings.driver,
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
        "cpuManagerPolicy": settings.cpu_policy,
        "evictionHard": {"memory.available": "100Mi"},
        "rotateCertificates": True,
        "staticPodPath": "/etc/kubernetes/manifests",
        "topologyManagerPolicy": settings.topology_policy,
    }
    if settings.options:
        found["cpuManagerPolicyOptions"] = dict(settings.options)
    if settings.reserved:
        found["reservedSystemCPUs"] = str(settings.reserved)
    if settings.scope != "container":
        found["topologyManagerScope"] = settings.scope
    if settings.memory_policy == "Static":
        found |= _memory_config(settings)
    return found


def _memory_config(settings: Settings) -> dict[str, object]:
    total = sum(settings.reserved_memory.values())
    return {
        "memoryManagerPolicy": "Static",
        "systemReserved": {"memory": f"{total - EVICTION // MIB}Mi"},
        "reservedMemory": [
            {"numaNode": node, "limits": {"memory": f"{size}Mi"}}
            for node, size in settings.reserved_memory.items()
        ],
    }


def _yaml(value: dict[str, object], indent: str = "") -> str:
    return "".join(_yaml_item(f"{indent}{key}:", inner, indent) for key, inner in sorted(value.items()))


def _yaml_item(start: str, value: object, indent: str) -> str:
    if isinstance(value, dict):
        return f"{start}\n{_yaml(value, indent + '  ')}"
    if isinstance(value, list):
        return f"{start}\n" + "".join(f"{indent}- {msgspec.json.encode(item).decode()}\n" for item in value)
    return f"{start} {msgspec.json.encode(value).decode()}\n"
