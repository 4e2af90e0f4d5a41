"""A copy of a real cluster stays true while its API server ends, comes back, and comes back empty."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from monitoring.kube import access
from monitoring.kube.client import Client
from monitoring.kube.reflector import Reflector
from monitoring.kube.resources import NUMATOPOLOGIES, PODS, Resource
from monitoring.kube.sinks import Absent, Watching
from tests.cluster import things
from tests.cluster.controlplane import ControlPlane
from tests.kubecontract import topology
from tests.monitoring.kube.recording import LIMITS, QUICK, Copy

PACE = msgspec.structs.replace(QUICK, backoff=(0.1, 1.0), spacing=0.5, absent=0.5)


@asynccontextmanager
async def copied(plane: ControlPlane, resource: Resource[Any], page: int = 3) -> AsyncIterator[Copy]:
    copy = Copy()
    pace = msgspec.structs.replace(PACE, page=page)
    async with Client(access.from_kubeconfig(plane.kubeconfig()), LIMITS) as client:
        running = asyncio.ensure_future(Reflector(client, resource, copy, pace).run())
        try:
            yield copy
            assert not running.done(), running.exception()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def until(true: Callable[[], bool], wanted: str) -> None:
    for _ in range(1200):
        if true():
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"waited 60 s for {wanted}")


def shows(copy: Copy, *names: str) -> Callable[[], bool]:
    return lambda: sorted(copy.names) == sorted(names)


async def test_a_copy_of_topologies_outlives_the_api_server(own_plane: ControlPlane) -> None:
    api = own_plane.api
    for name in "abcd":
        api.create(topology(name))
    async with copied(own_plane, NUMATOPOLOGIES) as copy:
        await until(shows(copy, *"abcd"), "four topologies")
        api.delete(api.path(topology("a")))
        api.create(topology("e"))
        await until(shows(copy, *"bcde"), "what happened")

        own_plane.apiserver.kill()
        await until(lambda: "Unreachable" in copy.causes, "its end")
        await asyncio.to_thread(own_plane.apiserver.start)
        await until(lambda: isinstance(copy.states[-1], Watching), "a watch")
        api.create(topology("f"))
        await until(shows(copy, *"bcdef"), "what happened later")

        # Comes back empty and knows no topologies: that is no fault, and nothing is left of them.
        await asyncio.to_thread(own_plane.restart_empty)
        await until(lambda: isinstance(copy.states[-1], Absent), "their absence")
        assert copy.names == {}
        await asyncio.to_thread(own_plane.define)
        api.create(topology("z"))
        await until(shows(copy, "z"), "a new one")


@pytest.mark.parametrize("page", [2, 500], ids=["several pages", "one page"])
async def test_a_copy_of_pods_notices_a_cluster_that_comes_back_empty(
    own_plane: ControlPlane, page: int
) -> None:
    """Its versions count from an earlier point, where a watch from ours would be silent."""
    names = [f"p{number}" for number in range(5)]
    for name in names:
        own_plane.api.create(things.pod(name))
    for number in range(40):
        own_plane.api.create(topology(f"n{number}"))
    async with copied(own_plane, PODS, page) as copy:
        await until(shows(copy, *names), "the pods")
        await asyncio.to_thread(own_plane.restart_empty)
        await until(shows(copy), "no pods")
        own_plane.api.create(things.pod("later"))
        await until(shows(copy, "later"), "a new one")
