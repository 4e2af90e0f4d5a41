"""Many objects at once: one asyncio client writes thousands of nodes and pods in seconds."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import aiohttp

from tests.cluster.api import MERGE, TIMEOUT_SECONDS, Api, ApiError, Object

AT_ONCE = 48
"""Requests under way at a time; the API server turns away a few hundred and more."""


class _Request(NamedTuple):
    method: str
    path: str
    body: Object
    kind: str


async def create(api: Api, things: Iterable[Object]) -> None:
    """Creates all of them, in no order. Raises the first ApiError."""
    await _send_all(
        api, (_Request("POST", api.path(each, collection=True), each, "application/json") for each in things)
    )


async def patch_statuses(api: Api, things: Iterable[tuple[Object, Object]]) -> None:
    """Merges into statuses: pairs of an object and what its status shall say. Raises the first ApiError."""
    await _send_all(
        api, (_Request("PATCH", f"{api.path(each)}/status", {"status": said}, MERGE) for each, said in things)
    )


async def _send_all(api: Api, requests: Iterable[_Request]) -> None:
    waiting = iter(requests)
    connector = aiohttp.TCPConnector(limit=AT_ONCE, ssl=api.context)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    async with (
        aiohttp.ClientSession(api.server, connector=connector, timeout=timeout) as session,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(AT_ONCE):
            group.create_task(_send_some(api, session, waiting))


async def _send_some(api: Api, session: aiohttp.ClientSession, waiting: Iterator[_Request]) -> None:
    for request in waiting:
        async with session.request(
            request.method, request.path, data=json.dumps(request.body), headers=api.headers(request.kind)
        ) as response:
            if not response.ok:
                raise ApiError(response.status, await response.read())
            await response.read()
