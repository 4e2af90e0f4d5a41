"""Exporters behind a headless Service: its name leads to the address of every pod, without any right to read pods."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from django.db import transaction

from monitoring.models import Connection, Endpoint
from monitoring.services import leases
from monitoring.services.leases import Tenure

log = structlog.get_logger(__name__)
PORT = 9117
"""Of numa-exporter, where the Service's address names none."""


def parse(text: str) -> tuple[str, int]:
    """Host and port of `HOST` or `HOST:PORT`. Raises ValueError."""
    host, colon, port = text.strip().rpartition(":")
    if not colon:
        host, port = port, str(PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host, int(port)


async def resolve(host: str, port: int) -> list[Any]:
    """Every address of a name. Raises OSError."""
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


class ServiceExporters:
    """The endpoints of one cluster that a Service's name leads to. A name that is not answered changes nothing."""

    def __init__(
        self,
        connection: Connection,
        tenure: Tenure,
        job: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        self._connection, self._tenure, self._job = connection, tenure, job

    async def run(self, pause: float) -> None:
        host, port = parse(self._connection.exporter_service)
        while True:
            try:
                found = await resolve(host, port)
            except OSError as error:
                log.warning("watch.service", service=self._connection.exporter_service, error=str(error))
            else:
                urls = {self._url(str(address[4][0]), port) for address in found}
                await self._job(lambda urls=urls: self._write(urls))  # type: ignore[misc]
            await asyncio.sleep(pause * random.uniform(0.8, 1.0))

    def _url(self, address: str, port: int) -> str:
        scheme = "https" if self._connection.exporter_https else "http"
        return f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"

    def _write(self, urls: set[str]) -> None:
        connection = self._connection
        common = {
            "token": connection.exporter_token,
            "ca": connection.exporter_ca,
            "server_name": connection.exporter_name,
        }
        with transaction.atomic():
            leases.fence(self._tenure)
            of_service = Endpoint.objects.filter(
                cluster=connection.cluster_id, origin=Endpoint.Origin.SERVICE
            )
            known = set(of_service.values_list("url", flat=True))
            for url in sorted(urls - known):
                # An address that a person entered, or that a pod brought, stays theirs.
                Endpoint.objects.get_or_create(
                    cluster_id=connection.cluster_id,
                    url=url,
                    defaults={**common, "origin": Endpoint.Origin.SERVICE},
                )
            for endpoint in of_service.filter(url__in=known & urls):
                if any(getattr(endpoint, name) != value for name, value in common.items()):
                    Endpoint.objects.filter(pk=endpoint.pk).update(**common)
            of_service.exclude(url__in=urls).delete()
