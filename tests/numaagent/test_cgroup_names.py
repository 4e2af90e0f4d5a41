"""What a cgroup's path says, for every runtime and both cgroup drivers."""

from __future__ import annotations

import pytest

from numaagent.readers.cgroupnames import recognise

ID = "0123456789abcdef" * 4
UID = "3b198ee4-01fc-4908-a4e7-733874a9714f"
UNDERSCORED = UID.replace("-", "_")
STATIC = "8d2c1a4f6b7e9d0c1b2a3f4e5d6c7b8a"

PODS = [
    # systemd driver
    (
        f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope",
        "Guaranteed",
        "containerd",
    ),
    (
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORED}.slice/crio-{ID}.scope",
        "Burstable",
        "cri-o",
    ),
    (
        f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UNDERSCORED}.slice/docker-{ID}.scope",
        "BestEffort",
        "docker",
    ),
    # cgroupfs driver
    (f"/kubepods/pod{UID}/{ID}", "Guaranteed", None),
    (f"/kubepods/burstable/pod{UID}/{ID}", "Burstable", None),
    (f"/kubepods/besteffort/pod{UID}/{ID}", "BestEffort", None),
    (f"/kubepods/burstable/pod{UID}/crio-{ID}", "Burstable", "cri-o"),
    # below a root of their own, and in a node that is itself a container
    (
        f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope",
        "Guaranteed",
        "containerd",
    ),
    (f"/docker/{ID}/kubelet/kubepods/besteffort/pod{UID}/{ID}", "BestEffort", None),
]


@pytest.mark.parametrize(("path", "qos", "runtime"), PODS)
def test_it_recognises_containers_of_pods(path: str, qos: str, runtime: str | None) -> None:
    group = recognise(path)
    assert group is not None
    assert (group.id, group.pod_uid, group.qos, group.runtime) == (ID, UID, qos, runtime)
    assert group.kubernetes
    assert not group.unit


def test_it_recognises_static_pods() -> None:
    group = recognise(f"/kubepods/burstable/pod{STATIC}/{ID}")
    assert group is not None
    assert group.pod_uid == STATIC


@pytest.mark.parametrize(
    ("path", "runtime", "name"),
    [
        (f"/docker/{ID}", "docker", ID[:12]),
        (f"/system.slice/docker-{ID}.scope", "docker", ID[:12]),
        (f"/machine.slice/libpod-{ID}.scope", "podman", ID[:12]),
        (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope", "podman", ID[:12]),
        (f"/system.slice/nerdctl-{ID}.scope", "containerd", ID[:12]),
        (f"/default/{ID}", "containerd", ID[:12]),
        (f"/elsewhere/{ID}", None, ID[:12]),
        ("/lxc.payload.database", "lxc", "database"),
        ("/lxc/database", "lxc", "database"),
    ],
)
def test_it_recognises_containers_outside_kubernetes(path: str, runtime: str | None, name: str) -> None:
    group = recognise(path)
    assert group is not None
    assert (group.runtime, group.name, group.kubernetes, group.unit) == (runtime, name, False, False)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/system.slice/sshd.service", "sshd.service"),
        ("/init.scope", "init.scope"),
        ("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "machine-qemu-1-vm.scope"),
    ],
)
def test_it_recognises_units_of_systemd(path: str, name: str) -> None:
    group = recognise(path)
    assert group is not None
    assert (group.name, group.runtime, group.unit) == (name, "systemd", True)


@pytest.mark.parametrize(
    "path",
    [
        "/kubepods.slice",
        "/kubepods.slice/kubepods-burstable.slice",
        f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice",
        f"/kubepods/pod{UID}",
        f"/kubepods/pod{UID}/crio-conmon-{ID}",
        f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/crio-conmon-{ID}.scope",
        f"/machine.slice/libpod-conmon-{ID}.scope",
        "/system.slice",
        "/torque/513099",
    ],
)
def test_it_recognises_nothing_else(path: str) -> None:
    group = recognise(path)
    assert group is None or (group.unit and not group.kubernetes)
