"""Fetching and decoding alone, as a collector does it: `python -m benchmarks.asking ANNOUNCE PERIOD`, until it is stopped.

No database, no Redis, no pages: `monitoring.sources` asks every endpoint once per period, over kept connections, for
what changed, and keeps what it told.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path

import django
import uvloop

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
django.setup()  # a token's field is a model's

from monitoring.sources.exporter import Asker, Limits  # noqa: E402
from monitoring.sources.failures import SourceError  # noqa: E402
from monitoring.sources.http1 import Answer  # noqa: E402
from monitoring.sources.snapshot import Known  # noqa: E402


class Endpoint:
    """One endpoint in its own rhythm."""

    def __init__(self, url: str, limits: Limits, period: float, loop: asyncio.AbstractEventLoop) -> None:
        self.asker = Asker(url, "", limits, loop)
        self.known = Known()
        self.period, self.loop = period, loop
        self.due = loop.time() + random.uniform(0, period)
        loop.call_at(self.due, self.ask)

    def ask(self) -> None:
        self.asker.ask(self.known.have, self.done)

    def done(self, answer: Answer | None, error: SourceError | None) -> None:
        if answer is None or error is not None:
            sys.exit(f"an endpoint failed: {error}")
        self.known.take(answer.body, time.time())
        self.due += self.period
        self.loop.call_at(self.due, self.ask)


async def ask_all(urls: list[str], period: float) -> None:
    loop = asyncio.get_running_loop()
    limits = Limits(5.0, 2 << 20, 64 << 20)
    endpoints = [Endpoint(url, limits, period, loop) for url in urls]
    print(f"ready: {len(endpoints)}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.asking")
    parser.add_argument("announce", type=Path)
    parser.add_argument("period", type=float)
    options = parser.parse_args()
    told = json.loads(options.announce.read_text())["exporters"]
    uvloop.run(ask_all([each["url"] for each in told], options.period))


if __name__ == "__main__":
    main()
