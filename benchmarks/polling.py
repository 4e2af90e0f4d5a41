"""The rounds of a collector alone, without database, Redis and pages: `python -m benchmarks.polling ANNOUNCE SECONDS`
within an installation's environment; prints ages of the newest answers and the CPU that it took as JSON.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

import django
import numpy as np
import uvloop

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
django.setup()

from monitoring.services.collection import shift  # noqa: E402
from monitoring.services.collection.roster import Roster  # noqa: E402
from monitoring.services.collection.writing import Target  # noqa: E402

KNOWN_SECONDS = 240


async def poll(urls: list[str], seconds: float) -> dict[str, float]:
    """Ages four times a second, once every endpoint was heard."""
    roster = Roster({}, asyncio.get_running_loop())
    roster.update([Target(number, 1, url, "") for number, url in enumerate(urls)])
    sweeping = asyncio.ensure_future(sweep(roster))
    started = time.monotonic()
    while not (heard := received(roster)).all():
        if time.monotonic() - started > KNOWN_SECONDS:
            sys.exit(f"{np.count_nonzero(heard)} of {len(urls)} were heard in {KNOWN_SECONDS} s")
        await asyncio.sleep(0.5)
    waited = time.monotonic() - started
    await asyncio.sleep(3)
    found, began, spent = [], time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        await asyncio.sleep(0.25)
        found.append(time.time() - received(roster))
    cores = (time.process_time() - spent) / (time.monotonic() - began)
    sweeping.cancel()
    every = np.concatenate(found)
    failing = sum(poller.failing for poller in roster.pollers.values())
    return {
        "median": float(np.median(every)),
        "p95": float(np.percentile(every, 95)),
        "most": float(every.max()),
        "cores": cores,
        "waited": waited,
        "failing": failing,
        "whole": time.time() - min(poller.known.whole_received for poller in roster.pollers.values()),
    }


async def sweep(roster: Roster) -> None:
    """As a shift does it."""
    while True:
        await asyncio.sleep(0.1)
        roster.lanes.sweep(roster.loop.time())


def received(roster: Roster) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array([poller.known.received for poller in roster.pollers.values()])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.polling")
    parser.add_argument("announce", type=Path)
    parser.add_argument("seconds", type=float)
    options = parser.parse_args()
    shift.prepare()
    told = json.loads(options.announce.read_text())["exporters"]
    found = uvloop.run(poll([each["url"] for each in told], options.seconds))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
