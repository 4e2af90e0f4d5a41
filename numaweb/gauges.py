"""What /metrics tells of the whole installation, read at each scrape: exporters, watches, rollouts, queues.

Sums over all clusters without a name of any: whoever may read /metrics need not be signed in. A part that does not answer
in time is left out, and `numaweb_gauges_up` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError
from django.db.models import Count, Max, Min, Model, TextChoices
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from monitoring import models as seen
from numaweb.bounded import Asker
from policies import models as wanted

log = structlog.get_logger(__name__)

SECONDS = 2.0
"""For all parts together; Prometheus waits ten."""
QUEUES = ("collect", "change", "default")


def by_state(
    name: str, text: str, model: type[Model], states: type[TextChoices], **only: object
) -> GaugeMetricFamily:
    """How many rows are in each state; a state that none is in has 0."""
    rows = model._default_manager.filter(**only).order_by().values_list("state").annotate(Count("pk"))
    found = dict(rows)
    family = GaugeMetricFamily(name, text, labels=["state"])
    for state in states.values:
        family.add_metric([state], found.get(state, 0))
    return family


def moments(name: str, text: str, told: Mapping[str, datetime | None]) -> Iterator[Metric]:
    """Seconds since 1970; what never was is left out."""
    family = GaugeMetricFamily(name, text, labels=["which"])
    for which, moment in told.items():
        if moment is not None:
            family.add_metric([which], moment.timestamp())
    yield family


def exporters() -> Iterator[Metric]:
    asked = {"enabled": True, "cluster__enabled": True}
    yield by_state(
        "numaweb_exporters", "Exporters that are asked.", seen.Endpoint, seen.Endpoint.State, **asked
    )
    ends = seen.Endpoint.objects.filter(**asked).aggregate(newest=Max("last_ok"), oldest=Min("last_ok"))
    yield from moments(
        "numaweb_exporter_answer_timestamp_seconds",
        "When exporters answered last: of all the one that did last, and the one that did first.",
        ends,
    )


def watcher() -> Iterator[Metric]:
    used = {"enabled": True, "cluster__enabled": True}
    yield by_state(
        "numaweb_connections", "Connections to API servers.", seen.Connection, seen.Connection.State, **used
    )
    yield by_state(
        "numaweb_watches",
        "Watches of one kind of objects in one cluster.",
        seen.WatchHealth,
        seen.WatchHealth.State,
        connection__enabled=True,
        connection__cluster__enabled=True,
    )
    ends = seen.Connection.objects.filter(**used).aggregate(newest=Max("last_ok"), oldest=Min("last_ok"))
    yield from moments(
        "numaweb_connection_answer_timestamp_seconds",
        "When API servers answered last: of all the one that did last, and the one that did first.",
        ends,
    )


def changes() -> Iterator[Metric]:
    yield by_state("numaweb_rollouts", "Rollouts.", wanted.Rollout, wanted.Rollout.State)
    yield by_state("numaweb_cleanups", "Clean-ups of failed pods.", wanted.Cleanup, wanted.Cleanup.State)
    yield by_state("numaweb_notices", "Notices about rollouts.", wanted.Notice, wanted.Notice.State)


def queues() -> Iterator[Metric]:
    """Of the broker; without Redis tasks are queued within the process, and nothing is told."""
    if not settings.REDIS_URL:
        return
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=SECONDS, socket_connect_timeout=SECONDS)
    try:
        pipeline = client.pipeline(transaction=False)
        for queue in QUEUES:
            pipeline.llen(queue)
        pipeline.hlen("unacked")
        *lengths, taken = pipeline.execute()
    finally:
        client.close()
    family = GaugeMetricFamily("numaweb_queue_length", "Tasks that wait for a worker.", labels=["queue"])
    for queue, length in zip(QUEUES, lengths, strict=True):
        family.add_metric([queue], length)
    yield family
    yield GaugeMetricFamily("numaweb_queue_unacknowledged", "Tasks that a worker holds.", value=taken)


PARTS = {"exporters": exporters, "watcher": watcher, "changes": changes, "queues": queues}


def told(name: str) -> list[Metric] | None:
    """What a part tells; None = it could not be asked."""
    try:
        return list(PARTS[name]())
    except (DatabaseError, redis.RedisError, OSError) as error:
        log.warning("metrics", part=name, error=str(error))
        return None


class Gauges(Collector):
    def __init__(self) -> None:
        self._asker: Asker[list[Metric] | None] = Asker()

    def collect(self) -> Iterator[Metric]:
        answers = self._asker.ask({name: partial(told, name) for name in PARTS}, SECONDS)
        up = GaugeMetricFamily(
            "numaweb_gauges_up", "Whether a part could be asked for its numbers.", labels=["part"]
        )
        for name, families in answers.items():
            up.add_metric([name], families is not None)
            yield from families or ()
        yield up

    def describe(self) -> Iterable[Metric]:
        """Nothing is read at start, when there may be no database yet."""
        return []
