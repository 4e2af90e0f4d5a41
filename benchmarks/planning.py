"""A plan over 500 nodes in PostgreSQL and Redis: `python -m benchmarks.planning` within an installation's environment; prints seconds of CPU
as JSON.

Every node has state of its own: 60 containers, some of which own CPUs. `first`: nothing is remembered; `other`: another question on
the same nodes; `again`: the same question once more.
"""

import os
import sys
import time
from collections.abc import Callable

import django
import msgspec

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
django.setup()

from django.utils import timezone  # noqa: E402

from benchmarks.measure import ROUNDS  # noqa: E402
from monitoring import hot  # noqa: E402
from monitoring.models import Cluster, Node, Topology  # noqa: E402
from monitoring.selectors import planning  # noqa: E402
from monitoring.selectors.planning import Plan, Question  # noqa: E402
from monitoring.sources import manifest  # noqa: E402
from numacore import wire  # noqa: E402
from numasim.fleet import Fleet  # noqa: E402

NODES = 500
JOB = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: planned}
spec:
  tasks:
  - {name: worker, replicas: 1, topologyPolicy: best-effort,
     template: {spec: {containers: [{name: main, resources: {limits: {cpu: "8", memory: 16Gi}}}]}}}
"""


def fill() -> Cluster:
    """500 nodes of one model, as their exporters tell of themselves."""
    cluster = Cluster.objects.create(slug="planned", name="Planned")
    machine = Topology.objects.create(hash="0" * 32, document=b"{}", cpus=384, numa_nodes=8, sockets=2)
    now = timezone.now()
    fleet = Fleet(NODES)
    for number in range(NODES):
        heard = wire.decode(bytes(fleet.answer(number, "/v1/snapshot").body))
        row = Node.objects.create(
            cluster=cluster,
            name=heard.exporter.node,
            uid=str(number),
            topology=machine,
            slot=8 * number,
            first_seen=now,
            last_seen=now,
        )
        sections = {name: bytes(each.data) for name, each in heard.sections.items()}  # type: ignore[arg-type]
        hot.store().put(
            [
                hot.HotNode(
                    node=row.pk,
                    endpoint=0,
                    exporter=heard.exporter,
                    received=time.time(),
                    taken=heard.taken,
                    hashes={name: each.hash for name, each in heard.sections.items()},
                    confirmed={},
                    sections=sections,
                )
            ]
        )
    return cluster


def ask(cluster: Cluster, question: Question) -> Plan:
    (group,) = manifest.read(JOB)
    found = planning.plan(cluster, group, question, timezone.now(), seconds=600.0)
    assert (len(found.rows), found.pending) == (NODES, 0)
    assert len(found.judged) == NODES, found.rows[-1]
    return found


def seconds(what: Callable[[], object]) -> float:
    started = time.process_time()
    what()
    return time.process_time() - started


def main() -> None:
    cluster = fill()
    found: dict[str, list[float]] = {"first": [], "other": [], "again": []}
    for _ in range(ROUNDS):
        planning.forget()
        found["first"].append(seconds(lambda: ask(cluster, Question())))
        found["other"].append(seconds(lambda: ask(cluster, Question(policy="single-numa-node"))))
        found["again"].append(seconds(lambda: ask(cluster, Question())))
    sys.stdout.write(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    main()
