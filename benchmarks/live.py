"""Live pages: bytes of a tick, cost of a message to a thousand browsers, memory that a stalled browser takes."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks import installation, measure
from benchmarks.crowd import Member, crowd, delivered, handshake, rush
from benchmarks.outcome import Outcome
from tests import servers

NODES = 5_000
SOCKETS = 1_000
PEOPLE = 10
PERIOD = 0.5
"""Seconds between two ticks."""
WINDOW = 4.0
"""Seconds of a round: both servers send at the same time, so that both meet the same machine."""
STALL_SECONDS = 12
# Share of cells that change in a tick, and nodes of the cluster: about 25 KB and about 2 KB to each browser.
LARGE, SMALL = (NODES, 0.37), (250, 0.75)


@contextlib.contextmanager
def bare(folder: Path, message: bytes) -> Iterator[servers.Server]:
    """uvicorn that sends the same bytes at the same pace and does nothing else."""
    file = folder / "message"
    file.write_bytes(message)
    port = servers.free_port()
    command = [sys.executable, "-m", "uvicorn", "benchmarks.bare_broadcast:application", f"--port={port}"]
    command += [
        "--loop=uvloop",
        "--ws=websockets-sansio",
        "--ws-per-message-deflate=false",
        "--log-level=error",
    ]
    environment = {**os.environ, "BENCH_MESSAGE_FILE": str(file), "BENCH_PERIOD": str(PERIOD)}
    ready = f"http://127.0.0.1:{port}/"
    server = servers.Server(command, folder, lambda _: servers.answers(ready), environment=environment)
    with servers.running(server):
        server.port = port  # type: ignore[attr-defined]
        yield server


@contextlib.asynccontextmanager
async def watching(port: int, cookies: list[str], path: str, size: int) -> AsyncIterator[list[Member]]:
    """A crowd whose members are signed in as different people."""
    async with contextlib.AsyncExitStack() as stack:
        members: list[Member] = []
        for cookie in cookies:
            part = crowd(size // len(cookies), port, path, {"Cookie": cookie})
            members += await stack.enter_async_context(part)
        yield members


async def largest(port: int, cookie: str, path: str, seconds: float) -> int:
    """Bytes of the largest tick in so many seconds, the first (whole) state left out."""
    async with crowd(1, port, path, {"Cookie": cookie}) as [member]:
        await asyncio.sleep(3 * PERIOD)
        most = 0
        for _ in range(int(seconds / 0.05)):
            await asyncio.sleep(0.05)
            most = max(most, member.last)
        return most


async def per_message(pid: int, members: list[Member]) -> float:
    """CPU seconds of a server per delivered message."""
    before = delivered(members)
    with measure.spent(pid) as used:
        await asyncio.sleep(WINDOW)
    count = delivered(members) - before
    if count < len(members):
        raise RuntimeError(f"{count} messages for {len(members)} browsers: not every browser got one")
    return used.seconds / count


async def compare(
    ours: servers.Server, port: int, peer: servers.Server, cookies: list[str], path: str
) -> tuple[list[tuple[float, float]], int]:
    """CPU per message of both in each round, and the size of ours."""
    bare_port: int = peer.port  # type: ignore[attr-defined]
    async with (
        watching(port, cookies, path, SOCKETS) as us,
        watching(bare_port, cookies, "/", SOCKETS) as them,
    ):
        await asyncio.sleep(2)
        pairs: list[tuple[float, float]] = []
        for _ in range(measure.ROUNDS):
            both = per_message(installation.pid(ours), us), per_message(installation.pid(peer), them)
            pairs.append(await asyncio.gather(*both))
        lost = [member.reason for member in us + them if member.closed]
        if lost:
            raise RuntimeError(f"{len(lost)} of {SOCKETS} browsers were disconnected: {set(lost)}")
        return pairs, us[0].last


async def stalled(pid: int, port: int, cookies: list[str], path: str) -> tuple[float, float]:
    """Most bytes that the server grew by while one browser did not read, and share that the others got."""
    async with watching(port, cookies, path, 100) as members:
        await asyncio.sleep(6)
        base = max([await resident_soon(pid) for _ in range(8)])
        before = delivered(members)
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.connect(("127.0.0.1", port))
            silent.sendall(handshake(port, path, {"Cookie": cookies[0]}))
            most = max([await resident_soon(pid) for _ in range(int(STALL_SECONDS / 0.25))])
        got = (delivered(members) - before) / (len(members) * STALL_SECONDS / PERIOD)
        return max(0, most - base), got


async def resident_soon(pid: int) -> int:
    await asyncio.sleep(0.25)
    return measure.resident(pid)


def fan_out(place: installation.Installation, size: tuple[int, float], cookies: list[str]) -> Outcome:
    nodes, share = size
    slug = f"fan-out-{nodes}"
    path = f"/ws/c/{slug}/overview/"
    ticker = installation.background(place, "ticks", slug, str(nodes), str(share), str(PERIOD))
    with servers.running(ticker), installation.web(place) as web:
        port = urlsplit(web.url).port or 0
        length = asyncio.run(largest(port, cookies[0], path, 3))
        with bare(place.folder, os.urandom(length)) as peer:
            pairs, tick = asyncio.run(compare(web.server, port, peer, cookies, path))
    return Outcome(
        f"live: CPU per message of {tick / 1000:.0f} KB to {SOCKETS:,} browsers",
        measure.spread([us for us, _ in pairs]).shown("µs", 1e6, 1),
        measure.spread([them for _, them in pairs]).shown("µs", 1e6, 1),
        measure.spread([us / them for us, them in pairs]).median,
        1.2,
        how=f"CPU of the web process (manage.py serve: sign-in checked, hub, mailboxes, news through Redis, encoding) per "
        f"message delivered to {SOCKETS} WebSockets on the overview of {nodes} nodes x 8, a tick every {PERIOD} s. Peer: "
        "uvicorn with the same WebSocket implementation that sends as many bytes to as many sockets at the same pace and "
        "does nothing else. Both at once, clients in a third process, compression offered by every client as browsers do.",
    )


def tick_bytes(place: installation.Installation, cookies: list[str]) -> list[Outcome]:
    """Every cell of 5,000 x 8 changes at once: the largest tick that there is, and what a stalled browser costs then."""
    path = "/ws/c/all/overview/"
    ticker = installation.background(place, "ticks", "all", str(NODES), "1", str(PERIOD))
    with servers.running(ticker), installation.web(place) as web:
        port = urlsplit(web.url).port or 0
        length = asyncio.run(largest(port, cookies[0], path, 4))
        grown, others = asyncio.run(stalled(installation.pid(web.server), port, cookies[:10], path))
    if others < 0.9:
        raise RuntimeError(f"one stalled browser: the others got {others:.0%} of their messages")
    return [
        Outcome(
            "live: bytes of an overview tick",
            f"{length:,} B",
            "-",
            length / 1024,
            64,
            "KiB",
            how=f"Largest message on the socket of an overview of {NODES} nodes x 8 NUMA nodes when the use of every NUMA "
            "node changes in every tick.",
        ),
        Outcome(
            "live: memory for a stalled browser",
            f"{grown / 2**20:.2f} MiB",
            "-",
            grown / 2**20,
            1,
            "MiB",
            how=f"Most resident memory of the web process while one browser with a small receive buffer does not read for "
            f"{STALL_SECONDS} s, less the most in the 2 s before; the ticks of the line above, 100 other browsers "
            f"(which got {others:.0%} of their messages).",
        ),
    ]


def came_back(place: installation.Installation, cookies: list[str]) -> Outcome:
    """A thousand browsers connect in the same moment, as after a restart of the server that they had been on."""
    path = f"/ws/c/fan-out-{LARGE[0]}/overview/"
    ticker = installation.background(place, "ticks", f"fan-out-{LARGE[0]}", *map(str, LARGE), str(PERIOD))
    with servers.running(ticker), installation.web(place) as web, bare(place.folder, b"x") as peer:
        port = urlsplit(web.url).port or 0
        bare_port: int = peer.port  # type: ignore[attr-defined]

        def ours() -> tuple[float, float]:
            return storm(web.server, port, path, cookies, lambda each: each.states > 0)

        def theirs() -> tuple[float, float]:
            return storm(peer, bare_port, "/", cookies, lambda each: each.opened.done())

        ours(), theirs()
        pairs = [(ours(), theirs()) for _ in range(measure.ROUNDS)]
    us, them = [us for us, _ in pairs], [them for _, them in pairs]
    seconds = measure.spread([seconds for seconds, _ in us])
    cpu, bare_cpu = (measure.spread([cpu for _, cpu in side]).shown("ms", 1e3) for side in (us, them))
    return Outcome(
        f"live: {SOCKETS:,} browsers come back at once",
        seconds.shown("s"),
        measure.spread([seconds for seconds, _ in them]).shown("s"),
        seconds.median,
        3,
        "s",
        how=f"Time until {SOCKETS} sockets of {len(cookies)} sessions that connect in the same moment all have the whole state of "
        f"{LARGE[0]:,} nodes x 8; CPU of the web process for each: {cpu}. Peer: the bare uvicorn of the lines above, until all "
        f"handshakes are over; CPU for each: {bare_cpu}.",
    )


def storm(
    server: servers.Server, port: int, path: str, cookies: list[str], served: Callable[[Member], bool]
) -> tuple[float, float]:
    """Seconds until all are served, and CPU seconds of the server for each of them."""
    with measure.spent(installation.pid(server)) as used:
        seconds = asyncio.run(rush(port, path, cookies, SOCKETS, served))
    return seconds, used.seconds / SOCKETS


def run() -> list[Outcome]:
    settings = {"NUMAWEB_LIVE_TICK": str(PERIOD), "NUMAWEB_LIVE_PER_USER": str(SOCKETS)}
    with installation.installed(**settings) as place:
        cookies = installation.signed_in(place, PEOPLE)
        crowd_of_many = [*cookies, *installation.signed_in(place, SOCKETS // 2, "operator")]
        found = tick_bytes(place, cookies)
        fans = [fan_out(place, size, cookies) for size in (SMALL, LARGE)]
        return [*found, *fans, came_back(place, crowd_of_many)]
