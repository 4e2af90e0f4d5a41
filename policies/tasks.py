"""Changes in the background, in the queue `change`. Each task is one call of a service; arguments are plain ids.

They are acknowledged before they run, as those of `monitoring.tasks`: a clean-up that was lost is offered again by the schedule.
"""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from policies.services import cleanup


@shared_task(name="policies.tasks.clean_up", ignore_result=True, acks_late=False)
def clean_up(number: int) -> None:
    """One batch of a clean-up, then the next."""
    if cleanup.work(number):
        offer(number)


@shared_task(name="policies.tasks.resume_cleanups", ignore_result=True, acks_late=False)
def resume_cleanups() -> None:
    """Offers clean-ups at which nobody works: after a crash, or while an API server did not answer."""
    for number in cleanup.unfinished():
        offer(number)
    cleanup.forget(timezone.now())


def offer(number: int) -> None:
    clean_up.apply_async(args=(number,), queue="change", expires=300, retry=False)
