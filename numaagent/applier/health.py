"""Whether the kubelet is well. A doomed one says `ok` first and dies seconds later, so it has to stay the same process for a while.

Seen on kubelet 1.37: with a state file of another policy it answers `ok` after 3 s and exits after 4 to 10, again and again.
"""

from __future__ import annotations

import asyncio
import http.client
import time

import msgspec

from numaagent.applier.refusal import FailedError
from numaagent.applier.units import Systemd, Unit
from numacore.change.order import Order

ADDRESS = "127.0.0.1"
TIMEOUT = 5.0
"""Seconds for one answer."""
DEATHS = 3
"""After so many it is given up before the time is over."""


class Well(msgspec.Struct, frozen=True):
    """A kubelet that lasted."""

    main_pid: int


async def says_ok(port: int) -> str:
    """What is wrong with the kubelet's own word; "" = it says `ok`."""
    return await asyncio.to_thread(_ask, port)


async def lasting(systemd: Systemd, order: Order, *, every: float) -> Well:
    """Waits until the same process has been well for `steady_for` seconds. Raises FailedError when it cannot be any more.

    A process that dies before it lasted may be followed by one that lasts, as long as the time for that is not over.
    """
    started = time.monotonic()
    first = await systemd.unit(order.unit)
    since: float | None = None
    last, words = first, ""
    while True:
        now = time.monotonic()
        unit = await systemd.unit(order.unit)
        if (unit.main_pid, unit.restarts) != (last.main_pid, last.restarts):
            since = None
        last = unit
        words = await says_ok(order.healthz_port) if order.healthz_port else ""
        well = unit.active == "active" and unit.main_pid > 0 and not words
        if not well:
            since = None
        elif since is None:
            since = now
        elif now - since >= order.steady_for:
            return Well(unit.main_pid)
        deaths = unit.restarts - first.restarts
        if (
            deaths >= DEATHS
            or (since is None and now - started > order.healthy_within)
            or _over(order, started, now)
        ):
            raise _failed(unit, words, deaths, now - started)
        await asyncio.sleep(every)


def _over(order: Order, started: float, now: float) -> bool:
    return now - started > order.healthy_within + order.steady_for + TIMEOUT


def _failed(unit: Unit, words: str, deaths: int, took: float) -> FailedError:
    if deaths or unit.active != "active":
        return FailedError(
            "kubelet-dies",
            f"the kubelet ended {deaths} times in {took:.0f} s, the last time with status {unit.status} "
            f"(systemd: {unit.active}/{unit.sub}, {unit.result}); its words: journalctl -u kubelet",
            times=deaths,
            status=unit.status,
        )
    return FailedError(
        "kubelet-silent",
        f"the kubelet runs and is not well after {took:.0f} s: {words or 'it does not stay'}; its words: journalctl -u kubelet",
        seconds=int(took),
    )


def _ask(port: int) -> str:
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=TIMEOUT)
    try:
        connection.request("GET", "/healthz", headers={"Connection": "close"})
        answer = connection.getresponse()
        text = answer.read(200).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return f"http://{ADDRESS}:{port}/healthz: {str(error) or type(error).__name__}"
    finally:
        connection.close()
    return "" if answer.status == 200 else f"http://{ADDRESS}:{port}/healthz: {answer.status} {text}"
