"""The watcher on a real control plane with 5,000 played nodes and 50,000 pods: its first full picture, and what keeping it true costs."""

import asyncio
import contextlib
import itertools
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import copies, installation, measure
from benchmarks.outcome import Outcome
from tests import servers, stack
from tests.cluster import bulk, programs, rights, things
from tests.cluster.api import Object
from tests.cluster.controlplane import ControlPlane

NODES, PODS = 5_000, 50_000
APPLICATIONS = 200
HEARTBEATS = NODES // 300
"""Nodes that report within a second: a kubelet whose node does not change reports every 5 minutes (kubelet 1.37, nodeStatusReportFrequency)."""
CHURN = 5
"""Pods that end, and pods that begin, within a second."""
ROUNDS, ROUND_SECONDS, CALM_SECONDS = 3, 60, 30
FILL_SECONDS, PICTURE_SECONDS = 1800, 600
CONNECT = "from monitoring import services; services.ensure_connection('bench', 'Bench')"
FOLLOWED = "SELECT count(*) FROM monitoring_watchhealth WHERE state = 'watching'"
WATCHES = 6
SINCE = "2026-01-01T00:00:00Z"
KINDS = 2
"""Pods with limits and pods without, in turn."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
ZONE = "topology.kubernetes.io/zone"


def run() -> list[Outcome]:
    with contextlib.ExitStack() as stay:
        folder = Path(stay.enter_context(tempfile.TemporaryDirectory(prefix="numaweb-bench-")))
        plane = stay.enter_context(ControlPlane(programs.control_plane(), folder, lease_seconds=400))
        fill(plane)
        account = folder / "watcher.kubeconfig"
        account.write_text(rights.kubeconfig(plane, "watcher"))
        place = stay.enter_context(installation.installed(NUMAWEB_KUBECONFIG=str(account)))
        stack.manage(place.surroundings, "shell", "-c", CONNECT)
        database = stay.enter_context(psycopg.connect(place.database, autocommit=True))
        with watcher(place) as server:
            return observed(plane, database, installation.pid(server))


@contextlib.contextmanager
def watcher(place: installation.Installation) -> Iterator[servers.Server]:
    """`manage.py watch` from the moment at which it is started, not at which it is ready."""
    server = servers.Server(
        [sys.executable, str(servers.ROOT / "manage.py"), "watch"],
        place.folder,
        lambda _: True,
        environment=place.surroundings,
    )
    with servers.running(server):
        yield server


def observed(plane: ControlPlane, database: psycopg.Connection[Any], watcher: int) -> list[Outcome]:
    began = time.monotonic()
    measure.wait_until(lambda: whole(database), PICTURE_SECONDS, "the first full picture")
    seconds, cpu = time.monotonic() - began, measure.cpu_seconds(watcher)
    first_peak = peak(watcher)
    names = itertools.count()
    churn(plane, names, CALM_SECONDS)
    shares = []
    for _ in range(ROUNDS):
        start = time.monotonic()
        with measure.spent(watcher) as used:
            churn(plane, names, ROUND_SECONDS)
        shares.append(100 * used.seconds / (time.monotonic() - start))
    caught_up(plane, database)
    steady = measure.spread(shares)
    cluster = (
        f"{NODES:,} nodes and {PODS:,} pods of {APPLICATIONS} applications on a real control plane on the same CPUs, played by kwok, which renews every "
        "node's lease; the API server made some of each itself, the others were put into its storage as copies before the clock starts"
    )
    return [
        Outcome(
            "watch: first picture of 5,000 nodes, 50,000 pods",
            f"{seconds:.1f} s",
            "-",
            seconds,
            60,
            "s",
            f"{cluster}. From the start of `manage.py watch`, as the ServiceAccount of the chart, until every node and pod is a row in an empty PostgreSQL "
            f"and all six kinds of objects are followed. CPU of the watcher's process until then: {cpu:.1f} s.",
        ),
        Outcome(
            "watch: CPU while it follows",
            steady.shown("%"),
            "-",
            steady.median,
            10,
            "%",
            f"The cluster of the line above: in every second {HEARTBEATS} nodes report (a kubelet does every 5 minutes), {CHURN} pods end and {CHURN} "
            f"begin; leases are renewed, which nobody watches. CPU of the watcher's process in per cent of one core, {ROUNDS} rounds of {ROUND_SECONDS} s.",
        ),
        Outcome(
            "watch: memory",
            f"{peak(watcher) / 2**20:.0f} MiB",
            "-",
            peak(watcher) / 2**20,
            400,
            "MiB",
            f"Most resident memory of the watcher's process of the lines above; until the first full picture {first_peak / 2**20:.0f} MiB.",
        ),
    ]


# ---------------------------------------------------------------- the cluster


def fill(plane: ControlPlane) -> None:
    """Returns when all of it is there and kwok holds every node's lease. The API server writes some nodes and pods itself, the rest are copies."""
    firsts = range(KINDS)
    asyncio.run(bulk.create(plane.api, map(node, firsts)))
    asyncio.run(bulk.create(plane.api, map(pod, firsts)))
    measure.wait_until(lambda: not pending(plane), FILL_SECONDS, "played pods that run")
    # Every node has reported as it will again and again: what changes later is the moment alone.
    asyncio.run(bulk.patch_statuses(plane.api, ((node(each), heartbeat()) for each in firsts)))
    copies.write(plane.storage, node_copies(plane))
    measure.wait_until(lambda: count_of(plane, LEASES) == NODES, FILL_SECONDS, "leases of all nodes")
    copies.write(plane.storage, pod_copies(plane))
    measure.wait_until(
        lambda: count_of(plane, "/api/v1/pods") == PODS, FILL_SECONDS, "pods that the API server knows"
    )


def node_copies(plane: ControlPlane) -> Iterator[copies.Stored]:
    first = plane.api.get(plane.api.path(node(0)))["metadata"]
    stored = copies.read(plane.storage, f"/registry/minions/{first['name']}")
    for number in range(KINDS, NODES):
        made = node(number)["metadata"]
        yield stored.copied(
            (first["name"], made["name"]),
            (first["uid"], uid(number)),
            (first["labels"][ZONE], made["labels"][ZONE]),
        )


def pod_copies(plane: ControlPlane) -> Iterator[copies.Stored]:
    firsts = [plane.api.get(plane.api.path(pod(number))) for number in range(KINDS)]
    kept = [
        copies.read(plane.storage, f"/registry/pods/default/{each['metadata']['name']}") for each in firsts
    ]
    for number in range(KINDS, PODS):
        first, made = firsts[number % KINDS], pod(number)
        yield kept[number % KINDS].copied(
            (first["metadata"]["name"], made["metadata"]["name"]),
            (first["metadata"]["uid"], uid(NODES + number)),
            (first["metadata"]["labels"]["app"], made["metadata"]["labels"]["app"]),
            (first["spec"]["nodeName"], made["spec"]["nodeName"]),
        )


def uid(number: int) -> str:
    return str(uuid.UUID(int=number))


def count_of(plane: ControlPlane, path: str) -> int:
    """How many objects a list has, without reading them."""
    time.sleep(1)
    told = plane.api.get(path, limit=1)
    return len(told["items"]) + int(told["metadata"].get("remainingItemCount", 0))


def node(number: int) -> Object:
    return things.node(f"node-{number:04}", cpus=96, labels={ZONE: f"zone-{number % 3}"})


def pod(number: int) -> Object:
    """They are bound: what the scheduler would do is not the question."""
    return things.pod(
        f"app-{number % APPLICATIONS:03}-{number:06}",
        node=f"node-{number % NODES:04}",
        cpu="2",
        memory="4Gi",
        guaranteed=number % 2 == 0,
        labels={"app": f"app-{number % APPLICATIONS:03}"},
    )


def pending(plane: ControlPlane) -> bool:
    time.sleep(0.2)
    return bool(plane.api.items("/api/v1/pods", fieldSelector="status.phase=Pending", limit=1))


def churn(plane: ControlPlane, names: Iterator[int], seconds: float) -> None:
    """What goes on in a cluster in which nothing special happens."""
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        second = next(names)
        beating = [(second * HEARTBEATS + each) % NODES for each in range(HEARTBEATS)]
        asyncio.run(bulk.patch_statuses(plane.api, [(node(each), heartbeat()) for each in beating]))
        for each in range(CHURN):
            plane.api.delete(plane.api.path(pod(second * CHURN + each)))
        asyncio.run(bulk.create(plane.api, [pod(PODS + second * CHURN + each) for each in range(CHURN)]))
        time.sleep(max(0.0, began + 1 - time.monotonic()))


def heartbeat() -> Object:
    """All as it was, at this moment."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    told = {"status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    return {"conditions": [{"type": "Ready", "lastTransitionTime": SINCE, "lastHeartbeatTime": now, **told}]}


# ---------------------------------------------------------------- the picture


def whole(database: psycopg.Connection[Any]) -> bool:
    time.sleep(0.2)
    return (
        count(database, FOLLOWED) == WATCHES
        and count(database, "SELECT count(*) FROM monitoring_kubernetesnode") == NODES
        and count(database, "SELECT count(*) FROM monitoring_pod WHERE phase = 'Running'") == PODS
    )


def caught_up(plane: ControlPlane, database: psycopg.Connection[Any]) -> None:
    """Whoever falls behind needs little CPU: after all that the picture has to be the cluster's."""
    there = sorted(each["metadata"]["uid"] for each in plane.api.items("/api/v1/pods"))

    def same() -> bool:
        rows = database.execute("SELECT uid FROM monitoring_pod").fetchall()
        return sorted(uid for (uid,) in rows) == there

    measure.wait_until(same, 30, "a picture that is the cluster's")


def count(database: psycopg.Connection[Any], query: str) -> int:
    [(found,)] = database.execute(query).fetchall()
    return int(found)


def peak(process: int) -> int:
    """Most resident memory so far, bytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {process} has no memory any more")
