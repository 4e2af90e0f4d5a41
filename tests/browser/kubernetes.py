"""Puts a cluster that is read through its API server into the database of a running site: `python -m tests.browser.kubernetes`."""

from __future__ import annotations

from datetime import timedelta

import django


def main() -> None:
    django.setup()
    # Only now may models be imported.
    from django.utils import timezone  # noqa: PLC0415

    from monitoring.models import (  # noqa: PLC0415
        ClusterEvent,
        Connection,
        Endpoint,
        Node,
        SourceView,
        WatchHealth,
    )
    from tests.monitoring.pages import blind, refusals, seeds  # noqa: PLC0415

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
    # Nobody is to be asked about it: no exporter and no API server.
    Endpoint.objects.filter(cluster=west).update(enabled=False)
    west.enabled = False
    west.save()


MISSING = [{"verb": "get", "group": "", "resource": "nodes", "subresource": "configz", "why": "configz"}]


if __name__ == "__main__":
    main()
