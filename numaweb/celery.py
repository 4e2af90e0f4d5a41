"""The Celery application: `celery -A numaweb worker` and `celery -A numaweb beat`.

Imported by every process that enqueues or runs tasks. The settings are the ones with which no task is lost when a
worker or its child is killed: acknowledged late, given back on loss, one at a time, redelivered within seconds.
"""

import os
from typing import Any

from celery import Celery
from django.conf import settings
from kombu import Queue

from monitoring import schedule
from policies import schedule as changes

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")

VISIBILITY_SECONDS = 900  # a message that nobody acknowledged for so long is given to another worker
TIME_LIMIT_SECONDS = 840  # below the former, or a long task would run twice at once
REDIS_TRANSPORT = {
    "visibility_timeout": VISIBILITY_SECONDS,
    # Without these two a lost message returns only after about a hundred seconds.
    "unacked_restore_interval": 2,
    "unacked_restore_throttle": 1,
    "socket_timeout": 10,
    "socket_connect_timeout": 3,
    "health_check_interval": 10,
}
MEMORY_TRANSPORT = {"polling_interval": 0.1}


def beat_entry(task: str, seconds: float, queue: str) -> dict[str, Any]:
    """One line of the schedule; it expires before the next one comes, so a slow worker never piles up old ones."""
    expires = max(1, int(seconds * 0.9))
    key = "expire_seconds" if settings.NUMAWEB_DISTRIBUTED else "expires"  # the database scheduler's own word
    return {"task": task, "schedule": seconds, "options": {"queue": queue, key: expires}}


app = Celery("numaweb")
app.conf.update(
    broker_url=settings.REDIS_URL or "memory://localhost",
    broker_transport_options=REDIS_TRANSPORT if settings.REDIS_URL else MEMORY_TRANSPORT,
    broker_connection_retry_on_startup=True,
    result_backend=None,
    task_ignore_result=True,
    task_serializer="json",
    result_serializer="json",
    accept_content=["json"],
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    # A shift of collection goes on while Redis is away: what runs twice after that is refused by its lease.
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_soft_shutdown_timeout=10,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    task_time_limit=TIME_LIMIT_SECONDS,
    task_soft_time_limit=TIME_LIMIT_SECONDS - 30,
    task_default_queue="default",
    task_queues=[Queue("collect"), Queue("change"), Queue("default")],
    task_create_missing_queues=False,
    timezone="UTC",
    enable_utc=True,
    # In one process the schedule lives in memory; spread over machines it is in the database and can be edited there.
    beat_scheduler=("numaweb.alive:Scheduler" if settings.NUMAWEB_DISTRIBUTED else "celery.beat:Scheduler"),
    beat_max_loop_interval=5,
    beat_schedule={
        name: beat_entry(task, seconds, queue)
        for name, task, seconds, queue in (*schedule.SCHEDULE, *changes.SCHEDULE)
    },
)
app.steps["worker"].add("numaweb.ending:EndShifts")
app.steps["consumer"].add("numaweb.alive:Pulse")
app.autodiscover_tasks()
