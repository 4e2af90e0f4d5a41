"""`manage.py watch`: keeps what the API servers of all connected clusters say true, until it is told to end."""

import asyncio
import signal
from typing import Any

import uvloop
from django.conf import settings
from django.core.management.base import BaseCommand

from monitoring.services import watching


class Command(BaseCommand):
    help = "Watches the API servers of all connected clusters. Of several at once one works for each cluster."

    def handle(self, *_: Any, **__: Any) -> None:
        uvloop.run(_watch())


async def _watch() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    patience = float(settings.NUMAWEB_WATCH_LEASE)
    await watching.run(watching.Waits(beat=patience / 4, patience=patience), stop)
