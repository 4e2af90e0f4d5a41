"""What an API server does that monitoring.kube relies on. Run against the fake in tests/monitoring/kube and against the real one in tests/cluster.

Objects are mostly Numatopologies: nobody but the test changes them. Bytes are read here with `json`, not with the code under test.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec
import pytest

from monitoring.kube import lists, resources
from monitoring.kube.access import Access
from monitoring.kube.client import Client
from monitoring.kube.errors import ApiError, Forbidden, NotServed, Unauthorized
from monitoring.kube.lists import Selectors
from monitoring.kube.resources import (
    DAEMONSETS,
    EVENTS,
    NODES,
    NRT_ALPHA1,
    NRT_ALPHA2,
    NUMATOPOLOGIES,
    PODS,
    Resource,
)
from monitoring.kube.rights import Right, missing

Object = dict[str, Any]


class Place(Protocol):
    """A cluster with an API server. Each test finds none of the objects that it makes."""

    @property
    def access(self) -> Access:
        """As somebody who may do everything."""

    @property
    def namespace(self) -> str: ...

    def create(self, thing: Object) -> Object: ...

    def patch(self, thing: Object, change: Object) -> Object: ...

    def delete(self, thing: Object) -> None: ...

    def identity(self, rights: Iterable[Right]) -> Access:
        """Somebody who has these rights and no others."""

    def undefine(self, plural: str) -> None:
        """A custom resource goes."""

    def define(self, plural: str) -> None:
        """It comes back."""


class Breakable(Place, Protocol):
    """One whose API server a test may break."""

    async def restart(self) -> None:
        """It remembers objects and nothing of the past."""

    async def restart_empty(self) -> None:
        """Without an object, and with no custom resource defined."""


def topology(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name},
        "spec": spec or {"policies": {"CPUManagerPolicy": "static"}},
    }


async def names(
    client: Client, resource: Resource[Any], selectors: Selectors = lists.EVERYTHING
) -> list[str]:
    return [
        each.metadata.name
        async for page in lists.pages(client, resource, selectors=selectors)
        for each in page.objects
    ]


async def events(
    client: Client, resource: Resource[Any], version: str, seconds: int = 1, **params: str
) -> AsyncGenerator[tuple[str, Object], None]:
    """Type and object of every event of a watch, until the server ends it."""
    asked: Mapping[str, str] = {
        "watch": "true",
        "resourceVersion": version,
        "timeoutSeconds": str(seconds),
        **params,
    }
    rest = b""
    async with client.stream(resource.path, asked) as stream:
        while chunk := await stream.read():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                event = json.loads(line)
                yield event["type"], event["object"]
    assert rest == b"", "the watch ended in the middle of a line"


async def told(client: Client, resource: Resource[Any], version: str, **params: str) -> list[tuple[str, str]]:
    """Type and name of every event until something is made that is called `last`, bookmarks left out."""
    found = []
    async with contextlib.aclosing(events(client, resource, version, 30, **params)) as watch:
        async for event, thing in watch:
            if event != "BOOKMARK":
                found.append((event, thing["metadata"]["name"]))
            if found[-1:] == [("ADDED", "last")]:
                return found[:-1]
    pytest.fail(f"the watch ended before its time, after {found}")


async def eventually(true: Callable[[], Awaitable[bool]]) -> None:
    """Returns when it is true; a real API server needs a moment for some things."""
    for _ in range(600):
        if await true():
            return
        await asyncio.sleep(0.05)
    pytest.fail("it did not become true within 30 s")


# ---------------------------------------------------------------- lists


async def it_gives_a_list_in_pages_of_one_moment(place: Place) -> None:
    for name in "abcde":
        place.create(topology(name))
    found: list[list[str]] = []
    versions: set[str] = set()
    remaining: list[tuple[bool, int | None]] = []
    async with Client(place.access) as client:
        async for page in lists.pages(client, NUMATOPOLOGIES, limit=2):
            if not found:
                place.create(topology("bb"))
                place.delete(topology("e"))
            found.append([each.metadata.name for each in page.objects])
            versions.add(page.version)
            remaining.append((page.more, page.remaining))
    assert found == [["a", "b"], ["c", "d"], ["e"]]
    assert len(versions) == 1
    assert remaining == [(True, 3), (True, 1), (False, None)]


async def it_lists_what_was_written_just_before(place: Place) -> None:
    async with Client(place.access) as client:
        for number in range(5):
            made = place.create(topology(f"n{number}"))
            [page] = [page async for page in lists.pages(client, NUMATOPOLOGIES)]
            assert [each.metadata.name for each in page.objects][-1] == f"n{number}"
            assert int(page.version) >= int(made["metadata"]["resourceVersion"])


async def it_lists_nothing_as_a_list(place: Place) -> None:
    async with Client(place.access) as client:
        [page] = [page async for page in lists.pages(client, NUMATOPOLOGIES)]
    assert page.objects == []
    assert page.version.isdigit()


async def it_selects_by_labels_and_fields(place: Place) -> None:
    for name, pool in (("a", "x"), ("b", "y")):
        place.create(topology(name) | {"metadata": {"name": name, "labels": {"pool": pool}}})
    async with Client(place.access) as client:
        assert await names(client, NUMATOPOLOGIES, Selectors(label="pool=y")) == ["b"]
        assert await names(client, NUMATOPOLOGIES, Selectors(field="metadata.name=a")) == ["a"]


async def it_refuses_a_page_token_that_it_did_not_give(place: Place) -> None:
    async with Client(place.access) as client:
        with pytest.raises(ApiError) as refusal:
            await client.get(NUMATOPOLOGIES.path, {"limit": "2", "continue": "bm9uc2Vuc2U"})
    assert refusal.value.status == 400


# ---------------------------------------------------------------- watches


async def it_tells_what_happened_after_a_list_in_order(place: Place) -> None:
    place.create(topology("old"))
    async with Client(place.access) as client:
        version = await lists.head(client, NUMATOPOLOGIES)
        place.create(topology("a"))
        place.patch(topology("a"), {"metadata": {"labels": {"pool": "x"}}})
        place.delete(topology("old"))
        place.delete(topology("a"))
        place.create(topology("a"))
        found: list[tuple[str, Object]] = []
        async with contextlib.aclosing(events(client, NUMATOPOLOGIES, version, 30)) as watch:
            while len(found) < 5:
                found.append(await anext(watch))
    happened = [(event, thing["metadata"]["name"]) for event, thing in found]
    assert happened == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "old"),
        ("DELETED", "a"),
        ("ADDED", "a"),
    ]
    versions = [int(thing["metadata"]["resourceVersion"]) for _, thing in found]
    assert versions == sorted(versions)
    assert versions[0] > int(version)
    # What was made under the same name is another object, and a deletion shows the last state.
    first, _, _, last, second = (thing for _, thing in found)
    assert first["metadata"]["uid"] == last["metadata"]["uid"] != second["metadata"]["uid"]
    assert last["metadata"]["labels"] == {"pool": "x"}


async def it_goes_on_in_the_middle_without_repeating(place: Place) -> None:
    async with Client(place.access) as client:
        place.create(topology("a"))
        middle = place.create(topology("b"))["metadata"]["resourceVersion"]
        place.create(topology("c"))
        place.create(topology("last"))
        assert await told(client, NUMATOPOLOGIES, middle) == [("ADDED", "c")]


async def it_tells_at_once_what_happens_during_a_watch(place: Place) -> None:
    async with Client(place.access) as client:
        version = await lists.head(client, NUMATOPOLOGIES)
        waiting = asyncio.ensure_future(told(client, NUMATOPOLOGIES, version))
        for name in ("a", "last"):
            await asyncio.sleep(0.1)
            assert not waiting.done()
            place.create(topology(name))
        async with asyncio.timeout(10):
            assert await waiting == [("ADDED", "a")]


async def it_ends_a_watch_when_it_was_asked_to(place: Place) -> None:
    """With a whole line, and whatever it was asked for, it is no error."""
    async with Client(place.access) as client:
        version = await lists.head(client, NUMATOPOLOGIES)
        last = place.create(topology("a"))["metadata"]["resourceVersion"]
        found = [each async for each in events(client, NUMATOPOLOGIES, version, allowWatchBookmarks="true")]
    assert [(event, thing["metadata"]["resourceVersion"]) for event, thing in found] == [("ADDED", last)]


async def it_says_that_what_leaves_a_selection_is_deleted(place: Place) -> None:
    labelled = topology("a") | {"metadata": {"name": "a", "labels": {"pool": "x"}}}
    async with Client(place.access) as client:
        version = await lists.head(client, NUMATOPOLOGIES)
        place.create(labelled)
        place.create(topology("b"))
        place.patch(labelled, {"metadata": {"labels": {"pool": "y"}}})
        place.patch(labelled, {"metadata": {"labels": {"pool": "x"}}})
        place.create(topology("last") | {"metadata": {"name": "last", "labels": {"pool": "x"}}})
        found = await told(client, NUMATOPOLOGIES, version, labelSelector="pool=x")
    assert found == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


async def it_says_nothing_about_versions_that_are_still_to_come(place: Place) -> None:
    """Not even that there is nothing to say: who knows a later version than the server has to notice by other means."""
    async with Client(place.access) as client:
        future = str(int(await lists.head(client, NUMATOPOLOGIES)) + 100_000)
        place.create(topology("a"))
        assert [each async for each in events(client, NUMATOPOLOGIES, future)] == []


async def it_has_forgotten_the_past_after_a_restart(place: Breakable) -> None:
    """It says so with an event in an answer that began well."""
    async with Client(place.access) as client:
        for resource in (PODS, NUMATOPOLOGIES):
            place.create(topology(f"a-{resource.plural}"))
            version = await lists.head(client, resource)
            place.create(topology(f"b-{resource.plural}"))
            await place.restart()
            [(event, status)] = [each async for each in events(client, resource, version)]
            assert (event, status["code"], status["reason"]) == ("ERROR", 410, "Expired")


async def it_counts_from_an_earlier_version_when_it_comes_back_empty(place: Breakable) -> None:
    for number in range(50):
        place.create(topology(f"n{number}"))
    async with Client(place.access) as client:
        before = await lists.head(client, NODES)
        await place.restart_empty()
        assert int(await lists.head(client, NODES)) < int(before)
        assert [each async for each in events(client, NODES, before)] == []


# ---------------------------------------------------------------- refusals


async def it_says_which_right_is_missing(place: Place) -> None:
    async with Client(place.identity([Right("list", "", "nodes")])) as client:
        await client.get(NODES.path)
        for resource, watch, right in (
            (PODS, "", Right("list", "", "pods")),
            (NODES, "true", Right("watch", "", "nodes")),
            (NUMATOPOLOGIES, "", Right("list", "nodeinfo.volcano.sh", "numatopologies")),
        ):
            with pytest.raises(Forbidden) as refusal:
                await client.get(resource.path, {"watch": watch} if watch else {})
            assert refusal.value.right == right
            assert refusal.value.reason == "Forbidden"


async def it_knows_what_somebody_may_do(place: Place) -> None:
    held = [Right("list", "", "nodes"), Right("watch", "nodeinfo.volcano.sh", "numatopologies")]
    lacking = [Right("watch", "", "nodes", why="nodes"), Right("get", "", "nodes", "configz")]
    async with Client(place.identity(held)) as client:
        assert await missing(client, [lacking[0], *held, lacking[1]]) == lacking


async def it_refuses_a_token_that_it_does_not_know(place: Place) -> None:
    known = place.access
    async with Client(Access(known.server, known.ca, token="nobody")) as client:
        with pytest.raises(Unauthorized) as refusal:
            await client.get(NODES.path)
    assert refusal.value.status == 401


async def it_says_its_version(place: Place) -> None:
    async with Client(place.access) as client:
        version = await client.version()
    assert (version.major, version.minor, version.git_version) == ("1", "37", "v1.37.2")


async def it_serves_custom_resources_while_they_are_defined(place: Place) -> None:
    async with Client(place.access) as client:

        async def absent() -> bool:
            return not await resources.served(client, NUMATOPOLOGIES)

        for resource in (NODES, DAEMONSETS, NUMATOPOLOGIES, NRT_ALPHA1, NRT_ALPHA2):
            assert await resources.served(client, resource)
        place.create(topology("a"))
        place.undefine("numatopologies")
        await eventually(absent)
        with pytest.raises(NotServed):
            await client.get(NUMATOPOLOGIES.path)
        assert await resources.served(client, NODES)
        place.define("numatopologies")
        await eventually(lambda: resources.served(client, NUMATOPOLOGIES))
        assert await names(client, NUMATOPOLOGIES) == []


# ---------------------------------------------------------------- forms


async def one(place: Place, resource: Resource[Any], thing: Object) -> Any:
    """What is read of an object that was written so, from a list and from a watch."""
    async with Client(place.access) as client:
        before = await lists.head(client, resource)
        name = place.create(thing)["metadata"]["name"]
        chosen = Selectors(field=f"metadata.name={name}")
        [page] = [page async for page in lists.pages(client, resource, selectors=chosen)]
        assert (page.unreadable, page.example) == (0, "")
        [listed] = page.objects
        async with contextlib.aclosing(events(client, resource, before, 30, **chosen.params)) as watch:
            event, seen = await anext(watch)
        watched = resource.decode(msgspec.Raw(json.dumps(seen)))
        assert (event, watched.metadata.uid) == ("ADDED", listed.metadata.uid)
    return listed


async def it_keeps_a_topology_of_volcano(place: Place) -> None:
    spec = {
        "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "restricted"},
        "resReserved": {"cpu": "2"},
        "numares": {"cpu": {"allocatable": "2-7", "capacity": 8}},
        "cpuDetail": {"0": {}, "5": {"numa": 1, "socket": 1, "core": 2}},
    }
    found = (await one(place, NUMATOPOLOGIES, topology("a", **spec))).spec
    assert found.policies["TopologyManagerPolicy"] == "restricted"
    assert found.res_reserved == {"cpu": "2"}
    assert (found.numares["cpu"].allocatable, found.numares["cpu"].capacity) == ("2-7", 8)
    details = {cpu: (each.numa, each.socket, each.core) for cpu, each in found.cpu_detail.items()}
    assert details == {"0": (0, 0, 0), "5": (1, 1, 2)}
    assert found.pod_allocations is None
    allocations = [
        {
            "namespace": "default",
            "name": "web",
            "containerAllocations": [{"name": "main", "allocations": {"cpu": "2-3"}}],
        }
    ]
    [pod] = (
        await one(place, NUMATOPOLOGIES, topology("b", **spec, podAllocations=allocations))
    ).spec.pod_allocations
    assert (pod.uid, pod.namespace, pod.name) == ("", "default", "web")
    assert pod.container_allocations[0].allocations == {"cpu": "2-3"}


async def it_keeps_a_topology_in_both_versions(place: Place) -> None:
    resource = {"name": "cpu", "capacity": "16", "allocatable": 15, "available": "7500m"}
    thing = {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "a"},
        "topologyPolicies": ["SingleNUMANodeContainerLevel"],
        "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
        "zones": [
            {
                "name": "node-0",
                "type": "Node",
                "costs": [{"name": "node-0", "value": 10}, {"name": "node-1", "value": 21}],
                "resources": [resource],
            }
        ],
    }
    newer = await one(place, NRT_ALPHA2, thing)
    async with Client(place.access) as client:
        [page] = [page async for page in lists.pages(client, NRT_ALPHA1)]
    [older] = page.objects
    assert newer.attributes[0].value == "single-numa-node"
    assert older.attributes == ()
    for each in (newer, older):
        assert each.topology_policies == ("SingleNUMANodeContainerLevel",)
        [zone] = each.zones
        assert (zone.name, zone.type) == ("node-0", "Node")
        assert [(cost.name, cost.value) for cost in zone.costs] == [("node-0", 10), ("node-1", 21)]
        cpu = zone.resources[0]
        assert (cpu.capacity, cpu.allocatable, cpu.available) == ("16", 15, "7500m")


async def it_keeps_a_node(place: Place) -> None:
    thing = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"pool": "x"}},
        "spec": {"taints": [{"key": "only", "value": "numa", "effect": "NoSchedule"}], "unschedulable": True},
        "status": {
            "capacity": {"cpu": "64", "memory": "256Gi", "hugepages-2Mi": "4Gi"},
            "allocatable": {"cpu": "62", "memory": "250Gi", "hugepages-2Mi": "4Gi"},
            "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
            "conditions": [{"type": "MemoryPressure", "status": "False", "reason": "Fine"}],
            "nodeInfo": {
                "kubeletVersion": "v1.37.2",
                "machineID": "m" * 32,
                "bootID": "b",
                "systemUUID": "s",
                "architecture": "arm64",
                "osImage": "openEuler",
                "kernelVersion": "6.6",
                "containerRuntimeVersion": "containerd://2.4.2",
                "operatingSystem": "linux",
                "kubeProxyVersion": "",
            },
        },
    }
    node = await one(place, NODES, thing)
    assert node.metadata.labels["pool"] == "x"
    assert node.metadata.creation_timestamp is not None
    assert node.spec.unschedulable
    assert ("only", "numa", "NoSchedule") in {
        (each.key, each.value, each.effect) for each in node.spec.taints
    }
    assert (node.status.capacity["cpu"], node.status.allocatable["cpu"]) == ("64", "62")
    assert node.status.addresses[0].address == "10.1.2.3"
    assert ("MemoryPressure", "False") in {(each.type, each.status) for each in node.status.conditions}
    info = node.status.node_info
    assert (info.kubelet_version, info.machine_id, info.boot_id, info.system_uuid) == (
        "v1.37.2",
        "m" * 32,
        "b",
        "s",
    )
    assert (info.architecture, info.container_runtime_version) == ("arm64", "containerd://2.4.2")


async def it_keeps_a_pod(place: Place) -> None:
    requests = {"cpu": "2", "memory": "1Gi"}
    thing = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p1", "namespace": place.namespace, "labels": {"app": "numa-exporter"}},
        "spec": {
            "schedulerName": "volcano",
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.invalid/main:1",
                    "resources": {"requests": requests, "limits": requests},
                    "ports": [{"name": "metrics", "containerPort": 9100}],
                }
            ],
            "initContainers": [
                {
                    "name": "sidecar",
                    "image": "registry.invalid/side:1",
                    "restartPolicy": "Always",
                    "resources": {"requests": {"cpu": "100m"}},
                }
            ],
        },
    }
    pod = await one(place, PODS, thing)
    assert (pod.metadata.namespace, pod.metadata.name) == (place.namespace, "p1")
    assert (pod.spec.node_name, pod.spec.scheduler_name) == ("", "volcano")
    [main], [sidecar] = pod.spec.containers, pod.spec.init_containers
    assert main.resources.requests == main.resources.limits == requests
    assert (main.ports[0].name, main.ports[0].container_port) == ("metrics", 9100)
    assert (sidecar.restart_policy, sidecar.resources.requests) == ("Always", {"cpu": "100m"})
    assert pod.spec.resources is None


async def it_keeps_an_event(place: Place) -> None:
    thing = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e1", "namespace": place.namespace},
        "involvedObject": {"kind": "Pod", "namespace": place.namespace, "name": "p1", "uid": "u1"},
        "type": "Warning",
        "reason": "TopologyAffinityError",
        "message": "Resources cannot be allocated with Topology locality",
        "source": {"component": "kubelet", "host": "n1"},
        "count": 3,
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:05:05Z",
    }
    event = await one(place, EVENTS, thing)
    assert (event.involved_object.kind, event.involved_object.uid) == ("Pod", "u1")
    assert (event.type, event.reason, event.source.host) == ("Warning", "TopologyAffinityError", "n1")
    assert (event.times, event.first.isoformat(), event.last.isoformat()) == (
        3,
        "2026-01-02T03:04:05+00:00",
        "2026-01-02T03:05:05+00:00",
    )


async def it_keeps_a_daemon_set(place: Place) -> None:
    labels = {"app": "numa-exporter"}
    thing = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d1", "namespace": place.namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "registry.invalid/main:1"}]},
            },
        },
    }
    found = await one(place, DAEMONSETS, thing)
    assert found.spec.selector.match_labels == found.spec.template.metadata.labels == labels
    assert found.spec.template.spec.containers[0].name == "main"
    assert found.status.number_ready == 0


Check = Callable[[Any], Awaitable[None]]

CONTRACT = [
    pytest.param(each, id=each.__name__)
    for each in (
        it_gives_a_list_in_pages_of_one_moment,
        it_lists_what_was_written_just_before,
        it_lists_nothing_as_a_list,
        it_selects_by_labels_and_fields,
        it_refuses_a_page_token_that_it_did_not_give,
        it_tells_what_happened_after_a_list_in_order,
        it_goes_on_in_the_middle_without_repeating,
        it_tells_at_once_what_happens_during_a_watch,
        it_ends_a_watch_when_it_was_asked_to,
        it_says_that_what_leaves_a_selection_is_deleted,
        it_says_nothing_about_versions_that_are_still_to_come,
        it_says_which_right_is_missing,
        it_knows_what_somebody_may_do,
        it_refuses_a_token_that_it_does_not_know,
        it_says_its_version,
        it_serves_custom_resources_while_they_are_defined,
        it_keeps_a_topology_of_volcano,
        it_keeps_a_topology_in_both_versions,
        it_keeps_a_node,
        it_keeps_a_pod,
        it_keeps_an_event,
        it_keeps_a_daemon_set,
    )
]

BREAKING = [
    pytest.param(each, id=each.__name__)
    for each in (
        it_has_forgotten_the_past_after_a_restart,
        it_counts_from_an_earlier_version_when_it_comes_back_empty,
    )
]
