"""A rollout's plan from nothing: every node's kubelet is replayed with the new settings. `python -m benchmarks.previewing NODES` on SQLite and the
store in the process prints JSON: seconds of CPU of the whole, and the longest stretch of it without a word of progress.

Every node has 15 pods and state of its own; Kubernetes tells of the pods by pages of JSON, as an API server does.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import django
import msgspec

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from monitoring import hot  # noqa: E402
from monitoring.models import Cluster, Connection, KubernetesNode, Node, Pod, Topology  # noqa: E402
from numacore import wire  # noqa: E402
from numacore.change import order as orders  # noqa: E402
from numacore.change.wish import Wish  # noqa: E402
from numacore.kubeletstate import Kubelet, KubeletFile  # noqa: E402
from numasim.fleet import Fleet  # noqa: E402
from policies.gateway import drains  # noqa: E402
from policies.gateway.nodes import LiveNode  # noqa: E402
from policies.models import Rollout  # noqa: E402
from policies.plan import Options  # noqa: E402
from policies.services import policy as policies  # noqa: E402
from policies.services.policy import Target  # noqa: E402
from policies.services.rollout import control, planning, reach  # noqa: E402
from policies.services.who import Who  # noqa: E402

PODS = 15
WHO = Who("bench", "")
ROWS = 500
HELD = 86_400.0
"""Seconds for which what is told counts as new: nobody collects meanwhile."""


class Played:
    """Stands where `policies.gateway.Hands` would."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.nodes = self
        self.drains = drains.Drains(self)  # type: ignore[arg-type]
        self.pages = [b"[" + b",".join(pods_of(name)) + b"]" for name in names]

    def all(self) -> Iterator[LiveNode]:
        for name in self.names:
            yield LiveNode(name=name, uid=f"uid-{name}", version="1", ready=True, cordoned=False)

    def listed(
        self, path: str, form: type[Any], _query: Mapping[str, str | int] | None = None
    ) -> Iterator[Any]:
        for page in self.pages if path.endswith("/pods") else ():
            yield from msgspec.json.decode(page, type=list[form])  # type: ignore[valid-type]

    def missing(self, _namespace: str) -> list[Any]:
        return []


def pods_of(node: str) -> Iterator[bytes]:
    for number in range(PODS):
        yield msgspec.json.encode(
            {
                "metadata": {
                    "name": f"web-{node}-{number}",
                    "namespace": "shop",
                    "uid": f"{node}-{number}",
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                    "labels": {"app": "web", "pod-template-hash": "5d8f7c"},
                    "ownerReferences": [{"kind": "ReplicaSet", "controller": True}],
                },
                "spec": {"nodeName": node, "volumes": [{"name": "token", "projected": {}}]},
                "status": {"phase": "Running"},
            }
        )


def kubelet(told: Kubelet) -> Kubelet:
    """With the file that says what is in force."""
    fields = {name: each.value for name, each in told.settings.items()}
    text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + "".join(
        f"{name}: {msgspec.json.encode(value).decode()}\n" for name, value in fields.items()
    )
    path = str(told.config_path)
    file = KubeletFile(path=path, kind="file", sha256=orders.sha256(text), text=text)
    return msgspec.structs.replace(told, version="v1.37.2", files=(file,))


def fill(number: int) -> Cluster:
    cluster = Cluster.objects.create(slug="previewed", name="Previewed", kind="kubernetes")
    Connection.objects.create(cluster=cluster, source="token", server="https://192.0.2.1:6443", token="t")
    machine = Topology.objects.create(hash="0" * 32, document=b"{}", cpus=128, numa_nodes=4, sockets=1)
    fleet, now = Fleet(number, containers=PODS), timezone.now()
    names = [fleet.name(index) for index in range(number)]
    Node.objects.bulk_create(
        (
            Node(
                cluster=cluster, name=name, uid=f"uid-{name}", topology=machine, slot=4 * at,
                first_seen=now, last_seen=now, numa_nodes=4,
            )
            for at, name in enumerate(names)
        ),
        batch_size=ROWS,
    )  # fmt: skip
    rows = dict(cluster.nodes.values_list("name", "pk"))
    KubernetesNode.objects.bulk_create(
        (
            KubernetesNode(
                node_id=rows[name], created=now, updated=now, machine_id=f"{at:032x}", kubelet_version="v1.37.2",
                labels={"kubernetes.io/hostname": name}, allocatable={"cpu": "120", "memory": "500Gi"},
            )
            for at, name in enumerate(names)
        ),
        batch_size=ROWS,
    )  # fmt: skip
    Pod.objects.bulk_create(
        (
            Pod(
                cluster=cluster, uid=f"{name}-{nth}", kubelet_uid=f"{name}-{nth}", namespace="shop", name=f"web-{name}-{nth}",
                node_name=name, phase="Running", created=now, cpu_request=2.0, memory_request=2**31,
            )
            for name in names
            for nth in range(PODS)
        ),
        batch_size=ROWS,
    )  # fmt: skip
    machines: dict[str, bytes] = {}
    for index, name in enumerate(names):
        heard = wire.decode(bytes(fleet.answer(index, "/v1/snapshot").body))
        sections = {key: bytes(heard.sections[key].data) for key in (wire.MACHINE, wire.CONTAINERS)}  # type: ignore[arg-type]
        hashes = {key: heard.sections[key].hash for key in sections}
        sections[wire.MACHINE] = machines.setdefault(hashes[wire.MACHINE], sections[wire.MACHINE])
        told = wire.Packed(kubelet(wire.decode_section(Kubelet, bytes(heard.sections[wire.KUBELET].data))))  # type: ignore[arg-type]
        hot.store().put(
            [
                hot.HotNode(
                    node=rows[name],
                    endpoint=0,
                    exporter=heard.exporter,
                    received=time.time() + HELD,
                    taken=time.time() + HELD,
                    hashes={**hashes, wire.KUBELET: told.hash},
                    confirmed=dict.fromkeys((*sections, wire.KUBELET), time.time()),
                    sections={**sections, wire.KUBELET: told.data},
                )
            ]
        )
    return cluster


def planned(cluster: Cluster) -> Rollout:
    policy = policies.save(
        cluster,
        Target("cluster"),
        Wish(topology_policy="restricted", scope="pod"),
        True,
        WHO,
        timezone.now(),
        None,
    )
    return control.create(cluster, policy, Options(batch="5%", max_unavailable="5%"), WHO, timezone.now())


def main() -> None:
    number = int(sys.argv[1])
    call_command("migrate", verbosity=0)
    cluster = fill(number)
    played = Played(list(cluster.nodes.order_by("name").values_list("name", flat=True)))
    reach.enter = lambda _access: played  # type: ignore[assignment, return-value]
    rollout = planned(cluster)
    told = [time.process_time()]
    progress: Callable[..., None] = planning._progress

    def noted(*rest: Any) -> None:
        progress(*rest)
        told.append(time.process_time())

    planning._progress = noted  # type: ignore[assignment]
    planning.plan_work(rollout.pk)
    told.append(time.process_time())
    rollout.refresh_from_db()
    plan = control.plan_of(rollout)
    assert rollout.state == Rollout.State.PLANNED, rollout.cause
    assert (len(plan.nodes), len(plan.left_out), rollout.looked_at) == (number, 0, number), plan.left_out[:1]
    assert plan.nodes[0].moved == PODS
    silent = max(later - earlier for earlier, later in pairwise(told))
    sys.stdout.write(
        msgspec.json.encode({"whole": told[-1] - told[0], "silent": silent, "words": len(told)}).decode()
    )


if __name__ == "__main__":
    main()
