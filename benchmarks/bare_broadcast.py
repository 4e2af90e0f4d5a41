"""The peer of the live bench: the least that uvicorn can do to send the same bytes to every socket.

Started as `uvicorn benchmarks.bare_broadcast:application`; BENCH_MESSAGE_FILE names the message, BENCH_PERIOD the seconds
between two. No sign-in, no mailbox, no state: a set of senders.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

MESSAGE = {"type": "websocket.send", "bytes": Path(os.environ["BENCH_MESSAGE_FILE"]).read_bytes()}
PERIOD = float(os.environ["BENCH_PERIOD"])
senders: set[Send] = set()


async def broadcast() -> None:
    while True:
        await asyncio.sleep(PERIOD)
        await asyncio.gather(*(send(MESSAGE) for send in senders), return_exceptions=True)


async def lifespan(receive: Receive, send: Send) -> None:
    await receive()
    task = asyncio.create_task(broadcast())
    await send({"type": "lifespan.startup.complete"})
    await receive()
    task.cancel()
    await send({"type": "lifespan.shutdown.complete"})


async def answer(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok\n"})


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
    elif scope["type"] == "http":
        await answer(send)
    else:
        await receive()
        await send({"type": "websocket.accept"})
        senders.add(send)
        while (await receive())["type"] != "websocket.disconnect":
            pass
        senders.discard(send)
