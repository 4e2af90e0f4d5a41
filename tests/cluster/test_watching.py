"""The watcher against a real Kubernetes, as the ServiceAccount that it is installed with: nothing is played but the nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from monitoring.kube.reflector import Pace
from monitoring.models import (
    Cluster,
    ClusterEvent,
    Connection,
    Failure,
    KubernetesNode,
    Node,
    NodeEvent,
    Pod,
    SourceView,
)
from monitoring.services.watching.watch import Waits
from tests.cluster import rights, scene, things
from tests.cluster.api import Object
from tests.cluster.controlplane import ControlPlane
from tests.cluster.rights import Rule
from tests.monitoring.watching.running import in_database, nodes, pods, states, until, watcher

pytestmark = pytest.mark.django_db(transaction=True)
PACE = Pace(gather=0.05, between=0.05, backoff=(0.2, 1.0), spacing=0.2, steady=0.5, absent=2.0, relist=600.0)
WAITS = Waits(beat=0.2, patience=1.5, greet=1.0, retry=0.2, pace=PACE)
LACKING = {
    "nodes": "nodes",
    "pods": "pods",
    "events": "events",
    "daemonsets": "exporters",
    "numatopologies": "sources",
    "noderesourcetopologies": "sources",
}
"""The page that lacks something without a right, written down once more."""


async def connect(plane: ControlPlane, without: Rule | None = None) -> None:
    text = await asyncio.to_thread(lambda: rights.kubeconfig(plane, "watcher", without=without))

    def make() -> None:
        cluster = Cluster.objects.create(slug="real", name="Real", kind=Cluster.Kind.KUBERNETES)
        Connection.objects.create(cluster=cluster, source=Connection.Source.KUBECONFIG, kubeconfig=text)

    await in_database(make)


async def act(work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(work)


def make(plane: ControlPlane, *found: Object) -> None:
    for each in found:
        plane.api.create(each)


def failure() -> list[Any]:
    lines = Failure.objects.filter(owner_kind="Deployment", owner_name="burning")
    return [(line.node_name, line.reason, line.count > 3) for line in lines]


async def test_everything_of_a_cluster_is_found_and_followed(plane: ControlPlane, namespace: str) -> None:
    await connect(plane)
    named = list(scene.nodes(2))
    await act(
        lambda: make(
            plane,
            *named,
            things.pod("one", namespace, node="node-000", cpu="2", memory="1Gi", guaranteed=True),
        )
    )
    async with watcher(WAITS):
        await until(nodes, ["node-000", "node-001"])
        await until(lambda: "one" in pods(), True)
        await until(lambda: Pod.objects.get(name="one").phase, "Running")
        await until(SourceView.objects.count, 4)
        await until(lambda: set(states().values()), {"watching"})
        told = await in_database(lambda: KubernetesNode.objects.get(node__name="node-001"))
        assert (told.kubelet_version, told.capacity["cpu"], told.ready) == ("v1.37.2", "32", True)
        row = await in_database(lambda: Pod.objects.get(name="one"))
        assert (row.qos, row.cpu_request, row.cpu_limit) == ("Guaranteed", 2.0, 2.0)
        await act(lambda: plane.api.patch("/api/v1/nodes/node-000", {"spec": {"unschedulable": True}}))
        await until(lambda: KubernetesNode.objects.get(node__name="node-000").unschedulable, True)
        await act(lambda: plane.api.delete(f"/api/v1/namespaces/{namespace}/pods/one"))
        await until(lambda: "one" in pods(), False)


async def test_a_node_made_anew_under_its_name_is_another_one(plane: ControlPlane) -> None:
    await connect(plane)
    await act(lambda: make(plane, things.node("a")))
    async with watcher(WAITS):
        await until(nodes, ["a"])
        first = await in_database(Node.objects.get)
        await act(lambda: plane.api.delete("/api/v1/nodes/a"))
        await act(lambda: make(plane, things.node("a")))
        await until(lambda: Node.objects.filter(name="a").count(), 2)
        await until(nodes, ["a"])
        gone = await in_database(
            lambda: list(NodeEvent.objects.filter(node=first).values_list("code", flat=True))
        )
        assert set(gone) & {"gone", "replaced"}


async def test_a_deployment_that_burns_through_pods_is_one_line(plane: ControlPlane, namespace: str) -> None:
    await connect(plane)
    burning = things.deployment("burning", namespace, cpu="2", node="a", refused="TopologyAffinityError")
    await act(lambda: make(plane, things.node("a"), burning))
    async with watcher(WAITS):
        await until(failure, [("a", "TopologyAffinityError", True)])


async def test_events_about_placement_are_kept(plane: ControlPlane, namespace: str) -> None:
    await connect(plane)
    await act(lambda: make(plane, things.node("a", cpus=2), things.pod("large", namespace, cpu="8")))
    async with watcher(WAITS):
        await until(
            lambda: ClusterEvent.objects.filter(name="large", reason="FailedScheduling").count() >= 1, True
        )


@pytest.mark.parametrize("rule", rights.rules("watcher"), ids=str)
async def test_without_one_right_its_page_says_which_and_the_rest_works(
    plane: ControlPlane, rule: Rule
) -> None:
    await act(lambda: make(plane, things.node("a")))
    await connect(plane, without=rule)
    [one, *_] = rule.rights
    page = "configz" if one.subresource else LACKING[one.resource]
    verbs = ("get",) if one.subresource else ("list", "watch")
    lacked = {"group": one.group, "resource": one.resource, "subresource": one.subresource, "why": page}
    forbidden = [] if one.subresource else [f"{one.resource}.{one.group}" if one.group else one.resource]
    async with watcher(WAITS):
        await until(lambda: Connection.objects.get().missing, [{"verb": verb, **lacked} for verb in verbs])
        await until(lambda: [name for name, state in states().items() if state == "forbidden"], forbidden)
        await until(lambda: list(states().values()).count("watching"), 6 - len(forbidden))


async def test_it_survives_the_api_server_and_one_that_comes_back_empty(
    programs: Any, own_plane: ControlPlane
) -> None:
    plane = own_plane
    await connect(plane)
    await act(lambda: make(plane, things.node("a")))
    async with watcher(WAITS):
        await until(nodes, ["a"])
        await act(plane.apiserver.kill)
        await until(lambda: Connection.objects.get().state, "failing")
        await act(plane.apiserver.start)
        await act(lambda: make(plane, things.node("b")))
        await until(nodes, ["a", "b"])
        await until(lambda: Connection.objects.get().state, "ok")
        await act(plane.restart_empty)
        # The account and its role went with everything else; its token is nobody's now.
        await until(lambda: Connection.objects.get().state, "failing")
        assert await in_database(nodes) == ["a", "b"]
