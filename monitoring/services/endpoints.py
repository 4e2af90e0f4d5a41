"""How exporters answered, as rows; and asking one of them once, for an administrator who wants to know why."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable
from datetime import datetime

import msgspec
from django.conf import settings
from django.db import transaction

from monitoring import hot
from monitoring.models import Endpoint, NodeEvent
from monitoring.services import identity, leases
from monitoring.services.leases import Tenure
from monitoring.sources import failures
from monitoring.sources.exporter import Asker, Limits, Trust
from monitoring.sources.failures import SourceError
from monitoring.sources.http1 import Answer
from monitoring.sources.snapshot import Known
from numacore import wire

Code = NodeEvent.Code


class Health(msgspec.Struct, frozen=True):
    """How one endpoint did since its row was written last. `error` "" = it answers."""

    endpoint: int
    tried: datetime
    heard: datetime | None
    failures: int
    """In a row, up to now."""
    failed: int
    """Since the row was written last."""
    error: str
    remedy: str
    skew: float | None


def write_health(found: Iterable[Health], tenure: Tenure | None = None) -> None:
    """Writes them in one transaction. Raises LeaseLostError."""
    with transaction.atomic():
        if tenure is not None:
            leases.fence(tenure)
        for health in found:
            _write(health)


def _write(health: Health) -> None:
    state = Endpoint.State.FAILING if health.error else Endpoint.State.OK
    row = Endpoint.objects.filter(pk=health.endpoint).first()
    if row is None:
        return
    before, row.last_try = row.state, health.tried
    row.last_ok = health.heard or row.last_ok
    row.failures, row.failures_total = health.failures, row.failures_total + health.failed
    row.skew = health.skew if health.skew is not None else row.skew
    if health.error or not row.conflict:
        row.state, row.error, row.remedy = state, health.error[:500], health.remedy
    row.save(update_fields=WRITTEN)
    if row.node_id is not None and before not in (row.state, Endpoint.State.NEW):
        code, values = (Code.FAILING, {"cause": row.error}) if row.error else (Code.OK, {})
        identity.event(row.node_id, health.tried, code, values)


WRITTEN = (*("last_try", "last_ok", "failures", "failures_total", "skew", "state", "error", "remedy"),)


class Trial(msgspec.Struct, frozen=True):
    """The outcome of asking an endpoint once. `error` "" = it answered."""

    error: str
    remedy: str = ""
    node: str = ""
    version: str = ""
    milliseconds: float = 0.0
    size: int = 0
    problems: int = 0
    skew: float | None = None
    """Its clock minus ours, in seconds."""


def try_endpoint(endpoint: Endpoint) -> Trial:
    """Asks once and changes nothing. Blocking, for at most the time-out of collection."""
    return asyncio.run(_try(endpoint))


async def _try(endpoint: Endpoint) -> Trial:
    started = time.perf_counter()
    try:
        known, size = await _asked(endpoint)
    except SourceError as error:
        return Trial(str(error), error.remedy)
    except wire.WireError as error:
        return Trial(str(error), failures.GARBLED)
    assert known.exporter is not None
    spent = (time.perf_counter() - started) * 1000
    return Trial(
        "",
        node=known.exporter.node,
        version=known.exporter.version or "",
        milliseconds=spent,
        size=size,
        problems=len(known.problems),
        skew=known.skew,
    )


def try_all(endpoints: Collection[Endpoint]) -> list[Trial]:
    """Asks each once, some at the same time, and changes nothing; in the order given. Blocking."""
    return asyncio.run(_try_all(endpoints))


async def _try_all(endpoints: Collection[Endpoint]) -> list[Trial]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(endpoint: Endpoint) -> Trial:
        async with turn:
            return await _try(endpoint)

    return list(await asyncio.gather(*map(one, endpoints)))


async def _asked(endpoint: Endpoint) -> tuple[Known, int]:
    """What an exporter tells when it is asked once, and how many bytes it sent. Raises SourceError, wire.WireError."""
    size = settings.NUMAWEB_COLLECT_BYTES
    limits = Limits(float(settings.NUMAWEB_COLLECT_TIMEOUT), size, 2 * size)
    loop = asyncio.get_running_loop()
    over: asyncio.Future[Answer] = loop.create_future()

    def done(answer: Answer | None, error: SourceError | None) -> None:
        if answer is not None and error is None:
            over.set_result(answer)
        else:
            over.set_exception(error or SourceError(failures.UNREACHABLE, "no answer"))

    known = Known()
    try:
        asker = Asker(endpoint.url, endpoint.token, limits, loop, Trust(endpoint.ca, endpoint.server_name))
        try:
            asker.ask({}, done)
            answer = await over
        finally:
            asker.close()
        known.take(answer.body, time.time())
    finally:
        await asyncio.sleep(0)  # the loop closes the connection before it ends itself
    return known, len(answer.body)


AT_ONCE = 32
"""Exporters that a command asks at the same time."""


def ask_once(nodes: Collection[int]) -> list[hot.HotNode]:
    """Asks the exporters of these nodes once and changes nothing: for a command in an installation whose newest state is in the
    memory of another process. Nodes that do not answer are left out."""
    found = Endpoint.objects.filter(node__in=nodes, enabled=True, conflict="")
    return asyncio.run(_ask_all(list(found)))


async def _ask_all(endpoints: list[Endpoint]) -> list[hot.HotNode]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(endpoint: Endpoint) -> hot.HotNode | None:
        async with turn:
            try:
                known, _size = await _asked(endpoint)
            except (SourceError, wire.WireError):
                return None
        assert endpoint.node_id is not None
        assert known.exporter is not None
        return hot.HotNode(
            node=endpoint.node_id,
            endpoint=endpoint.pk,
            exporter=known.exporter,
            received=known.received,
            taken=known.whole_taken,
            hashes=dict(known.hashes),
            confirmed=dict(known.confirmed),
            problems=known.problems,
            sections=dict(known.sections),
        )

    answers = await asyncio.gather(*map(one, endpoints))
    return [each for each in answers if each is not None]
