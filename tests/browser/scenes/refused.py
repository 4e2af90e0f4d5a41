"""A cluster with refused pods, and clean-ups of them."""

from __future__ import annotations

from django.utils import timezone

from monitoring.models import Endpoint
from policies.models import Cleanup, CleanupPod
from tests.monitoring.pages import machines, refusals, seeds


def scene() -> None:
    east = seeds.cluster()
    seeds.node(east, "node-07", machines.server(machines.topology(sockets=2, numa=2, cores=32, threads=1)))
    seeds.node(east, "solo", machines.server(machines.topology(sockets=1, numa=1, cores=8, threads=1)))
    silent = machines.server(machines.topology(sockets=2, numa=1, cores=8, threads=2))
    seeds.node(east, "silent", silent, heard=0)
    refusals.scene(east)
    # Nobody is to be asked about it: no exporter and no API server.
    Endpoint.objects.filter(cluster=east).update(enabled=False)
    east.enabled = False
    east.save()
    now = timezone.now()
    for state, outcomes in (("preview", ("waiting",)), ("running", ("deleted", "changed", "waiting"))):
        made = Cleanup.objects.create(
            cluster=east,
            state=state,
            made=now,
            made_by="otto",
            started=now,
            started_by="otto",
            address="10.0.0.5",
        )
        for number in range(6):
            CleanupPod.objects.create(
                cleanup=made,
                uid=f"{number}",
                namespace="shop",
                name=f"inference-{number}",
                node_name="node-07",
                owner_kind="StatefulSet",
                owner_name="inference",
                reason="TopologyAffinityError",
                outcome=outcomes[number % len(outcomes)],
                cause="another pod has this name now"
                if outcomes[number % len(outcomes)] == "changed"
                else "",
            )
