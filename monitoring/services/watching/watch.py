"""All watches of one cluster, by whoever holds its lease: one reflector for each kind of objects, side by side.

A watch that fails waits and tries again by itself and leaves the others alone. What ends all of them is a lost lease, after which
another process goes on, and a database that does not take what came: then everything is listed anew.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import msgspec
import structlog
from django.db import DatabaseError, close_old_connections, connections, transaction

from monitoring.kube import resources, rights
from monitoring.kube.client import LIMITS, Client, Limits
from monitoring.kube.errors import ApiError
from monitoring.kube.kubeconfig import AccessError
from monitoring.kube.objects import KubeObject, NodeResourceTopology
from monitoring.kube.reflector import Pace, Reflector
from monitoring.kube.resources import NRT_ALPHA1, NRT_ALPHA2, Resource
from monitoring.kube.sinks import Listing, WatchState
from monitoring.models import Connection, SourceView
from monitoring.selectors import reaching
from monitoring.services import leases, storing
from monitoring.services.leases import LeaseLostError, Tenure
from monitoring.services.watching import health, told, wanted
from monitoring.services.watching.configz import Configz
from monitoring.services.watching.daemonsets import DaemonSetKeeper
from monitoring.services.watching.events import EventKeeper
from monitoring.services.watching.exporters import Exporters
from monitoring.services.watching.failures import Failures
from monitoring.services.watching.health import Health
from monitoring.services.watching.keeper import Desk, Keeper
from monitoring.services.watching.nodes import NodeKeeper
from monitoring.services.watching.pods import PodKeeper
from monitoring.services.watching.service import ServiceExporters
from monitoring.services.watching.views import ViewKeeper

log = structlog.get_logger(__name__)
T = TypeVar("T", bound=KubeObject)
R = TypeVar("R")


class Waits(msgspec.Struct, frozen=True):
    """Seconds. A holder renews its lease each `beat`; who does not for `patience` counts as dead."""

    beat: float = 2.0
    patience: float = 8.0
    greet: float = 60.0
    """Between two looks at the server's version and our rights."""
    configz: float = 600.0
    """Between two looks at what kubelets say is in force."""
    service: float = 15.0
    """Between two looks at the addresses behind a headless Service."""
    retry: float = 10.0
    """After a failure that no reflector waits for."""
    pace: Pace = Pace()
    limits: Limits = LIMITS


def now() -> datetime:
    return datetime.now(UTC)


def lease_of(cluster: int) -> str:
    """The name of the lease of a cluster's watcher."""
    return f"watch/{cluster}"


def _fenced(tenure: Tenure, write: Callable[[], None]) -> None:
    with transaction.atomic():
        leases.fence(tenure)
        write()


class ClusterWatch:
    """Watches one cluster for as long as `run` runs."""

    def __init__(self, connection: Connection, waits: Waits) -> None:
        self._connection, self._waits = connection, waits
        self._lease = lease_of(connection.cluster_id)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"watch-{connection.cluster_id}")
        self._log = log.bind(cluster=connection.cluster.slug)

    async def run(self) -> None:
        """Ends by cancellation only."""
        try:
            while True:
                tenure = await self._take()
                try:
                    await self._hold(tenure)
                finally:
                    await asyncio.shield(self._job(partial(leases.give_up, tenure)))
        finally:
            self._thread.submit(connections.close_all)
            self._thread.shutdown(wait=False)

    # The lease -----------------------------------------------------------------------------------------------

    async def _take(self) -> Tenure:
        while True:
            try:
                if await self._job(partial(leases.suspect, self._lease)):
                    tenure = await self._job(partial(leases.take, self._lease, self._waits.patience))
                    if tenure is not None:
                        self._log.info("watch.begins")
                        return tenure
            except DatabaseError as error:
                await self._refused(error)
            await asyncio.sleep(self._waits.beat)

    async def _hold(self, tenure: Tenure) -> None:
        """Works until the lease is lost. What else goes wrong is tried again."""
        lost = False
        while not lost:
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._beat(tenure))
                    group.create_task(self._work(tenure))
            except* LeaseLostError:
                self._log.warning("watch.lease-lost")
                lost = True
            except* DatabaseError as errors:
                await self._refused(errors)
            await asyncio.sleep(self._waits.retry * random.uniform(0.5, 1.0))

    async def _refused(self, error: BaseException) -> None:
        """Notes a write that the database refused."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        self._log.warning("watch.database", error=str(error))
        if isinstance(error, DatabaseError):
            await self._job(partial(storing.refused, self._lease, error))

    async def _beat(self, tenure: Tenure) -> None:
        while True:
            await self._job(partial(leases.renew, tenure))
            await asyncio.sleep(self._waits.beat)

    # The work ------------------------------------------------------------------------------------------------

    async def _work(self, tenure: Tenure) -> None:
        try:
            access = reaching.access_of(self._connection)
            async with Client(access, self._waits.limits) as client:
                await _Work(self._connection, client, tenure, self._waits, self._job).run()
        except AccessError as error:
            await self._failed(tenure, str(error), reaching.CREDENTIALS)
        except ApiError as error:  # a stored certificate that cannot be read
            await self._failed(tenure, error.message, error.remedy)
        # Only somebody who changes the connection can help, and that begins a new watch.
        await asyncio.Event().wait()

    async def _failed(self, tenure: Tenure, cause: str, remedy: str) -> None:
        done = partial(health.failed, self._connection.pk, "", cause, remedy, now())
        await self._job(partial(_fenced, tenure, done))

    async def _job(self, work: Callable[[], R]) -> R:
        def fresh() -> R:
            close_old_connections()
            return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, fresh)


class _Work:
    """The reflectors of one tenure."""

    def __init__(
        self,
        connection: Connection,
        client: Client,
        tenure: Tenure,
        waits: Waits,
        job: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        self._connection, self._client, self._tenure = connection, client, tenure
        self._waits, self._job = waits, job
        self._nodes_told = asyncio.Event()
        """All nodes are known, or cannot be: what others say of them has rows to go to."""
        self._views: dict[str, ViewKeeper[Any]] = {}
        """By source."""

    async def run(self) -> None:
        cluster = self._connection.cluster
        pods = PodKeeper(cluster.pk, Failures(cluster), Exporters(self._connection))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._greet())
            group.create_task(self._follow(resources.NODES, NodeKeeper(cluster.pk, self._arrived)))
            await self._nodes_told.wait()
            group.create_task(self._follow(resources.PODS, pods))
            group.create_task(self._follow(resources.EVENTS, EventKeeper(cluster.pk)))
            group.create_task(self._follow(resources.DAEMONSETS, DaemonSetKeeper(self._connection.pk)))
            volcano = ViewKeeper(cluster.pk, SourceView.Source.NUMATOPOLOGY, "v1alpha1", told.numatopology)
            self._views[SourceView.Source.NUMATOPOLOGY] = volcano
            group.create_task(self._follow(resources.NUMATOPOLOGIES, volcano))
            group.create_task(self._follow_topologies())
            configz = Configz(cluster.pk, self._client, self._tenure, self._job, now)
            group.create_task(configz.run(self._waits.configz))
            if self._connection.exporter_service:
                service = ServiceExporters(self._connection, self._tenure, self._job)
                group.create_task(service.run(self._waits.service))

    def _arrived(self, names: Collection[str], now: datetime) -> None:
        for view in self._views.values():
            view.arrived(names, now)

    async def _greet(self) -> None:
        """Asks now and then who is there and what we may."""
        server = self._client.access.server
        while True:
            try:
                version = await self._client.version()
                missing = await rights.missing(self._client, wanted.RIGHTS)
            except ApiError as error:
                done = partial(health.failed, self._connection.pk, server, error.message, error.remedy, now())
                pause = self._waits.retry
            else:
                done = partial(health.reached, self._connection.pk, server, version, missing, now())
                pause = self._waits.greet
            await self._job(partial(_fenced, self._tenure, done))
            await asyncio.sleep(pause * random.uniform(0.8, 1.0))

    async def _follow(self, resource: Resource[T], keeper: Keeper[T], name: str = "") -> None:
        written = Health(self._connection.pk, name or resource.name)

        def state(found: WatchState, known: int | None) -> None:
            written.told(found, known)

        desk = Desk(keeper, self._job, self._tenure, now, state, written.heard)
        if resource is resources.NODES:
            await Reflector(self._client, resource, _Gate(desk, self._nodes_told), self._waits.pace).run()
        else:
            await Reflector(self._client, resource, desk, self._waits.pace).run()

    async def _follow_topologies(self) -> None:
        """NodeResourceTopology in the newer of the versions that the server has, asked again now and then."""
        cluster, source = self._connection.cluster, SourceView.Source.RESOURCE_TOPOLOGY
        while True:
            resource = await self._newest()
            keeper: ViewKeeper[NodeResourceTopology] = ViewKeeper(
                cluster.pk, source, resource.version, told.resource_topology
            )
            self._views[source] = keeper
            following = asyncio.create_task(self._follow(resource, keeper, NRT_ALPHA2.name))
            try:
                while await self._newest(resource) is resource:
                    finished, _ = await asyncio.wait([following], timeout=self._waits.pace.absent)
                    if finished:
                        await following
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    async def _newest(
        self, unless: Resource[NodeResourceTopology] = NRT_ALPHA2
    ) -> Resource[NodeResourceTopology]:
        """The version to read; `unless` it where the server cannot be asked."""
        try:
            if not await resources.served(self._client, NRT_ALPHA2) and await resources.served(
                self._client, NRT_ALPHA1
            ):
                return NRT_ALPHA1
        except ApiError:
            return unless
        return NRT_ALPHA2


class _Gate:
    """A desk that opens a gate when the first list is over, however it ended."""

    def __init__(self, desk: Desk[Any], gate: asyncio.Event) -> None:
        self._gate = gate
        self.begin, self.page, self.end, self.changes = desk.begin, desk.page, desk.end, desk.changes
        self._state = desk.state

    async def state(self, state: WatchState) -> None:
        await self._state(state)
        if not isinstance(state, Listing):
            self._gate.set()
