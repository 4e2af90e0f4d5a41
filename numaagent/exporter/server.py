"""The exporter's server: what each path answers, and the task that keeps the node's state current."""

from __future__ import annotations

import asyncio
import gc
import hmac
import logging
import os
import signal
import ssl
import time
from collections.abc import Callable

import msgspec

from numaagent.config import Config, ConfigError, Tls
from numaagent.exporter import exposition
from numaagent.exporter.http import MAX_HEAD, Connections, Request, Response
from numaagent.exporter.metrics import Page
from numaagent.exporter.node import Node, NotReadyError
from numacore import wire

FIRST_INTERVAL = 2.0
"""Seconds of the first interval, so that ratios are there soon after the start."""
SOONEST = 1.0
"""Seconds between surveys that ended containers ask for."""
STALE_PERIODS = 3
"""Periods without a reading of its own after which the exporter calls itself unwell."""
INDEX = """numaweb node exporter
/metrics      Prometheus text, or OpenMetrics if asked for
/v1/snapshot  everything about this node as JSON
/healthz      whether reading works
"""
UNEXPECTED = (OSError, ValueError, LookupError, ArithmeticError, AttributeError, TypeError, RecursionError)
"""Errors that a tree nobody thought of may cause; one round or answer fails, the exporter goes on."""
logger = logging.getLogger(__name__)


class Application:
    """Answers requests from one node's state."""

    def __init__(self, told: Config, node: Node, started: float) -> None:
        self._told = told
        self._node = node
        self._page = Page(node, started)
        self._token = told.token.encode() if told.token else None
        self._paths: dict[str, Callable[[Request], Response]] = {
            "/": lambda _: Response(INDEX.encode()),
            "/metrics": self._metrics,
            "/v1/snapshot": self._snapshot,
            "/healthz": self._health,
        }

    def answer(self, request: Request) -> Response:
        """The answer to a request."""
        handler = self._paths.get(request.path)
        if handler is None:
            return Response(b"There is no such page here. Known: /metrics /v1/snapshot /healthz\n", 404)
        if request.method not in ("GET", "HEAD"):
            return Response(b"The exporter only answers GET and HEAD.\n", 405, headers={"Allow": "GET, HEAD"})
        try:
            return handler(request)
        except NotReadyError as error:
            return Response(f"Not ready: {error}.\n".encode(), 503, headers={"Retry-After": "1"})
        except UNEXPECTED as error:
            logger.exception("no answer to %s", request.path)
            self._node.files.problems.note("server", request.path, f"unexpected: {error!r}")
            return Response(b"The node could not be read; the exporter's log tells why.\n", 500)

    def _metrics(self, request: Request) -> Response:
        openmetrics = exposition.wants_open(request.headers.get("accept", ""))
        body = self._page.text(time.monotonic(), time.time(), openmetrics)
        return Response(body, kind=exposition.OPEN if openmetrics else exposition.TEXT)

    def _snapshot(self, request: Request) -> Response:
        if not self._allowed(request):
            text = b"This exporter asks for a bearer token: Authorization: Bearer TOKEN\n"
            return Response(text, 401, headers={"WWW-Authenticate": 'Bearer realm="numaweb"'})
        have = wire.parse_have(request.query.get("have", ""))
        found = self._node.snapshot(time.monotonic(), time.time(), have)
        return Response(wire.encode(found), kind="application/json")

    def _health(self, _: Request) -> Response:
        age = self._node.age(time.monotonic())
        well = age is not None and age < STALE_PERIODS * max(self._told.period, FIRST_INTERVAL)
        body = {
            "status": "ok" if well else "stale",
            "age_seconds": None if age is None else round(age, 3),
            "problems": len(self._node.files.problems.listed()),
        }
        return Response(msgspec.json.encode(body) + b"\n", 200 if well else 503, "application/json")

    def _allowed(self, request: Request) -> bool:
        if self._token is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode("latin-1", "replace"), self._token)
        return right and scheme.lower() == "bearer"


class Keeper:
    """Surveys and samples the node, once for each period and soon after a container has ended."""

    def __init__(self, told: Config, node: Node) -> None:
        self._period = told.period
        self._node = node

    async def run(self) -> None:
        """Until cancelled."""
        await self._round()
        # What is there now stays: the collector need not walk over it at every hundredth reading.
        gc.collect()
        gc.freeze()
        await asyncio.sleep(FIRST_INTERVAL)
        while True:
            await self._round()
            await self._rest()

    async def _rest(self) -> None:
        until = time.monotonic() + self._period
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, SOONEST))
            if self._node.outdated and left > SOONEST:
                await self._survey()

    async def _round(self) -> None:
        await self._survey()
        try:
            self._node.sample(time.monotonic(), time.time())
        except UNEXPECTED as error:
            self._failed("sample", error)

    async def _survey(self) -> None:
        try:
            self._node.adopt(await asyncio.to_thread(self._node.survey, time.monotonic(), time.time()))
        except UNEXPECTED as error:
            self._failed("survey", error)

    def _failed(self, what: str, error: Exception) -> None:
        logger.error("%s failed", what, exc_info=error)
        self._node.files.problems.note("exporter", what, f"unexpected: {error!r}")


async def serve(told: Config, ready: Callable[[int], None] = lambda _: None) -> None:
    """Serves until SIGTERM or SIGINT. `ready` gets the port once it listens.

    Raises:
        ConfigError: the address cannot be used, or TLS files cannot be read.
    """
    started = time.time()
    node = Node(told, started=started)
    connections = Connections(Application(told, node, started).answer)
    secure = _tls(told.tls) if told.tls else None
    try:
        server = await asyncio.start_server(
            connections.serve, told.host, told.port, limit=MAX_HEAD, ssl=secure
        )
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {told.host}:{told.port}: {error.strerror}; choose another with --listen or NUMAAGENT_LISTEN"
        ) from error
    keeper = asyncio.create_task(Keeper(told, node).run())
    renewal = asyncio.create_task(_renew(secure, told.tls)) if secure and told.tls else None
    ready(server.sockets[0].getsockname()[1])
    await _stopped()
    server.close()
    for task in filter(None, (keeper, renewal)):
        task.cancel()
    await connections.drain(5)
    node.close()


async def _stopped() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    await stop.wait()


def _tls(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(tls.cert, tls.key)
        if tls.client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(tls.client_ca)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"NUMAAGENT_TLS_...: the certificate, key or client authority cannot be used: {error}"
        ) from error
    return context


async def _renew(context: ssl.SSLContext, tls: Tls) -> None:
    """Takes up a renewed certificate for new connections."""
    known = _written(tls)
    while True:
        await asyncio.sleep(60)
        now = _written(tls)
        if now != known:
            known = now
            try:
                context.load_cert_chain(tls.cert, tls.key)
            except (OSError, ssl.SSLError):
                logger.exception("the renewed certificate cannot be used; the old one stays")


def _written(tls: Tls) -> tuple[int, int]:
    try:
        return os.stat(tls.cert).st_mtime_ns, os.stat(tls.key).st_mtime_ns
    except OSError:
        return 0, 0
