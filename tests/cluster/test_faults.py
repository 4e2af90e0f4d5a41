"""The watcher, a real API server, and everything that can go wrong between them: what is shown is true again soon after, the API server is not
stormed, pages say what is going on meanwhile, and another cluster notices nothing.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml
from django.test import Client
from pytest_django.fixtures import Settings

from monitoring.figures import connecting, sentences
from monitoring.kube import errors
from monitoring.kube.client import Limits
from monitoring.kube.reflector import Pace
from monitoring.models import Cluster, Connection, Endpoint, Node, NodeEvent, Pod, SourceView
from monitoring.selectors import kubernetes
from monitoring.services.watching.watch import Waits
from tests.cluster import rights, scene, things
from tests.cluster.api import Object
from tests.cluster.controlplane import ControlPlane
from tests.cluster.faultproxy import FaultProxy
from tests.cluster.httpfaults import HttpFaultProxy, Request, answer, refusal, status_of
from tests.cluster.rights import Right
from tests.monitoring.pages.test_kubernetes import text
from tests.monitoring.watching.running import in_database, until, watcher

pytestmark = pytest.mark.django_db(transaction=True)
SPACING = 0.5
PACE = Pace(
    gather=0.05,
    between=0.05,
    # A bookmark comes in the middle and silence is longer than half of it.
    watch=(4.0, 4.0),
    silence=3.0,
    grace=1.0,
    steady=0.5,
    backoff=(0.2, 1.0),
    spacing=SPACING,
    absent=2.0,
    relist=600.0,
)
WAITS = Waits(
    beat=0.5, patience=10.0, greet=0.5, retry=0.3, pace=PACE, limits=Limits(connect=1.0, answer=3.0)
)
PODS = "/api/v1/pods"
LOOKS = 150


# ---------------------------------------------------------------- two clusters, one of them behind the proxy


async def act(work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(work)


async def connect(slug: str, **how: str) -> None:
    def make() -> None:
        cluster = Cluster.objects.create(slug=slug, name=slug, kind=Cluster.Kind.KUBERNETES)
        Connection.objects.create(cluster=cluster, **({"source": Connection.Source.KUBECONFIG} | how))

    await in_database(make)


async def behind(proxy: FaultProxy, plane: ControlPlane) -> None:
    """The cluster `far`, through the proxy and as the account that is installed, beside `near`, straight and as an administrator."""
    await connect("far", kubeconfig=proxy.before(await act(lambda: rights.kubeconfig(plane, "watcher"))))
    await connect("near", kubeconfig=plane.kubeconfig())


async def make(plane: ControlPlane, *found: Object) -> None:
    await act(lambda: [plane.api.create(each) for each in found])


async def remove(plane: ControlPlane, *found: Object) -> None:
    for each in found:
        await act(partial(plane.api.delete, plane.api.path(each)))


def differences(plane: ControlPlane, slug: str) -> set[tuple[Any, ...]]:
    """What is shown and not so, or so and not shown: nodes and pods by identity and state, topologies."""
    there: set[tuple[Any, ...]] = set()
    for each in plane.api.items("/api/v1/nodes"):
        meta = each["metadata"]
        there.add(("node", meta["name"], meta["uid"], meta["labels"].get("pool")))
    for each in plane.api.items(PODS):
        there.add(("pod", each["metadata"]["name"], each["metadata"]["uid"], each["status"]["phase"]))
    for each in plane.api.items("/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies"):
        there.add(("topology", each["metadata"]["name"], each["spec"]["policies"]["TopologyManagerPolicy"]))
    shown: set[tuple[Any, ...]] = set()
    for node in Node.objects.filter(cluster__slug=slug, gone_at=None).select_related("kubernetes"):
        shown.add(("node", node.name, node.uid, node.kubernetes.labels.get("pool")))
    for pod in Pod.objects.filter(cluster__slug=slug):
        shown.add(("pod", pod.name, pod.uid, pod.phase))
    for view in SourceView.objects.filter(
        node__cluster__slug=slug, node__gone_at=None, source="numatopology"
    ):
        shown.add(("topology", view.node.name, view.values["topology_policy"]))
    return shown ^ there


async def agrees(plane: ControlPlane, slug: str = "far") -> None:
    """Returns when all that is shown is so; a look costs three lists."""
    found: set[tuple[Any, ...]] = set()
    for _ in range(LOOKS):
        found = await in_database(lambda: differences(plane, slug))
        if not found:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{slug} still shows something else: {found}")


def pod_names(slug: str) -> set[str]:
    return set(Pod.objects.filter(cluster__slug=slug).values_list("name", flat=True))


def level(slug: str) -> tuple[str, str]:
    """How the connection goes, as the first line of its page: how bad it is, and what to do."""
    line = connecting.headline(kubernetes.reached(Cluster.objects.get(slug=slug)))
    return line.level, str(line.detail)


def told(resource: str, slug: str = "far") -> tuple[str, str]:
    """How the watch of one kind of objects goes, and what to do."""
    found = connecting.watches(kubernetes.reached(Cluster.objects.get(slug=slug)))
    return next(((each.level, each.remedy) for each in found if each.resource == resource), ("", ""))


def spaced(proxy: HttpFaultProxy, tries: int = 1) -> None:
    """No list of everything sooner after another than the pace allows, of whatever kind.

    `tries` is 2 where answers do not begin: aiohttp asks once more at once.
    """
    for resource in {each.resource for each in proxy.requests}:
        times = proxy.lists(resource)
        assert all(times[nth + tries] - times[nth] >= SPACING for nth in range(len(times) - tries)), resource


# ---------------------------------------------------------------- outages


class Fault(NamedTuple):
    begin: Callable[[Any], Any]
    remedy: str
    ends_tls: bool = False
    cuts: bool = False


async def refuses_all(proxy: HttpFaultProxy, *how: Any, **more: Any) -> None:
    proxy.answers = lambda _: refusal(*how, **more)
    proxy.reset_all()


FAULTS = {
    "nobody listens": Fault(FaultProxy.refuse, errors.REACH),
    "reset": Fault(FaultProxy.reset, errors.REACH),
    "cut within TLS": Fault(lambda proxy: proxy.cut(5000), errors.REACH),
    "cut within an answer": Fault(lambda proxy: proxy.cut(300), errors.REACH, ends_tls=True, cuts=True),
    "half open": Fault(FaultProxy.stall, errors.NETWORK),
    "half open after TLS": Fault(FaultProxy.stall, errors.NETWORK, ends_tls=True),
    "dripping": Fault(lambda proxy: proxy.slow(rate=100), errors.NETWORK, ends_tls=True),
    "429": Fault(
        lambda proxy: refuses_all(proxy, 429, "TooManyRequests", after=1), errors.PATIENCE, ends_tls=True
    ),
    "500": Fault(lambda proxy: refuses_all(proxy, 500, "InternalError"), errors.SERVER, ends_tls=True),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_an_outage_is_said_and_leaves_nothing_wrong_behind(
    fault: Fault, plane: ControlPlane, namespace: str, as_viewer: Client
) -> None:
    one, two = things.pod("one", namespace, node="a"), things.pod("two", namespace, node="b")
    a, b = things.node("a"), things.node("b")
    async with HttpFaultProxy(plane) if fault.ends_tls else FaultProxy(plane.url) as proxy:
        await behind(proxy, plane)
        await make(plane, a, b, scene.numatopology("a", "restricted"), one, two)
        async with watcher(WAITS):
            await agrees(plane)
            await until(lambda: level("far")[0], "ok")
            began = fault.begin(proxy)
            if began is not None:
                await began
            # Nobody sees this happen.
            await remove(plane, one, a)
            await make(plane, a, things.pod("three", namespace, node="b"))
            await act(lambda: plane.api.patch(plane.api.path(b), {"metadata": {"labels": {"pool": "x"}}}))
            remedy = str(sentences.remedy(fault.remedy))
            await until(lambda: level("far"), ("danger", remedy))
            await until(lambda: told("pods"), ("failing", remedy))
            page = await in_database(lambda: text(as_viewer, "/c/far/connection/"))
            assert remedy in page
            assert await in_database(lambda: pod_names("far")) == {"one", "two"}
            await agrees(plane, "near")
            await until(lambda: level("near")[0], "ok")

            await proxy.flow()
            await agrees(plane)
            await until(lambda: level("far")[0], "ok")
            await until(lambda: told("pods"), ("ok", ""))
    if isinstance(proxy, HttpFaultProxy):
        spaced(proxy, tries=2 if fault.cuts else 1)


async def test_what_comes_late_comes(plane: ControlPlane, namespace: str) -> None:
    """Slow is no fault while answers come in time."""
    async with HttpFaultProxy(plane) as proxy:
        await behind(proxy, plane)
        await make(plane, things.node("a"), things.pod("one", namespace, node="a"))
        proxy.slow(delay=0.3)
        async with watcher(WAITS):
            await agrees(plane)
            await remove(plane, things.pod("one", namespace))
            await agrees(plane)
            await until(lambda: level("far")[0], "ok")


# ---------------------------------------------------------------- what an API server says


TOO_OLD = {"type": "ERROR", "object": status_of(410, "Expired")}


def loses_deletions(request: Request, event: bytes) -> bytes:
    return b"" if request.resource == "pods" and event.startswith(b'{"type":"DELETED"') else event


@asynccontextmanager
async def watched(plane: ControlPlane, namespace: str, **pace: Any) -> AsyncIterator[HttpFaultProxy]:
    """A node with two pods, seen through the proxy."""
    pods = [things.pod(name, namespace, node="a") for name in ("one", "two")]
    async with HttpFaultProxy(plane) as proxy:
        await connect("far", kubeconfig=proxy.before(await act(lambda: rights.kubeconfig(plane, "watcher"))))
        await make(plane, things.node("a"), *pods)
        waits = msgspec.structs.replace(WAITS, pace=msgspec.structs.replace(PACE, **pace))
        async with watcher(waits):
            await agrees(plane)
            await until(lambda: proxy.watches("pods"), 1)
            yield proxy
    spaced(proxy)


async def test_a_deletion_that_was_never_told_is_noticed_with_410_in_the_stream(
    plane: ControlPlane, namespace: str
) -> None:
    async with watched(plane, namespace) as proxy:
        proxy.edits = loses_deletions
        await remove(plane, things.pod("one", namespace))
        await make(plane, things.pod("three", namespace, node="a"))
        await until(lambda: pod_names("far"), {"one", "two", "three"})
        lists = len(proxy.lists("pods"))
        await proxy.flow()
        await proxy.say("pods", TOO_OLD)
        await agrees(plane)
        assert len(proxy.lists("pods")) == lists + 1


async def test_a_deletion_that_was_never_told_is_noticed_by_the_list_that_comes_anyway(
    plane: ControlPlane, namespace: str
) -> None:
    async with watched(plane, namespace, relist=4.0) as proxy:
        proxy.edits = loses_deletions
        await remove(plane, things.pod("one", namespace))
        await agrees(plane)


async def test_a_version_that_is_too_old_leads_to_a_list(plane: ControlPlane, namespace: str) -> None:
    """410 as the answer to a watch."""
    async with watched(plane, namespace) as proxy:
        proxy.answers = lambda request: (
            refusal(410, "Expired") if request.watch and request.resource == "pods" else None
        )
        proxy.reset_all()
        await remove(plane, things.pod("one", namespace))
        await agrees(plane)
        await until(lambda: told("pods")[0], "failing")
        await until(lambda: len(proxy.lists("pods")) >= 4, True)
        await proxy.flow()
        await until(lambda: told("pods")[0], "ok")


async def test_an_event_that_is_cut_in_its_middle_is_not_lost(plane: ControlPlane, namespace: str) -> None:
    async with watched(plane, namespace) as proxy:
        proxy.edits = lambda request, event: event[: len(event) // 2]
        await remove(plane, things.pod("one", namespace))
        await until(lambda: told("pods"), ("failing", str(sentences.remedy(errors.REACH))))
        await proxy.flow()
        await agrees(plane)


async def test_what_cannot_be_read_within_a_watch_leads_to_a_list(
    plane: ControlPlane, namespace: str
) -> None:
    async with watched(plane, namespace) as proxy:
        proxy.edits = lambda request, event: b'{"type":"ADDED","object":{"metadata":7}}\n'
        await remove(plane, things.pod("one", namespace))
        await until(lambda: told("pods")[0], "failing")
        await proxy.flow()
        await agrees(plane)


async def test_a_list_of_an_earlier_moment_is_put_right(plane: ControlPlane, namespace: str) -> None:
    """As an API server answers that was cut off from etcd: what was deleted since is there again, for a moment."""
    async with watched(plane, namespace) as proxy:
        earlier = await act(lambda: plane.api.raw("GET", PODS, query={"limit": 500}))
        await remove(plane, things.pod("one", namespace))
        await agrees(plane)

        def stale(request: Request) -> bytes | None:
            return answer(200, earlier) if request.resource == "pods" and not request.watch else None

        proxy.answers = stale
        await proxy.say("pods", TOO_OLD)
        await until(lambda: pod_names("far"), {"one", "two"})
        await agrees(plane)


async def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(
    plane: ControlPlane, namespace: str
) -> None:
    async with watched(plane, namespace) as proxy:
        before = len(proxy.requests)
        proxy.answers = lambda request: (
            refusal(429, "TooManyRequests", after=3) if request.resource == "pods" else None
        )
        proxy.reset_all()
        await until(lambda: told("pods"), ("failing", str(sentences.remedy(errors.PATIENCE))))
        await until(lambda: len(_asked(proxy, before)) >= 3, True)
        times = _asked(proxy, before)
        assert all(later - earlier >= 3.0 for earlier, later in itertools.pairwise(times))
        await proxy.flow()
        await agrees(plane)


def _asked(proxy: HttpFaultProxy, since: int) -> list[float]:
    return [each.at for each in proxy.requests[since:] if each.resource == "pods"]


# ---------------------------------------------------------------- who may


async def test_a_token_that_is_replaced_is_taken_from_its_file(
    plane: ControlPlane, namespace: str, tmp_path: Path, settings: Settings
) -> None:
    """The account is made anew, so its old token is nobody's."""
    file, token = tmp_path / "kubeconfig", tmp_path / "token"
    settings.NUMAWEB_KUBECONFIG = str(file)
    async with HttpFaultProxy(plane) as proxy:
        granted = yaml.safe_load(proxy.before(await act(lambda: rights.kubeconfig(plane, "watcher"))))
        [user] = granted["users"]
        token.write_text(user["user"]["token"])
        user["user"] = {"tokenFile": "token"}
        file.write_text(yaml.safe_dump(granted))
        await connect("far", source=Connection.Source.FILE)
        await connect("near", kubeconfig=plane.kubeconfig())
        await make(plane, things.node("a"), things.pod("one", namespace, node="a"))
        async with watcher(WAITS):
            await agrees(plane)
            account = f"/api/v1/namespaces/{rights.NAMESPACE}/serviceaccounts/{rights.account('watcher')}"
            await act(lambda: plane.api.delete(account))
            renewed = yaml.safe_load(await act(lambda: rights.kubeconfig(plane, "watcher")))
            proxy.reset_all()
            remedy = str(sentences.remedy(errors.IDENTITY))
            # The API server believes a token that it knew for some ten seconds more.
            await until(lambda: level("far"), ("danger", remedy))
            proxy.reset_all()
            await until(lambda: told("pods"), ("failing", remedy))
            await remove(plane, things.pod("one", namespace))
            await agrees(plane, "near")
            token.write_text(renewed["users"][0]["user"]["token"])
            await agrees(plane)
            await until(lambda: level("far")[0], "ok")


async def test_rights_that_are_taken_away_are_said_and_cost_nobody_else_anything(
    plane: ControlPlane, namespace: str
) -> None:
    [rule] = [each for each in rights.rules("watcher") if Right("list", "", "pods") in each.rights]
    async with HttpFaultProxy(plane) as proxy:
        await behind(proxy, plane)
        await make(plane, things.node("a"), things.pod("one", namespace, node="a"))
        async with watcher(WAITS):
            await agrees(plane)
            await act(lambda: rights.grant(plane, "watcher", without=rule))
            proxy.reset_all()
            await until(lambda: told("pods"), ("failing", str(sentences.remedy(errors.RIGHT))))
            await until(lambda: level("far")[0], "warning")
            await remove(plane, things.pod("one", namespace))
            await make(plane, things.node("b"))
            await until(lambda: Node.objects.filter(cluster__slug="far", name="b").count(), 1)
            assert await in_database(lambda: pod_names("far")) == {"one"}
            await agrees(plane, "near")
            await until(lambda: level("near")[0], "ok")
            await act(lambda: rights.grant(plane, "watcher"))
            await agrees(plane)
            await until(lambda: level("far")[0], "ok")
    spaced(proxy)


# ---------------------------------------------------------------- what becomes of nodes while nobody sees it


async def test_a_node_made_anew_while_nobody_saw_it_is_another_one(
    plane: ControlPlane, namespace: str
) -> None:
    """What stood for the old one stands for nobody: its exporter is asked anew who it is, its history ends."""
    node, topology = things.node("a"), scene.numatopology("a", "restricted")
    async with watched(plane, namespace) as proxy:
        await make(plane, topology)
        await agrees(plane)
        old = await in_database(lambda: Node.objects.get(name="a"))

        def ghost() -> Endpoint:
            return Endpoint.objects.create(cluster=old.cluster, url="http://127.0.0.1:9", node=old)

        endpoint = await in_database(ghost)
        await proxy.refuse()
        await remove(plane, node)
        await make(plane, node)
        await until(lambda: told("nodes")[0], "failing")
        assert await in_database(lambda: Node.objects.get(pk=old.pk).gone_at) is None
        await proxy.flow()
        await agrees(plane)
        left = await in_database(lambda: Node.objects.get(pk=old.pk))
        assert left.gone_at is not None
        assert await in_database(lambda: Endpoint.objects.get(pk=endpoint.pk).node_id) is None
        codes = await in_database(
            lambda: list(NodeEvent.objects.filter(node=old).values_list("code", flat=True))
        )
        assert NodeEvent.Code.REPLACED in codes


async def test_nodes_that_change_while_nobody_sees_it_are_shown_as_they_are(
    plane: ControlPlane, namespace: str, as_viewer: Client
) -> None:
    """An exporter that restarts, a node under another name, CPUs that went offline, sparse ids, memory without CPUs."""
    before = things.node("before", cpus=8)
    async with watched(plane, namespace) as proxy:
        exporter = _exporter(namespace, 9117)
        await make(plane, before, exporter, scene.numatopology("a", "restricted"), _zones("a", 0, 1))
        await agrees(plane)
        await until(_exporter_ports, [9117])
        await proxy.refuse()
        await until(lambda: told("nodes")[0], "failing")
        await remove(plane, exporter, before)
        await make(plane, things.node("after", cpus=8), _exporter(namespace, 9118))
        less = {"0": {"numa": 0}, "40": {"numa": 4, "socket": 1, "core": 20}}
        topology = scene.numatopology("a", "restricted")
        await remove(plane, topology, _zones("a", 0, 1))
        await make(plane, {**topology, "spec": _spec(less)}, _zones("a", 0, 4, 9))
        await proxy.flow()
        await agrees(plane)
        await until(_exporter_ports, [9118])

        def told_of(source: str, *facts: str) -> list[Any]:
            view = SourceView.objects.filter(node__name="a", node__gone_at=None, source=source).first()
            return [view and view.values.get(fact) for fact in facts]

        await until(lambda: told_of("numatopology", "cpus"), [{"0": "0", "4": "40"}])
        both, all_three = {"0": 8.0, "4": 8.0}, {"0": 8.0, "4": 8.0, "9": 8.0}
        await until(
            lambda: told_of("noderesourcetopology", "cpu_capacity", "memory_capacity"), [both, all_three]
        )
        page = await in_database(lambda: text(as_viewer, "/c/far/nodes/a/?tab=sources"))
        assert "4: 40" in page
        assert "9: 8" in page
        assert await in_database(lambda: Node.objects.get(name="before").gone_at) is not None


def _exporter(namespace: str, port: int) -> Object:
    main = {"name": "main", "image": "registry.invalid/main:1", "ports": [{"containerPort": port}]}
    return things.pod("exporter", namespace, node="a", labels={"app": "numa-exporter"}, containers=[main])


def _exporter_ports() -> list[int]:
    found = Endpoint.objects.filter(cluster__slug="far", origin=Endpoint.Origin.POD)
    return [int(url.rpartition(":")[2]) for url in found.values_list("url", flat=True)]


def _spec(detail: Object) -> Object:
    spec: Object = scene.numatopology("a", "restricted")["spec"]
    return {**spec, "cpuDetail": detail, "numares": {"cpu": {"allocatable": "0,40", "capacity": 2}}}


def _zones(node: str, *numas: int) -> Object:
    """Zones of which the last has memory and no CPUs, where there are more than two."""

    def zone(numa: int, *names: str) -> Object:
        each = {"capacity": "8", "allocatable": "8", "available": "8"}
        return {
            "name": f"node-{numa}",
            "type": "Node",
            "costs": [{"name": f"node-{numa}", "value": 10}],
            "resources": [{"name": name, **each} for name in names],
        }

    both = [zone(numa, "cpu", "memory") for numa in numas[:2]]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": node},
        "zones": both + [zone(numa, "memory") for numa in numas[2:]],
    }
