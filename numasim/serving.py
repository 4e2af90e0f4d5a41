"""Serves a fleet on this machine's loopback: each endpoint at an address or at a port of its own."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvloop

from numasim import announce
from numasim.endpoint import Endpoint
from numasim.fleet import Fleet

FIRST = 64
"""Addresses begin at 127.64.0.1, away from what else listens in 127.0.0.0/8."""


class Serving:
    """A fleet that answers. Use as an asynchronous context; `urls` are in the order of the endpoints.

    `ports`: a port for each endpoint, for few of them; else an address for each, behind one listening socket.
    """

    def __init__(self, fleet: Fleet, *, ports: bool = False) -> None:
        self._fleet, self._ports = fleet, ports
        self._servers: list[asyncio.Server] = []
        self._open: set[Endpoint] = set()
        self.urls: list[str] = []

    async def __aenter__(self) -> Serving:
        _raise_limit(2 * self._fleet.count + 256)
        if self._ports:
            self.urls = [await self._listen_alone(index) for index in range(self._fleet.count)]
        else:
            port = await self._listen(_loopback(), _index_of)
            self.urls = [f"http://{address_of(index)}:{port}" for index in range(self._fleet.count)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for endpoint in list(self._open):
            endpoint.abort()
        await asyncio.sleep(0)

    def exporters(self) -> list[tuple[str, str]]:
        """Name and address of each endpoint."""
        return [(self._fleet.name(i), url) for i, url in enumerate(self.urls)]

    async def _listen_alone(self, index: int) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        port = await self._listen(listener, lambda _: index)
        return f"http://127.0.0.1:{port}"

    async def _listen(self, listener: socket.socket, which: Callable[[asyncio.Transport], int]) -> int:
        make = partial(Endpoint, self._fleet.answer, which, self._open)
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_server(make, sock=listener, backlog=4096))
        port: int = listener.getsockname()[1]
        return port


def address_of(index: int) -> str:
    """Address of an endpoint: no byte is 0 at the end or above 250, so that none looks like a network."""
    return f"127.{FIRST + index // 62500}.{index // 250 % 250}.{index % 250 + 1}"


def _index_of(transport: asyncio.Transport) -> int:
    _, high, middle, low = transport.get_extra_info("sockname")[0].split(".")
    return (int(high) - FIRST) * 62500 + int(middle) * 250 + int(low) - 1


def _loopback() -> socket.socket:
    """A socket that takes what arrives for any address of the loopback device, and nothing from outside."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    listener.bind(("0.0.0.0", 0))  # noqa: S104, only the loopback device leads here
    return listener


def _raise_limit(files: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, hard), hard))


def run(fleet: Fleet, file: Path) -> None:
    """Serves a fleet until SIGTERM or SIGINT; its addresses stand in `file` meanwhile."""
    try:
        # Thousands of endpoints share one process, and what is measured is whoever asks them, not this.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(fleet, file))
    finally:
        file.unlink(missing_ok=True)


async def _serve(fleet: Fleet, file: Path) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Serving(fleet) as serving:
        announce.write(file, serving.exporters())
        await stop.wait()
