"""What each kubelet says is in force, asked now and then; beside what its files ask for, since a typo in a file is silent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from monitoring.kube import kubelet, rights
from monitoring.kube.client import Client
from monitoring.kube.errors import ApiError
from monitoring.models import KubernetesNode, SourceView
from monitoring.services import leases
from monitoring.services.changes import BATCH
from monitoring.services.leases import Tenure

AT_ONCE = 8
SOME = 100
"""Nodes of one transaction."""
DECIDING = (
    *("topologyManagerPolicy", "topologyManagerScope", "topologyManagerPolicyOptions"),
    *("cpuManagerPolicy", "cpuManagerPolicyOptions", "reservedSystemCPUs"),
    *(
        "memoryManagerPolicy",
        "reservedMemory",
        "systemReserved",
        "kubeReserved",
        "evictionHard",
        "featureGates",
    ),
)
"""Fields that decide where containers sit; nothing else of a kubelet's configuration is kept."""

Where = tuple[int, str, int | None]
"""A node, its address and its kubelet's port."""


class Configz:
    """Of one cluster."""

    def __init__(
        self,
        cluster: int,
        client: Client,
        tenure: Tenure,
        job: Callable[[Callable[[], Any]], Awaitable[Any]],
        clock: Callable[[], datetime],
    ) -> None:
        self._cluster, self._client, self._tenure = cluster, client, tenure
        self._job, self._clock = job, clock

    async def run(self, pause: float) -> None:
        """For ever; without the right nothing is asked, and the connection says so."""
        while True:
            if await self._allowed():
                where = await self._job(self._where)
                for start in range(0, len(where), SOME):
                    await self._round(where[start : start + SOME])
            await asyncio.sleep(pause * random.uniform(0.8, 1.0))

    async def _allowed(self) -> bool:
        try:
            return not await rights.missing(self._client, [kubelet.RIGHT])
        except ApiError:
            return False

    def _where(self) -> list[Where]:
        rows = KubernetesNode.objects.filter(node__cluster=self._cluster, node__gone_at=None).exclude(
            address=""
        )
        return list(rows.values_list("pk", "address", "kubelet_port"))

    async def _round(self, where: Sequence[Where]) -> None:
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(each: Where) -> tuple[int, dict[str, Any]]:
            async with turns:
                return each[0], await self._ask(each)

        told = await asyncio.gather(*map(one, where))
        await self._job(lambda: self._write(dict(told)))

    async def _ask(self, where: Where) -> dict[str, Any]:
        _node, address, port = where
        try:
            found = await kubelet.configz(self._client.access, address, port)
        except ApiError as error:
            return {"cause": error.message, "remedy": error.remedy}
        return {"settings": {name: found[name] for name in DECIDING if name in found}}

    def _write(self, told: dict[int, dict[str, Any]]) -> None:
        """A kubelet that cannot be asked any more is said to be so; what it said before is not shown as if it held."""
        with transaction.atomic():
            leases.fence(self._tenure)
            there = set(KubernetesNode.objects.filter(pk__in=list(told)).values_list("pk", flat=True))
            source, now = SourceView.Source.CONFIGZ, self._clock()
            SourceView.objects.bulk_create(
                [
                    SourceView(node_id=node, source=source, changed=now, values=told[node])
                    for node in sorted(there)
                ],
                update_conflicts=True,
                unique_fields=["node", "source"],
                update_fields=["changed", "values"],
                batch_size=BATCH,
            )
