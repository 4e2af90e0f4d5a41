"""What a cgroup's path says: a container of a pod, one of another runtime, a systemd unit, or just a group.

Formats: kubelet cm/pod_container_manager_linux.go and cgroup_manager_linux.go (both drivers), the runtimes' cgroup
names, systemd.slice(5), lxc.container.conf(5).
"""

from __future__ import annotations

import re

import msgspec

from numacore.workload import QOS

_ID = r"[0-9a-f]{64}"
_UID = r"[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32}"
_POD = re.compile(rf"(?:.+-)?pod({_UID})(?:\.slice)?", re.ASCII)
_SCOPE = re.compile(rf"(?:([a-z-]+)-)?({_ID})(?:\.scope)?", re.ASCII)
_LXC = re.compile(r"lxc\.payload(?:\.(.+))?")
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_RUNTIMES = {
    "cri-containerd": "containerd",
    "containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "cri-o",
    "docker": "docker",
    "cri-dockerd": "docker",
    "libpod": "podman",
}
_FOLDERS = {"docker": "docker", "libpod_parent": "podman", "default": "containerd", "k8s.io": "containerd"}
"""Runtime of a bare id by the folder that it is in."""


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the path of a cgroup says. `unit`: a systemd unit rather than a container."""

    path: str
    id: str
    name: str | None = None
    runtime: str | None = None
    pod_uid: str | None = None
    qos: QOS | None = None
    kubernetes: bool = False
    unit: bool = False


def is_kubernetes(step: str) -> bool:
    """Whether a step of a path leads to pods."""
    return "kubepods" in step or step in ("kubelet", "kubelet.slice")


def is_pod(step: str) -> bool:
    """Whether a step of a path is a pod's own group."""
    return _POD.fullmatch(step) is not None


def recognise(path: str) -> Group | None:
    """The container or unit whose own group this is, or None: part of one, or a group of nothing known."""
    steps = path.strip("/").split("/")
    if len(steps) > 1 and any("kubepods" in step for step in steps[:-1]):
        pod = _POD.fullmatch(steps[-2])
        return _of_pod(path, steps, pod[1].replace("_", "-")) if pod else None
    return _elsewhere(path, steps)


def _of_pod(path: str, steps: list[str], uid: str) -> Group | None:
    scope = _SCOPE.fullmatch(steps[-1])
    if scope is None or scope[1] not in (None, *_RUNTIMES):
        return None  # conmon and the like watch over a container
    return Group(
        path=path,
        id=scope[2],
        runtime=_RUNTIMES.get(scope[1]) if scope[1] else None,
        pod_uid=uid,
        qos=_qos(steps),
        kubernetes=True,
    )


def _qos(steps: list[str]) -> QOS:
    above = "/".join(steps[:-1])
    if "besteffort" in above:
        return "BestEffort"
    return "Burstable" if "burstable" in above else "Guaranteed"


def _elsewhere(path: str, steps: list[str]) -> Group | None:
    last = steps[-1]
    if scope := _SCOPE.fullmatch(last):
        runtime = _RUNTIMES.get(scope[1]) if scope[1] else _FOLDERS.get(steps[-2] if len(steps) > 1 else "")
        if scope[1] and runtime is None:
            return None
        return Group(path=path, id=scope[2], name=scope[2][:12], runtime=runtime)
    if lxc := _LXC.fullmatch(last):
        return Group(path=path, id=path, name=lxc[1] or last, runtime="lxc")
    if len(steps) > 1 and steps[-2] == "lxc":
        return Group(path=path, id=path, name=last, runtime="lxc")
    if last.endswith((".service", ".scope")):
        return Group(path=path, id=path, name=_readable(last), runtime="systemd", unit=True)
    return None


def _readable(unit: str) -> str:
    """systemd.unit(5): bytes that are no letters are written as `\\x2d`."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), unit)
