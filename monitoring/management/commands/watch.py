"""`manage.py watch`: keeps what the API servers of all connected clusters say true, until it is told to end."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from monitoring.services import watching


class Command(BaseCommand):
    help = "Watches the API servers of all connected clusters. Of several at once one works for each cluster."

    def handle(self, *_: Any, **__: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        watching.work(stop)
