"""`manage.py bootstrap`: groups, the first administrator, indexes of texts; safe to run again, and from two processes at once."""

from typing import Any

from django.core.management.base import BaseCommand

from monitoring import services
from numaweb import bootstrapping


class Command(BaseCommand):
    help = "Creates the roles, indexes for filters by text and, if there is none, the first administrator; prints a generated password once."

    def handle(self, *_: Any, **__: Any) -> None:
        if cause := services.index_texts():
            self.stderr.write(
                f"Filters by text read whole tables, because indexes for them cannot be made: {cause}. "
                "Have an administrator of PostgreSQL run CREATE EXTENSION pg_trgm in this database, then run bootstrap again."
            )
        made = bootstrapping.bootstrap()
        if made is None:
            self.stdout.write("There is an administrator already; roles are up to date.")
        elif made.password is None:
            self.stdout.write(f"Made the administrator {made.username} with the given password.")
        else:
            self.stdout.write(
                f"Made the administrator {made.username}; password (shown once): {made.password}"
            )
