"""Notices about rollouts: written down with the event, sent by the queue, tried again for some hours.

`tell` belongs into the transaction that writes the rollout's state: a notice is there exactly if the event is.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count
from django.utils import translation

from monitoring.services import leases
from policies import selectors
from policies.models import Notice, Rollout, RolloutNode
from policies.services import sending
from policies.services.sending import Message, SendError
from policies.words import rollout as words

State = Notice.State
FIRST_PAUSE = 15.0
"""Seconds before the second attempt; each further pause is twice as long."""
MOST_TRIES = 10
"""With these pauses a receiver may be away for two hours."""
PATIENCE = 60.0
"""Seconds after which a worker that does not move counts as dead; longer than one notice may take."""
LEASE = "notices"


def tell(rollout: Rollout, event: str, now: datetime) -> None:
    """A notice for each channel that is set up. `event`: the state that the rollout has come to (`words.EVENTS`)."""
    for channel, wanted in (
        ("mail", settings.NUMAWEB_NOTICE_MAIL),
        ("webhook", settings.NUMAWEB_NOTICE_WEBHOOK),
    ):
        if wanted:
            fresh = {"state": State.WAITING, "made": now, "tries": 0, "sent": None, "error": ""}
            Notice.objects.update_or_create(rollout=rollout, channel=channel, event=event, defaults=fresh)


def send_due(now: datetime) -> None:
    """Sends what waits and whose pause is over. Two at once: the second does nothing."""
    due = [each.pk for each in Notice.objects.filter(state=State.WAITING).order_by("pk") if is_due(each, now)]
    if not due:
        return
    tenure = leases.take(LEASE, PATIENCE)
    if tenure is None:
        return
    try:
        for number in due:
            _send(number, now)
    finally:
        leases.give_up(tenure)


def is_due(notice: Notice, now: datetime) -> bool:
    return now >= notice.made + timedelta(seconds=FIRST_PAUSE * (2**notice.tries - 1))


def _send(number: int, now: datetime) -> None:
    """The attempt is counted before it is made: whoever dies in it does not try for ever."""
    with transaction.atomic():
        notice = Notice.objects.select_for_update(of=("self",)).get(pk=number)
        if notice.state != State.WAITING:
            return
        notice.tries += 1
        notice.save(update_fields=["tries"])
    try:
        with translation.override(settings.LANGUAGE_CODE):
            sending.SENDERS[notice.channel](message(notice))
    except SendError as error:
        last = State.FAILED if notice.tries >= MOST_TRIES else State.WAITING
        _settle(notice, state=last, error=str(error)[:500])
    else:
        _settle(notice, state=State.SENT, sent=now, error="")


def _settle(notice: Notice, **values: object) -> None:
    """Unless the same event came anew while this one was on its way."""
    Notice.objects.filter(pk=notice.pk, made=notice.made).update(**values)


def message(notice: Notice) -> Message:
    """What a notice says now."""
    rollout = Rollout.objects.select_related("cluster").get(pk=notice.rollout_id)
    counts = dict(rollout.nodes.order_by().values_list("outcome").annotate(Count("pk")))
    behind = selectors.behind(rollout) if rollout.cause else []
    path = f"/c/{rollout.cluster.slug}/rollouts/{rollout.pk}/"
    return Message(
        id=f"{notice.pk}-{int(notice.made.timestamp())}",
        event=notice.event,
        at=notice.made,
        cluster=rollout.cluster.slug,
        rollout=rollout.pk,
        level=rollout.level,
        target=rollout.target or None,
        state=rollout.state,
        nodes={str(outcome): counts.get(outcome, 0) for outcome in RolloutNode.Outcome.values},
        left=counts.get("", 0),
        causes=behind,
        text=words.causes(behind) or None,
        url=settings.NUMAWEB_PUBLIC_URL + path if settings.NUMAWEB_PUBLIC_URL else None,
    )
