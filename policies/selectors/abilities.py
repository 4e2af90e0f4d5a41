"""What a target's kubelets are too old for."""

from __future__ import annotations

from monitoring.models import Cluster, KubernetesNode
from numacore.kubelet import options
from numacore.kubelet.settings import UnknownVersionError, minor_of
from policies.models import Policy, Pool
from policies.selectors import precedence


def without_distance(cluster: Cluster, level: str, name: str) -> tuple[str, ...]:
    """Versions of the target's kubelets, if none of those that are known has the option `prefer-closest-numa-nodes`; empty = one has it,
    or no version is known. Where only some lack it, their previews say so."""
    told = KubernetesNode.objects.filter(node__cluster=cluster, node__gone_at=None).exclude(
        kubelet_version=""
    )
    if level == Policy.Level.NODE:
        told = told.filter(node__name=name)
    known = dict(told.values_list("node__name", "kubelet_version"))
    if level == Policy.Level.POOL:
        pool = Pool.objects.get(cluster=cluster, name=name)
        inside = precedence.selected(pool.selector, precedence.labels_of(cluster))
        known = {node: version for node, version in known.items() if node in inside}
    versions = sorted(set(known.values()))
    return tuple(versions) if versions and all(map(_lacks_distance, versions)) else ()


def _lacks_distance(version: str) -> bool:
    try:
        return options.topology_maturity(options.PREFER_CLOSEST, minor_of(version)) is None
    except UnknownVersionError:
        return False  # nobody knows
