"""Which file takes a change, and whose nodes are left alone."""

from __future__ import annotations

import msgspec
import pytest

from numacore.change import editing
from numacore.change.managed import CODES, NodeInfo
from numacore.change.route import Route, route
from numacore.kubeletstate import Kubelet, KubeletFile, Setting

FILE = KubeletFile(
    path="/var/lib/kubelet/config.yaml", kind="file", sha256="0" * 64, text="kind: KubeletConfiguration\n"
)
FOLDER = "/etc/kubernetes/kubelet.conf.d"


def drop_in(name: str) -> KubeletFile:
    return KubeletFile(
        path=f"{FOLDER}/{name}", kind="drop-in", sha256="1" * 64, text="kind: KubeletConfiguration\n"
    )


PLAIN = Kubelet(present=True, version="v1.37.0", files=(FILE,))
WITH_FOLDER = msgspec.structs.replace(PLAIN, drop_in_dir=FOLDER, files=(FILE, drop_in("10-base.conf")))
KEYS = ("topologyManagerPolicy", "cpuManagerPolicy")


def asked(told: Kubelet | None, info: NodeInfo | None = None) -> Route:
    return route(told, KEYS, info or NodeInfo())


def with_setting(told: Kubelet, setting: Setting) -> Kubelet:
    return msgspec.structs.replace(told, settings={"cpuManagerPolicy": setting})


def test_the_kubelets_own_file_takes_it() -> None:
    assert asked(PLAIN) == Route(path="/var/lib/kubelet/config.yaml")


def test_where_the_kubelet_reads_a_folder_our_own_file_in_it_takes_it() -> None:
    assert asked(WITH_FOLDER) == Route(path=f"{FOLDER}/90-numa.conf", drop_in=True)
    earlier = with_setting(WITH_FOLDER, Setting("none", "drop-in", f"{FOLDER}/10-base.conf"))
    assert asked(earlier).refusals == ()
    ours = with_setting(WITH_FOLDER, Setting("none", "drop-in", f"{FOLDER}/90-numa.conf"))
    assert asked(ours).refusals == ()


def test_a_file_of_somebody_else_under_our_name_is_not_written_over() -> None:
    path = f"{FOLDER}/90-numa.conf"
    (main, *_) = WITH_FOLDER.files or ()
    theirs = KubeletFile(path=path, kind="drop-in", text="kind: KubeletConfiguration\n")
    found = asked(msgspec.structs.replace(WITH_FOLDER, files=(main, theirs)))
    assert [(each.code, each.values) for each in found.refusals] == [
        ("route-foreign-drop-in", {"file": path})
    ]
    ours = msgspec.structs.replace(theirs, text=editing.drop_in({"cpuManagerPolicy": "static"}))
    assert asked(msgspec.structs.replace(WITH_FOLDER, files=(main, ours))).path == path


@pytest.mark.parametrize(
    ("told", "code", "values"),
    [
        (None, "route-no-kubelet", {}),
        (Kubelet(), "route-no-kubelet", {}),
        (Kubelet(present=False), "route-no-kubelet", {}),
        (Kubelet(present=True), "route-not-told", {}),
        (msgspec.structs.replace(PLAIN, files=()), "route-no-file", {}),
        (msgspec.structs.replace(PLAIN, files=(FILE, KubeletFile(path="/b", kind="drop-in"))), "route-unreadable", {"file": "/b"}),
        (msgspec.structs.replace(PLAIN, files=(KubeletFile(path="/a", kind="file", withheld="unreadable"),)), "route-unreadable", {"file": "/a"}),
        (msgspec.structs.replace(PLAIN, files=(KubeletFile(path="/a", kind="file", withheld="too-large"),)), "route-too-large", {"file": "/a"}),
        (msgspec.structs.replace(PLAIN, files=(KubeletFile(path="/a", kind="file", withheld="not-text"),)), "route-not-text", {"file": "/a"}),
        (msgspec.structs.replace(PLAIN, files=(KubeletFile(path="/a", kind="file", withheld="secret"),)), "route-secret", {"file": "/a"}),
        (with_setting(PLAIN, Setting("static", "flag", "--cpu-manager-policy")), "route-flag", {"field": "cpuManagerPolicy", "flag": "--cpu-manager-policy"}),
        (with_setting(WITH_FOLDER, Setting("static", "flag", "--cpu-manager-policy")), "route-flag", {"field": "cpuManagerPolicy", "flag": "--cpu-manager-policy"}),
        (with_setting(WITH_FOLDER, Setting("static", "drop-in", f"{FOLDER}/99-site.conf")), "route-later-drop-in",
         {"field": "cpuManagerPolicy", "file": f"{FOLDER}/99-site.conf"}),
    ],
)  # fmt: skip
def test_where_a_change_would_be_lost_or_blind_it_is_refused(
    told: Kubelet | None, code: str, values: dict[str, str]
) -> None:
    found = asked(told)
    assert [(reason.code, reason.values) for reason in found.refusals] == [(code, values)]
    assert found.path == ""


def test_every_field_that_is_overruled_is_told_by_name() -> None:
    by_flag = {name: Setting("x", "flag", f"--{name}") for name in ("d", "b", "c")}
    told = msgspec.structs.replace(PLAIN, settings=by_flag)
    found = route(told, ("d", "not-set", "c", "b"), NodeInfo())
    assert [reason.values["field"] for reason in found.refusals] == ["b", "c", "d"]


def test_the_kubelets_file_with_a_secret_in_it_is_in_nobodys_way_where_a_folder_takes_the_change() -> None:
    """Nobody edits it, and a secret is none of the fields that may change. One in the file that is edited would be written over."""
    secret = msgspec.structs.replace(FILE, text=None, withheld="secret")
    hidden = msgspec.structs.replace(drop_in("90-numa.conf"), text=None, withheld="unreadable")
    assert asked(msgspec.structs.replace(WITH_FOLDER, files=(secret, drop_in("10-base.conf")))).refusals == ()
    assert asked(msgspec.structs.replace(PLAIN, files=(secret,))).refusals
    found = asked(msgspec.structs.replace(WITH_FOLDER, files=(secret, hidden)))
    assert [(each.code, each.values) for each in found.refusals] == [
        ("route-unreadable", {"file": hidden.path})
    ]


def test_a_folder_may_end_in_a_slash_and_the_kubelets_file_need_not_come_first() -> None:
    told = msgspec.structs.replace(WITH_FOLDER, drop_in_dir=f"{FOLDER}/")
    assert asked(told).path == f"{FOLDER}/90-numa.conf"
    turned = msgspec.structs.replace(PLAIN, files=(drop_in("10-base.conf"), FILE))
    assert asked(turned).path == FILE.path


def test_who_configures_a_node_is_known_by_the_path_that_its_kubelet_was_started_with() -> None:
    told = Kubelet(present=True, config_path="/var/lib/k0s/kubelet-config.yaml")
    assert [each.code for each in asked(told).refusals] == ["managed-k0s"]


def test_a_flag_for_another_field_is_in_nobodys_way() -> None:
    told = msgspec.structs.replace(PLAIN, settings={"maxPods": Setting(110, "flag", "--max-pods")})
    assert asked(told).refusals == ()


@pytest.mark.parametrize(
    ("info", "path", "code"),
    [
        (NodeInfo(annotations={"machineconfiguration.openshift.io/currentConfig": "rendered-worker-1"}), "", "managed-openshift"),
        (NodeInfo(os_image="Red Hat Enterprise Linux CoreOS 417.94"), "", "managed-openshift"),
        (NodeInfo(version="v1.33.1+rke2r1"), "", "managed-rke2"),
        (NodeInfo(annotations={"k3s.io/node-args": "[]"}), "", "managed-k3s"),
        (NodeInfo(version="v1.33.1+k3s1"), "", "managed-k3s"),
        (NodeInfo(), "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf", "managed-rke2"),
        (NodeInfo(os_image="Talos (v1.10.3)"), "", "managed-talos"),
        (NodeInfo(os_image="Bottlerocket OS 1.40.0 (aws-k8s-1.33)", labels={"eks.amazonaws.com/nodegroup": "a"}), "", "managed-bottlerocket"),
        (NodeInfo(labels={"eks.amazonaws.com/nodegroup": "a"}), "", "managed-eks"),
        (NodeInfo(version="v1.33.0-eks-802817d"), "", "managed-eks"),
        (NodeInfo(labels={"cloud.google.com/gke-nodepool": "default"}), "", "managed-gke"),
        (NodeInfo(labels={"kubernetes.azure.com/cluster": "mc"}), "", "managed-aks"),
        (NodeInfo(version="v1.33.1+k0s"), "", "managed-k0s"),
        (NodeInfo(labels={"microk8s.io/cluster": "true"}), "", "managed-microk8s"),
        (NodeInfo(labels={"kops.k8s.io/instancegroup": "nodes"}), "", "managed-kops"),
        (NodeInfo(labels={"worker.gardener.cloud/pool": "a"}), "", "managed-gardener"),
    ],
)  # fmt: skip
def test_nodes_that_somebody_else_configures_are_left_alone(info: NodeInfo, path: str, code: str) -> None:
    told = msgspec.structs.replace(PLAIN, files=(msgspec.structs.replace(FILE, path=path or FILE.path),))
    (reason,) = asked(told, info).refusals
    assert reason.code == code
    assert code in CODES
    assert reason.values["by"]


def test_ordinary_nodes_are_nobody_elses() -> None:
    info = NodeInfo(
        labels={"kubernetes.io/hostname": "a", "node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": "z"},
        annotations={"kubeadm.alpha.kubernetes.io/cri-socket": "unix:///run/containerd/containerd.sock"},
        os_image="openEuler 24.03 (LTS-SP1)",
        version="v1.34.2",
    )  # fmt: skip
    assert asked(PLAIN, info).refusals == ()
