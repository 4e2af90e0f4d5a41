"""Work in the background. Each task is one call of a service; arguments are plain ids.

They are acknowledged before they run: one that is lost is offered again by the schedule within seconds, and a worker
that holds no unacknowledged message survives the loss of its broker (kombu 5.7 ends it when it wants to restore one).
"""

from __future__ import annotations

import structlog
from celery import shared_task
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError

from monitoring import services

log = structlog.get_logger(__name__)

SHIFTS_WITHOUT_BROKER = 10
"""After so many the task ends before its time limit does it, and beat offers the next one."""


@shared_task(name="monitoring.tasks.start_shifts", ignore_result=True, acks_late=False)
def start_shifts() -> None:
    """Offers the shards that nobody seems to collect to whoever is free."""
    for shard in range(settings.NUMAWEB_COLLECT_SHARDS):
        if services.shift_wanted(shard):
            offer(shard)


@shared_task(name="monitoring.tasks.collect", ignore_result=True, acks_late=False)
def collect(shard: int) -> str:
    """One shift over one shard. When it was worked to its end, the next one is offered at once.

    While the broker is away nobody could take an offer, so this worker goes on.
    """
    for _ in range(SHIFTS_WITHOUT_BROKER):
        result = services.collect(shard)
        if result != "worked" or offered(shard):
            return result
    return "worked"


def offer(shard: int) -> None:
    collect.apply_async(args=(shard,), queue="collect", expires=30, retry=False)


def offered(shard: int) -> bool:
    """Whether the broker took the offer."""
    try:
        offer(shard)
    except OperationalError as error:
        log.warning("the broker does not take the next shift", shard=shard, error=str(error))
        return False
    return True


@shared_task(name="monitoring.tasks.compact_history", ignore_result=True, acks_late=False)
def compact_history() -> None:
    """Makes history compact."""
    services.compact_history(timezone.now())


@shared_task(name="monitoring.tasks.forget", ignore_result=True, acks_late=False)
def forget() -> None:
    """Removes what is too old."""
    services.forget(timezone.now())
