"""A cluster with pools and policies."""

from __future__ import annotations

from django.utils import timezone

from monitoring.models import Cluster
from numacore.change.wish import Wish
from policies.models import Pool
from policies.services import policy
from policies.services.policy import Target
from policies.services.who import Who
from tests.monitoring.pages import seeds

LABELS = {
    "fast-0": {"tier": "gold", "zone": "a"},
    "fast-1": {"tier": "gold", "zone": "b"},
    "slow-0": {"tier": "iron", "zone": "a"},
    "spare-0": {"tier": "spare"},
}


def scene() -> None:
    """Two pools that have come to meet, one that has not, a policy with two versions, and one of a node's own."""
    ada, now = Who("ada", "10.0.0.9"), timezone.now()
    west = seeds.cluster("west", "West")
    west.enabled = False  # nobody is to be asked about it
    west.save()
    for name, labels in LABELS.items():
        seeds.unheard(west, name, labels=labels)
    west.nodes.filter(name="fast-0").update(topology_policy="none", cpu_policy="none")
    first, second = Wish(topology_policy="best-effort"), Wish(topology_policy="restricted", scope="pod")
    policy.save(west, Target("cluster"), first, True, ada, now)
    # Of these nodes an exporter tells everything but the version of their kubelets.
    simulated = Wish(topology_policy="single-numa-node", prefer_closest=True)
    policy.save(Cluster.objects.get(slug="simulated"), Target("cluster"), simulated, True, ada, now)
    policy.save(west, Target("cluster"), second, True, ada, now, 1)
    policy.save(west, Target("node", "fast-0"), Wish(topology_policy="none"), True, ada, now)
    policy.save_pool(west, "spare", "tier=spare", ada, now)
    for name, selector in (("gold", "tier=gold"), ("zone-a", "zone=a")):
        Pool.objects.create(cluster=west, name=name, selector=selector, changed=now, changed_by="ada")
