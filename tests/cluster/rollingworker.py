"""A worker of rollouts as a process of its own, which a test may kill: `python -m tests.cluster.rollingworker FOLDER COMMAND`.

setup    a cluster over FOLDER/kubeconfig, its nodes from FOLDER/nodes, a policy that is planned and confirmed; prints the rollout's number
key      prints what appliers are to believe
work N   rounds until the rollout rests; what exporters tell stands in FOLDER/nodes
result N prints what came of it
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from monitoring.models import Cluster, Connection, Node  # noqa: E402
from numacore.change.wish import Wish  # noqa: E402
from policies import audit  # noqa: E402
from policies.models import Act, Rollout  # noqa: E402
from policies.plan import Options  # noqa: E402
from policies.services import policy as policies  # noqa: E402
from policies.services.policy import Target  # noqa: E402
from policies.services.rollout import control, planning, signing, work  # noqa: E402
from policies.services.who import Who  # noqa: E402
from tests.monitoring.pages import seeds  # noqa: E402
from tests.policies.playedcluster import Machine  # noqa: E402

ADA = Who("ada", "10.0.0.4")


def machines(folder: Path) -> list[Machine]:
    """As the nodes are now: name, uid, text and state of each in a file of its own."""
    found = []
    for file in sorted((folder / "nodes").glob("*.json")):
        told = json.loads(file.read_text())
        machine = Machine(told["name"], told["text"])
        machine.uid, machine.applier.cpu_policy = told["uid"], told["cpu_policy"]
        found.append(machine)
    return found


def setup(folder: Path) -> int:
    call_command("migrate", verbosity=0)
    cluster: Cluster = seeds.cluster("real", "Real")
    kubeconfig = (folder / "kubeconfig").read_text()
    Connection.objects.create(cluster=cluster, source="kubeconfig", kubeconfig=kubeconfig, state="ok")
    for machine in machines(folder):
        row = seeds.node(cluster, machine.name, machine.told()[0], uid=machine.uid)
        seeds.in_kubernetes(row, labels={})
    wish = Wish(topology_policy="single-numa-node")
    policy = policies.save(cluster, Target("cluster"), wish, True, ADA, timezone.now())
    made = control.create(cluster, policy, Options(), ADA, timezone.now())
    planning.plan_work(made.pk)
    made.refresh_from_db()
    control.confirm(made, made.plan_hash, made.nodes.count(), ADA, timezone.now())
    return made.pk


def rounds(folder: Path, number: int) -> None:
    while Rollout.objects.get(pk=number).is_active:
        for machine in machines(folder):
            seeds.live(Node.objects.get(name=machine.name), *machine.told(), time.time())
        work.work(number)
        time.sleep(0.05)


def result(number: int) -> dict[str, object]:
    rollout = Rollout.objects.get(pk=number)
    acts = Act.objects.exclude(kind="note").order_by("pk")
    return {
        "state": rollout.state,
        "outcomes": dict(rollout.nodes.values_list("name", "outcome")),
        "acts": [f"{node} {kind}" for node, kind in acts.values_list("node__name", "kind")],
        "unfinished": acts.exclude(state="done").count(),
        "audit": audit.verify() is None,
    }


def main(folder: Path, command: str, number: int = 0) -> None:
    match command:
        case "setup":
            print(setup(folder))
        case "key":
            print(signing.signer().public_pem, end="")
        case "work":
            rounds(folder, number)
        case "result":
            print(json.dumps(result(number)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
