"""A whole watch against a small API server: what appears there appears in the tables, through refusals, restarts and rivals."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitoring.kube.rights import Right
from monitoring.models import Cluster, Connection, Lease, SourceView
from monitoring.services import watching
from monitoring.services.watching import wanted
from monitoring.services.watching.watch import lease_of
from tests.kubecontract import topology
from tests.monitoring.kube.fake import FakeApiServer
from tests.monitoring.watching.running import WAITS, in_database, nodes, pods, states, until, watcher

pytestmark = pytest.mark.django_db(transaction=True)
ALL = frozenset(msgspec.structs.replace(right, why="") for right in wanted.RIGHTS)


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as server:
        server.create(node("n1"))
        server.create(pod("p1"))
        yield server


def node(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"nodeInfo": {"kubeletVersion": "v1.37.2"}},
    }


def pod(name: str, **status: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]},
        "status": {"phase": "Running", **status},
    }


async def connect(server: FakeApiServer, slug: str = "lab", rights: frozenset[Right] = ALL) -> Connection:
    access = server.identity(rights)

    def make() -> Connection:
        cluster = Cluster.objects.create(slug=slug, name=slug, kind=Cluster.Kind.KUBERNETES)
        return Connection.objects.create(
            cluster=cluster, source=Connection.Source.TOKEN, server=access.server, token=access.token
        )

    made: Connection = await in_database(make)
    return made


async def test_what_the_server_has_appears_and_follows(server: FakeApiServer) -> None:
    await connect(server)
    async with watcher():
        await until(nodes, ["n1"])
        await until(pods, ["p1"])
        server.create(pod("p2"))
        server.delete(pod("p1"))
        server.create(topology("n1"))
        await until(pods, ["p2"])
        await until(SourceView.objects.count, 1)
        await until(lambda: set(states().values()), {"watching"})
        state = await in_database(lambda: Connection.objects.values_list("state", "version", "missing").get())
        assert state == ("ok", "v1.37.2", [])


async def test_a_missing_right_is_named_and_the_rest_works(server: FakeApiServer) -> None:
    lacking = Right("list", "", "pods")
    await connect(server, rights=ALL - {lacking})
    async with watcher():
        await until(nodes, ["n1"])
        await until(lambda: states().get("pods"), "forbidden")
        missing = {"verb": "list", "group": "", "resource": "pods", "subresource": "", "why": "pods"}
        await until(lambda: Connection.objects.get().missing, [missing])
        await until(lambda: states().get("events"), "watching")


async def test_custom_resources_that_are_not_there_are_no_fault_and_may_come(server: FakeApiServer) -> None:
    server.undefine("numatopologies")
    await connect(server)
    async with watcher():
        await until(lambda: states().get("numatopologies.nodeinfo.volcano.sh"), "absent")
        server.define("numatopologies")
        server.create(topology("n1"))
        await until(SourceView.objects.count, 1)


async def test_a_server_that_returns_empty_empties_the_tables(server: FakeApiServer) -> None:
    await connect(server)
    async with watcher():
        await until(pods, ["p1"])
        await until(lambda: server.watching, 6)
        server.restore()
        await until(pods, [])
        await until(nodes, [])


async def test_an_unreachable_cluster_leaves_another_alone(server: FakeApiServer) -> None:
    async with FakeApiServer() as other:
        await connect(other, "away")
        await other.stop()
        await connect(server)
        async with watcher():
            await until(pods, ["p1"])
            await until(lambda: Connection.objects.get(cluster__slug="away").state, "failing")
            assert await in_database(lambda: Connection.objects.get(cluster__slug="away").remedy) != ""
            await until(lambda: Connection.objects.get(cluster__slug="lab").state, "ok")


async def test_a_kubeconfig_that_cannot_be_used_is_told(server: FakeApiServer) -> None:
    made = await connect(server)
    await in_database(lambda: Connection.objects.update(source="kubeconfig", kubeconfig="kind: Pod"))
    async with watcher():
        await until(lambda: Connection.objects.get().state, "failing")
        await in_database(lambda: Connection.objects.filter(pk=made.pk).update(source="token"))
        await until(pods, ["p1"])


async def test_of_two_one_works_and_the_other_takes_over(server: FakeApiServer) -> None:
    made = await connect(server)
    async with watcher():
        async with watcher():
            await until(pods, ["p1"])
            await asyncio.sleep(1)
            assert server.watching <= 6
        server.create(pod("p2"))
        await until(pods, ["p1", "p2"])
    lease = await in_database(lambda: Lease.objects.get(name=lease_of(made.cluster_id)).token)
    assert lease == ""


async def test_whoever_lost_the_lease_writes_nothing_more(server: FakeApiServer) -> None:
    made = await connect(server)
    async with watcher():
        await until(pods, ["p1"])
        name = lease_of(made.cluster_id)
        taken = {"token": "somebody-else", "holder": "other/boot/17"}
        await in_database(lambda: Lease.objects.filter(name=name).update(**taken))
        server.create(pod("p2"))
        await asyncio.sleep(0.3)
        assert await in_database(pods) == ["p1"]
        await until(pods, ["p1", "p2"])  # the other one never worked: it counts as dead


async def test_it_shows_that_it_lives_as_long_as_it_works(server: FakeApiServer, tmp_path: Path) -> None:
    shown = tmp_path / "alive"
    stop = threading.Event()
    running = asyncio.create_task(watching.run(WAITS, stop, look=0.02, alive=shown.touch))
    await until(shown.exists, True)
    shown.unlink()
    await until(shown.exists, True)
    stop.set()
    await running
    shown.unlink()
    await asyncio.sleep(0.1)
    assert not shown.exists()
