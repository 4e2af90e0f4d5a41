"""Changes in the background, in the queue `change`. Each task is one call of a service; arguments are plain ids.

They are acknowledged before they run, as those of `monitoring.tasks`: a clean-up or rollout that was lost is offered again by the schedule.
"""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from policies.services import cleanup, notices
from policies.services.rollout import planning, work


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


@shared_task(name="policies.tasks.send_notices", ignore_result=True, acks_late=False)
def send_notices() -> None:
    """Tells people outside what became of rollouts."""
    notices.send_due(timezone.now())


@shared_task(name="policies.tasks.plan_rollout", ignore_result=True, acks_late=False)
def plan_rollout(number: int) -> None:
    """Makes the plan of a rollout."""
    planning.plan_work(number)


@shared_task(name="policies.tasks.roll_out", ignore_result=True, acks_late=False)
def roll_out(number: int) -> None:
    """One round of a rollout, then the next."""
    seconds = work.work(number)
    if seconds is not None:
        offer_rollout(number, seconds)


@shared_task(name="policies.tasks.resume_rollouts", ignore_result=True, acks_late=False)
def resume_rollouts() -> None:
    """Offers plans and rollouts at which nobody works: after a crash, or when a message was lost."""
    for number in planning.unfinished():
        offer_plan(number)
    for number in work.unfinished(timezone.now()):
        offer_rollout(number)


def offer_plan(number: int) -> None:
    plan_rollout.apply_async(args=(number,), queue="change", expires=300, retry=False)


def offer_rollout(number: int, seconds: float = 0.0) -> None:
    roll_out.apply_async(
        args=(number,), queue="change", countdown=seconds, expires=300 + seconds, retry=False
    )
