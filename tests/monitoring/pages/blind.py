"""A node whose exporter tells uids and ids and no names, in a cluster whose pods are known: put there as collector and watcher do."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from django.utils import timezone

from monitoring import selectors
from monitoring.models import Cluster, Connection, KubernetesNode, Node, Pod
from monitoring.services import recording
from numacore.facts import Facts
from numacore.report import node_report
from tests.monitoring.pages import machines, seeds


def nameless(facts: Facts) -> Facts:
    """Of pods it knows control groups and uids, and no names."""
    seen = tuple(
        msgspec.structs.replace(each, cgroup=f"/kubepods/{each.id}", namespace=None, pod=None, name=None)
        if each.kubernetes
        else each
        for each in facts.containers
    )
    return msgspec.structs.replace(facts, containers=seen)


def scene(east: Cluster) -> Node:
    """A node whose exporter cannot read names, in a cluster whose pods are known; one of its pods has no control group."""
    Connection.objects.get_or_create(cluster=east, defaults={"state": "ok", "source": "in-cluster"})
    told = machines.server(machines.topology(sockets=2, numa=2, cores=32, threads=1))
    node = seeds.node(east, "blind", nameless(told))
    KubernetesNode.objects.create(node=node, updated=timezone.now())
    Pod.objects.bulk_create(
        Pod(
            cluster=east,
            uid=each.pod_uid or "",
            kubelet_uid=each.pod_uid or "",
            namespace=each.namespace or "",
            name=each.pod or "",
            node_name="blind",
            phase="Running",
            owner_kind="Deployment",
            owner_name=f"owner-of-{each.pod}",
            running={each.id: each.name},
            created=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for each in told.containers
        if each.kubernetes
    )
    pod(east, "kata-1", "blind")
    record(node)
    return node


def pod(cluster: Cluster, name: str, node: str, phase: str = "Running", **known: object) -> Pod:
    values = {"uid": f"uid-{name}", "kubelet_uid": f"uid-{name}", "namespace": "shop", **known}
    return Pod.objects.create(cluster=cluster, name=name, node_name=node, phase=phase, **values)


def record(node: Node) -> None:
    """The next report of the node, as a shift makes it."""
    told = nameless(machines.server(machines.topology(sockets=2, numa=2, cores=32, threads=1)))
    known = selectors.joined({node.pk: told})[node.pk]
    recording.record([recording.Observation(node.pk, told, node_report(known), 0, timezone.now())])
