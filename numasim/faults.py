"""Ways in which a simulated endpoint misbehaves, for tests of collectors."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import AsyncIterator, Callable, Mapping
from functools import lru_cache
from typing import Literal, get_args

Fault = Literal[
    "black-hole",
    "slow",
    "slow-loris",
    "huge-body",
    "endless-chunked",
    "gzip-bomb",
    "truncated",
    "error",
    "redirect",
    "invalid-json",
    "invalid-utf8",
    "wrong-version",
    "bad-section",
    "bad-use",
    "duplicate-identity",
    "clock-skew",
    "counter-reset",
]
"""black-hole: takes the connection and says nothing. slow: answers after `SLOW` seconds. slow-loris: a byte at a time.
huge-body: 100 MB with their length. endless-chunked: never stops. gzip-bomb: 1 GiB of blanks in a megabyte. truncated: ends
before the announced length. error: status 500. redirect: sends the caller to a link-local address. invalid-json,
invalid-utf8: rubbish. wrong-version: of the wire format. bad-section: a distance matrix of the wrong size. bad-use: CPU time below 0 of a container.
duplicate-identity: says that it is the first node. clock-skew: its clock is a year off. counter-reset: its CPU counters
start anew every few answers."""
FAULTS: tuple[Fault, ...] = get_args(Fault)
SLOW = 5.0
HUGE = 100_000_000
SKEW = 365 * 86400.0
RESET_EVERY = 4
"""Seconds between two starts of the counters."""


class FaultError(ValueError):
    """A wish for faults that cannot be read."""


def parse(text: str) -> dict[Fault, float]:
    """Reads `black-hole:0.05,slow:0.1`: shares of all endpoints.

    Raises:
        FaultError: an unknown fault, no number, or shares above 1 in sum.
    """
    found: dict[Fault, float] = {}
    for part in filter(None, text.split(",")):
        name, _, share = part.partition(":")
        if name not in FAULTS:
            raise FaultError(f"no fault is named {name!r}; there are: {', '.join(FAULTS)}")
        found[name] = _share(part, share)
    if sum(found.values()) > 1:
        raise FaultError(f"the shares of {text!r} add up to more than 1")
    return found


def _share(part: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise FaultError(f"{part!r} needs a share between 0 and 1, as in black-hole:0.05")
    return value


def assign(count: int, shares: Mapping[Fault, float], seed: int) -> list[Fault | None]:
    """A fault, or none, for each endpoint. The first endpoint is always sound."""
    order = list(range(1, count))
    random.Random(seed).shuffle(order)
    found: list[Fault | None] = [None] * count
    for fault, share in shares.items():
        for _ in range(min(len(order), round(share * count))):
            found[order.pop()] = fault
    return found


def spoil(fault: Fault | None, body: bytes) -> bytes:
    """An answer's body, spoiled where the fault is in the text."""
    change = _SPOILERS.get(fault)
    return change(body) if change else body


_SPOILERS: dict[Fault | None, Callable[[bytes], bytes]] = {
    "invalid-json": lambda body: body[: len(body) // 2],
    "invalid-utf8": lambda body: body.replace(b'"node":"', b'"node":"\xff\xfe', 1),
    "wrong-version": lambda body: body.replace(b'"version":1', b'"version":99', 1),
    "bad-section": lambda body: body.replace(b'"distances":[10', b'"distances":[10,10', 1),
    "bad-use": lambda body: body.replace(b'"cpu_time":[', b'"cpu_time":[-1,', 1),
}


async def stream(fault: Fault, body: bytes) -> AsyncIterator[bytes]:
    """The raw bytes of an answer whose fault is in how it is sent. Ends = the connection is closed."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    if fault == "black-hole":
        await asyncio.Event().wait()
    elif fault == "slow-loris":
        yield head + b"Content-Length: %d\r\n\r\n" % len(body)
        for i in range(len(body)):
            yield body[i : i + 1]
            await asyncio.sleep(0.5)
    elif fault == "huge-body":
        yield head + b"Content-Length: %d\r\n\r\n" % HUGE
        for _ in range(HUGE // 100_000):
            yield b" " * 100_000
    elif fault == "endless-chunked":
        yield head + b"Transfer-Encoding: chunked\r\n\r\n"
        while True:
            yield b"2710\r\n" + b" " * 10_000 + b"\r\n"
    elif fault == "gzip-bomb":
        bomb = _bomb()
        yield head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb
    elif fault == "truncated":
        yield head + b"Content-Length: %d\r\n\r\n" % len(body) + body[: len(body) // 2]


STREAMED: frozenset[Fault] = frozenset(
    ("black-hole", "slow-loris", "huge-body", "endless-chunked", "gzip-bomb", "truncated")
)


@lru_cache
def _bomb() -> bytes:
    """1 GiB of blanks, packed by packing the same part over and over: members of gzip may follow one another."""
    return gzip.compress(b" " * (16 << 20), 9) * 64
