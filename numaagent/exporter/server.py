"""Starts the exporter's server and ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import ssl
import time
from collections.abc import Callable

from numaagent.config import Config, ConfigError, Tls
from numaagent.exporter.application import Application
from numaagent.exporter.http import MAX_HEAD, Connections
from numaagent.exporter.keeper import Keeper
from numaagent.exporter.node import Node

logger = logging.getLogger(__name__)


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
