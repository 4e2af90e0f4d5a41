"""`manage.py watch`: keeps what the API servers of all connected clusters say true, until it is told to end."""

import signal
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from monitoring.services import watching


class Command(BaseCommand):
    help = "Watches the API servers of all connected clusters. Of several at once one works for each cluster."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--alive",
            type=Path,
            metavar="FILE",
            default=settings.NUMAWEB_ALIVE_FILE or None,
            help="touched every few seconds while it works, for a probe; default: NUMAWEB_ALIVE_FILE",
        )

    def handle(self, *_: Any, alive: Path | None, **__: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        watching.work(stop, alive.touch) if alive else watching.work(stop)
