"""Why a container sits where it sits: codes for which pages have a sentence in each language."""

from __future__ import annotations

import msgspec

from numacore.kubeletstate import Kubelet
from numacore.workload import Container, Cross, Kind


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why something is as it is: a code that pages have a sentence for, and what the sentence needs."""

    code: str
    values: dict[str, str | int | float] = {}


def pinning(container: Container, kubelet: Kubelet | None, kind: Kind | None) -> Reason:
    """Why a container owns CPUs, or why not.

    Rule: kubelet 1.34, cpumanager/policy_static.go `guaranteedCPUs`: static policy, Guaranteed, whole CPUs.
    """
    if container.exclusive:
        return Reason("pinned", {"cpus": len(container.exclusive)})
    if not container.kubernetes:
        return Reason("plain-cpuset" if kind == "narrowed" else "plain")
    if kubelet is None or not kubelet.present or kubelet.cpu_policy is None:
        return Reason("unknown-kubelet")
    if kubelet.cpu_policy != "static":
        return Reason("policy-none", {"policy": kubelet.cpu_policy})
    return _not_pinned_under_static(container)


def _not_pinned_under_static(container: Container) -> Reason:
    if container.qos is None:
        return Reason("unknown-qos")
    if container.qos != "Guaranteed":
        return Reason("qos", {"qos": container.qos})
    limit = container.cpu_limit
    if isinstance(limit, float | int) and limit != int(limit):
        return Reason("fraction", {"cpus": round(float(limit), 3)})
    if container.exclusive is None:
        return Reason("unknown-state")
    return Reason("late")


def remote_memory(
    container: Container, kubelet: Kubelet | None, cross: tuple[Cross, ...] | None
) -> Reason | None:
    if not cross or "memory" not in cross:
        return None
    if not container.kubernetes or kubelet is None or not kubelet.present:
        return Reason("memory-first-touch")
    if kubelet.memory_policy is None:
        return None
    if kubelet.memory_policy != "Static":
        return Reason("memory-manager-none", {"policy": kubelet.memory_policy})
    if container.memory_blocks:
        return Reason("memory-group" if len(container.memory_blocks[0].numa) > 1 else "memory-moved")
    return Reason("memory-not-managed")
