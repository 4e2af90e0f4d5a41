"""Nodes whose kubelet somebody else configures: how they are known, so that nobody's settings are changed behind his back.

What is written there by hand is lost at the next boot or replacement, or called a drift. The sentence of each code in
`policies.words.changing` says where the change belongs.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from numacore.diagnosis import Reason


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the API server says of a node, as far as it tells who configures it."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    os_image: str = ""
    version: str = ""
    """Of the kubelet."""


class _Mark(msgspec.Struct, frozen=True):
    """Any one of these is enough; each is the beginning of a name, image or path, `versions` parts of a version."""

    code: str
    keys: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


_MARKS = (
    # machine-config-operator, docs/MachineConfigDaemon.md: its annotations on each Node
    _Mark("managed-openshift", ("machineconfiguration.openshift.io/", "node.openshift.io/os_id"), ("Red Hat Enterprise Linux CoreOS",)),
    # docs.rke2.io, reference/linux_agent_config; docs.k3s.io, cli/agent: kubelet-arg
    _Mark("managed-rke2", ("rke2.io/",), versions=("+rke2",), paths=("/var/lib/rancher/rke2/",)),
    _Mark("managed-k3s", ("k3s.io/",), versions=("+k3s",), paths=("/var/lib/rancher/k3s/",)),
    # docs.siderolabs.com, reference/configuration/v1alpha1/config: machine.kubelet.extraConfig
    _Mark("managed-talos", ("talos.dev/", "extensions.talos.dev/"), ("Talos ",)),
    # bottlerocket.dev, settings.kubernetes: before EKS, on which it often runs
    _Mark("managed-bottlerocket", ("bottlerocket.aws/",), ("Bottlerocket ",)),
    # awslabs.github.io/amazon-eks-ami, nodeadm: NodeConfig spec.kubelet.config
    _Mark("managed-eks", ("eks.amazonaws.com/",), versions=("-eks-",)),
    # cloud.google.com, kubernetes-engine/docs/how-to/node-system-config
    _Mark("managed-gke", ("cloud.google.com/gke-",), ("Container-Optimized OS",), ("-gke.",)),
    # learn.microsoft.com, azure/aks/custom-node-configuration
    _Mark("managed-aks", ("kubernetes.azure.com/",)),
    # docs.k0sproject.io, worker-node-config: worker profiles
    _Mark("managed-k0s", ("node.k0sproject.io/",), versions=("+k0s",), paths=("/var/lib/k0s/",)),
    # microk8s.io, docs/configuring-services: arguments of the snap
    _Mark("managed-microk8s", ("microk8s.io/",), paths=("/var/snap/microk8s/",)),
    # kops.sigs.k8s.io, cluster_spec: spec.kubelet; nodeup writes the file at each boot
    _Mark("managed-kops", ("kops.k8s.io/",)),
    # gardener.cloud, usage/shoot: spec.kubernetes.kubelet
    _Mark("managed-gardener", ("worker.gardener.cloud/",)),
)  # fmt: skip
"""The first that is met counts."""
CODES = tuple(mark.code for mark in _MARKS)


def managed(info: NodeInfo, paths: tuple[str, ...] = ()) -> Reason | None:
    """Who else configures this kubelet, with what tells it; None = nobody that is known. `paths`: of the files that it reads."""
    names = (*info.labels, *info.annotations)
    for mark in _MARKS:
        for found in (
            next((name for name in names if name.startswith(mark.keys)), "") if mark.keys else "",
            info.os_image if mark.images and info.os_image.startswith(mark.images) else "",
            info.version if any(part in info.version for part in mark.versions) else "",
            next((path for path in paths if path.startswith(mark.paths)), "") if mark.paths else "",
        ):
            if found:
                return Reason(mark.code, {"by": found})
    return None
