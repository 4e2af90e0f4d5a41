"""Where numaweb keeps things, and whether those who work with them do: database, Redis, workers, beat."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import redis
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django_celery_beat.models import PeriodicTask

from monitoring.models import Endpoint, Lease
from numaweb import probes
from numaweb.doctor.finding import Finding

SKEW_SECONDS = 2.0
"""From which clocks differ enough for ages on pages to mislead."""
OLDEST_POSTGRES = 140000
"""That Django 5.2 works with (docs/ref/databases)."""
LATE = timedelta(minutes=2)
TRIAL = "doctor"


def database() -> Iterator[Finding]:
    try:
        probes.check_database()
    except DatabaseError as error:
        yield Finding(
            "database",
            "failed",
            _("It cannot be reached: %(cause)s") % {"cause": type(error).__name__},
            _("Look whether it runs and whether NUMAWEB_DATABASE_URL leads to it; the log has its words."),
        )
        return
    yield server()
    yield tables()
    yield writing()
    if connection.vendor == "postgresql":
        yield clock("database", database_time())


def server() -> Finding:
    if connection.vendor != "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT sqlite_version()")
            text = _("SQLite %(version)s answers.") % {"version": cursor.fetchone()[0]}
        return Finding("database", "ok", text)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int, current_setting('server_version')")
        number, version = cursor.fetchone()
    text = _("PostgreSQL %(version)s answers.") % {"version": version}
    if number < OLDEST_POSTGRES:
        return Finding(
            "database", "failed", text, _("Update it: Django 5.2 works with PostgreSQL 14 and newer.")
        )
    return Finding("database", "ok", text)


def tables() -> Finding:
    try:
        probes.check_migrations()
    except probes.NotReadyError as error:
        return Finding("database", "failed", str(error), _("Run manage.py migrate."))
    return Finding("database", "ok", _("All migrations are applied."))


def writing() -> Finding:
    """A row is written and taken back."""
    try:
        with transaction.atomic():
            Lease.objects.create(name=TRIAL)
            transaction.set_rollback(True)
    except DatabaseError as error:
        return Finding(
            "database",
            "failed",
            _("It cannot be written to: %(cause)s") % {"cause": type(error).__name__},
            _(
                "Look whether its disk is full, whether it is a read-only replica, and at the account's rights."
            ),
        )
    return Finding("database", "ok", _("It can be written to."))


def database_time() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        return float(cursor.fetchone()[0])


def clock(part: str, theirs: float) -> Finding:
    skew = theirs - time.time()
    text = _("Its clock is %(seconds).1f s ahead of this machine's.") % {"seconds": skew}
    if abs(skew) > SKEW_SECONDS:
        return Finding(part, "warning", text, _("Let both keep their time by NTP."))
    return Finding(part, "ok", text)


def broker() -> Iterator[Finding]:
    if not settings.REDIS_URL:
        text = _("None is configured: everything runs in one process.")
        yield Finding("redis", "unchecked", text)
        return
    wait = probes.REDIS_SECONDS
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=wait, socket_connect_timeout=wait)
    try:
        told = dict(client.info())
        seconds, parts = client.time()
    except redis.RedisError as error:
        yield Finding(
            "redis",
            "failed",
            _("It cannot be reached: %(cause)s") % {"cause": type(error).__name__},
            _("Look whether it runs and whether NUMAWEB_REDIS_URL leads to it; the log has its words."),
        )
        return
    finally:
        client.close()
    yield Finding("redis", "ok", _("Redis %(version)s answers.") % {"version": told["redis_version"]})
    yield clock("redis", seconds + parts / 1e6)
    policy = str(told.get("maxmemory_policy", ""))
    if told.get("maxmemory") and policy != "noeviction":
        text = _("It throws away what it likes when it is full (%(policy)s), waiting tasks included.")
        remedy = _("Set maxmemory-policy to noeviction.")
        yield Finding("redis", "warning", text % {"policy": policy}, remedy)


def work() -> Iterator[Finding]:
    """Whether somebody collects, and whether beat beats."""
    now = timezone.now()
    newest = Endpoint.objects.filter(enabled=True, cluster__enabled=True).order_by("-last_try").first()
    if newest is None:
        text = _("Nothing is to be collected: there is no exporter.")
        remedy = _("Connect a cluster, or enter an exporter's address in the administration.")
        yield Finding("work", "unchecked", text, remedy)
    elif newest.last_try is None or now - newest.last_try > LATE:
        text = _("Nobody has asked an exporter for %(minutes)s minutes or more.")
        remedy = _("Look whether workers run that take the queue “collect”, and beat; then at their logs.")
        yield Finding("work", "failed", text % {"minutes": LATE // timedelta(minutes=1)}, remedy)
    else:
        yield Finding("work", "ok", _("Exporters are being asked."))
    if settings.NUMAWEB_DISTRIBUTED:
        last = PeriodicTask.objects.filter(last_run_at__isnull=False).order_by("-last_run_at").first()
        if last is None or last.last_run_at is None or now - last.last_run_at > 2 * LATE:
            # Beat writes that down every three minutes (celery.beat, sync_every).
            yield Finding("work", "warning", _("Beat has sent nothing lately."), _("Look whether beat runs."))
        else:
            yield Finding("work", "ok", _("Beat sends what is due."))
