"""The plan of a rollout over 10,000 and 20,000 nodes on SQLite, from previews that are there: put in order and batches, hashed, written down with
a row for each node. `python -m benchmarks.rolling` prints seconds of CPU as JSON."""

import os
import sys
import time
from collections.abc import Sequence

import django
import msgspec

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from monitoring.models import Cluster  # noqa: E402
from numacore.change.wish import Wish  # noqa: E402
from policies import plan as plans  # noqa: E402
from policies.models import Rollout  # noqa: E402
from policies.plan import Options, Plan, PlannedNode  # noqa: E402
from policies.services.rollout import planning  # noqa: E402

SIZES = (10_000, 20_000)
TIMES = 3
OPTIONS = Options(batch="5%", max_unavailable="5%")
WISH = Wish(topology_policy="single-numa-node", prefer_closest=True)


def nodes(number: int) -> list[PlannedNode]:
    """As previews leave them."""
    keys = {
        "cpuManagerPolicy": "static",
        "topologyManagerPolicy": "single-numa-node",
        "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
        "systemReserved": {"cpu": "500m", "memory": "1Gi"},
    }
    return [
        PlannedNode(
            name=f"node-{nth:05}",
            uid=f"00000000-0000-4000-8000-{nth:012}",
            machine_id=f"{nth:032x}",
            batch=0,
            path="/var/lib/kubelet/config.yaml",
            before="a" * 64,
            after="b" * 64,
            keys=keys,
            intended=keys,
            present=dict.fromkeys(keys),
            state_files=("cpu_manager_state",),
            lost=tuple(f"shop/web-{nth}-{pod}" for pod in range(3)),
            moved=15,
            topology="c" * 64,
        )
        for nth in reversed(range(number))
    ]


def measured(cluster: Cluster, given: Sequence[PlannedNode]) -> float:
    """Seconds of CPU of one plan."""
    now = timezone.now()
    rollout = Rollout.objects.create(
        cluster=cluster,
        version=1,
        made=now,
        made_by="bench",
        changed=now,
        options=msgspec.to_builtins(OPTIONS),
    )
    started = time.process_time()
    plan = Plan(
        cluster=cluster.slug,
        rollout=rollout.pk,
        wish=WISH,
        options=OPTIONS,
        nodes=planning.in_batches(given, OPTIONS),
    )
    rollout.plan, rollout.plan_hash = msgspec.to_builtins(plan), plans.digest(plan)
    rollout.save()
    planning.write_nodes(rollout, plan)
    took = time.process_time() - started
    rollout.refresh_from_db()
    assert plans.digest(msgspec.convert(rollout.plan, Plan)) == rollout.plan_hash
    return took


def main() -> None:
    call_command("migrate", verbosity=0)
    cluster, _made = Cluster.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    found = {str(size): [measured(cluster, nodes(size)) for _ in range(TIMES)] for size in SIZES}
    sys.stdout.write(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    main()
