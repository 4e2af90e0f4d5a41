"""How a worker and beat show a probe that they work: they touch NUMAWEB_ALIVE_FILE every few seconds.

Loaded by Celery, by the names that celery.py gives: Django's apps have to be there first. The watcher does the same.
"""

import threading
from pathlib import Path
from typing import Any

from celery import bootsteps
from django.conf import settings
from django_celery_beat.schedulers import DatabaseScheduler

EVERY_SECONDS = 5.0


def touch() -> None:
    if settings.NUMAWEB_ALIVE_FILE:
        Path(settings.NUMAWEB_ALIVE_FILE).touch()


class Scheduler(DatabaseScheduler):
    """Beat: each time that it looks for what is due (`beat_max_loop_interval`)."""

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        touch()
        return super().tick(*args, **kwargs)


class Pulse(bootsteps.StartStopStep):
    """A worker: in its main loop, so that one that hangs is found out.

    Without a broker there is no main loop, only tries to connect. A worker that was ended for that would take its shifts of
    collection with it, which go on meanwhile: a thread says that it lives until there is a connection.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **options: Any) -> None:
        self._entry: Any = None
        self._consumer, self._ended = consumer, threading.Event()
        if settings.NUMAWEB_ALIVE_FILE:
            threading.Thread(target=self._wait_for_broker, name="alive", daemon=True).start()
        super().__init__(consumer, **options)

    def include_if(self, _consumer: Any) -> bool:
        return bool(settings.NUMAWEB_ALIVE_FILE)

    def start(self, consumer: Any) -> None:
        touch()
        self._entry = consumer.timer.call_repeatedly(EVERY_SECONDS, touch)

    def stop(self, _consumer: Any) -> None:
        if self._entry is not None:
            self._entry.cancel()
            self._entry = None

    def shutdown(self, consumer: Any) -> None:
        self.stop(consumer)
        self._ended.set()

    def _wait_for_broker(self) -> None:
        while not self._ended.wait(EVERY_SECONDS):
            if getattr(self._consumer, "connection", None) is None:
                touch()
