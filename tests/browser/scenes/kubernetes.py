"""A cluster that is read through its API server."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from monitoring.models import (
    Cluster,
    ClusterEvent,
    Connection,
    Endpoint,
    Node,
    SourceView,
    WatchHealth,
)
from tests.monitoring.pages import blind, refusals, seeds


def scene() -> None:
    """`west` answers without one right; `far` cannot even be asked, as its watcher wrote it down."""
    west, now = seeds.cluster("west", "West of <the> river & more"), timezone.now()
    refusals.connected(west, version="v1.37.2", reached="https://10.0.0.1:6443", missing=MISSING)
    node = blind.scene(west)
    # Its exporter is not to grow silent while the tests run.
    Node.objects.filter(pk=node.pk).update(last_seen=now + timedelta(days=1))
    bare = seeds.unheard(west, "bare")
    blind.pod(west, "web-1", "bare", owner_kind="Deployment", owner_name="web", created=now)
    blind.pod(west, "x" * 240, "", "Pending", owner_kind="StatefulSet", owner_name="y" * 200)
    refusals.told(west, *(refusals.owned("inference", number, node="blind") for number in range(3)))
    for of, reason in ((node, "OOMKilling"), (bare, "NodeNotReady")):
        ClusterEvent.objects.create(
            cluster=west, uid=reason, kind="Node", name=of.name, node_name=of.name, warning=True,
            reason=reason, message="out of memory: " + "z" * 300, component="kubelet", count=3, last=now,
        )  # fmt: skip
    SourceView.objects.create(
        node=node, source="numatopology", changed=now, values={"topology_policy": "restricted"}
    )
    connection = Connection.objects.get(cluster=west)
    WatchHealth.objects.create(
        connection=connection,
        resource="events",
        state="waiting",
        since=now,
        error="no route",
        remedy="check-api-server-runs",
    )
    far = seeds.cluster("far", "Far")
    refusals.connected(far, state="failing", error=UNASKED, remedy="renew-credentials")
    blind.pod(far, "web-1", "", "Pending", owner_kind="Deployment", owner_name="web", created=now)
    # Nobody is to be asked about them: no exporter and no API server.
    Endpoint.objects.filter(cluster=west).update(enabled=False)
    Cluster.objects.filter(pk__in=(west.pk, far.pk)).update(enabled=False)


MISSING = [{"verb": "get", "group": "", "resource": "nodes", "subresource": "configz", "why": "configz"}]
UNASKED = "KUBERNETES_SERVICE_HOST: it is not set, so this process runs in no pod: give a kubeconfig instead"
