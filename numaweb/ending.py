"""A worker that is told to end does not wait for its shifts of collection: they end within a round and give up their lease.

Loaded by Celery, by the name that celery.py gives: it imports rooms, which need Django's apps to be there first.
"""

import os
import signal
import threading
from typing import Any

from celery import bootsteps

from monitoring import services

# Celery itself uses SIGUSR1 in its child processes, and leaves this one alone.
END_SHIFTS = signal.SIGUSR2


class EndShifts(bootsteps.StartStopStep):
    """Stopped before the pool, which waits for the tasks that run."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        # Before the pool starts its processes, which inherit it.
        if threading.current_thread() is threading.main_thread():
            signal.signal(END_SHIFTS, end_shifts)
        super().__init__(worker, **options)

    def start(self, _worker: Any) -> None:
        """Nothing: it only acts at the end."""

    def stop(self, worker: Any) -> None:
        services.end_shifts()  # of a pool of threads
        for process in worker.pool.info.get("processes", []):
            os.kill(process, END_SHIFTS)


def end_shifts(_signal: int, _frame: object) -> None:
    services.end_shifts()
