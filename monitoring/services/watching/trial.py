"""An API server asked once, for somebody who waits: which version it has and which of the wanted rights are missing. Changes nothing."""

from __future__ import annotations

import asyncio
import time

import msgspec

from monitoring.kube import rights
from monitoring.kube.client import Client, Limits
from monitoring.kube.errors import ApiError
from monitoring.kube.kubeconfig import AccessError
from monitoring.models import Connection
from monitoring.selectors import reaching
from monitoring.services.watching import wanted

LIMITS = Limits(connect=5.0, answer=10.0)


class ConnectionTrial(msgspec.Struct, frozen=True):
    """The outcome. `error` "" = it answered."""

    error: str
    remedy: str = ""
    version: str = ""
    milliseconds: float = 0.0
    missing: tuple[str, ...] = ()


def try_connection(connection: Connection) -> ConnectionTrial:
    """Asks once. Blocking, for some seconds at most."""
    return asyncio.run(_try(connection))


async def _try(connection: Connection) -> ConnectionTrial:
    started = time.perf_counter()
    try:
        async with Client(reaching.access_of(connection), LIMITS) as client:
            version = await client.version()
            spent = (time.perf_counter() - started) * 1000
            missing = await rights.missing(client, wanted.RIGHTS)
    except AccessError as error:
        return ConnectionTrial(str(error), reaching.CREDENTIALS)
    except ApiError as error:
        return ConnectionTrial(error.message, error.remedy)
    return ConnectionTrial("", "", version.git_version, spent, tuple(map(str, missing)))
