"""`manage.py setup`: tables and first rows of an installation, by one process at a time. Docker compose and the chart run it before the others work."""

import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from numaweb import probes

LOCK = 0x6E756D61
"""Of PostgreSQL's advisory locks the one that whoever changes our tables holds ("numa")."""
EVERY_SECONDS = 1.0


class Command(BaseCommand):
    help = "Waits for the database, applies migrations and runs bootstrap; a second one that is started meanwhile waits for the first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--patience", type=float, default=300, metavar="SECONDS", help="how long the database may be away"
        )
        parser.add_argument(
            "--only-wait",
            action="store_true",
            help="change nothing, and return when database, tables and Redis are there",
        )

    def handle(self, *_: Any, patience: float, only_wait: bool, **__: Any) -> None:
        if only_wait:
            await_parts(("database", "migrations", "redis"), patience)
            return
        await_parts(("database",), patience)
        with alone():
            call_command("migrate", verbosity=1, interactive=False, stdout=self.stdout)
        call_command("bootstrap", stdout=self.stdout, stderr=self.stderr)


def await_parts(names: tuple[str, ...], patience: float) -> None:
    """Of those that this installation has. Raises CommandError with the state of each part that is still not there."""
    deadline = time.monotonic() + patience
    while True:
        states = {
            name: probes.part_state(name, check) for name, check in probes.there().items() if name in names
        }
        lacking = {name: state for name, state in states.items() if state != "ok"}
        if not lacking:
            return
        if time.monotonic() >= deadline:
            raise CommandError("; ".join(f"{name}: {state}" for name, state in lacking.items()))
        time.sleep(EVERY_SECONDS)


@contextmanager
def alone() -> Iterator[None]:
    """PostgreSQL lets the lock go with our connection, however this process ends. SQLite has one process anyway."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
