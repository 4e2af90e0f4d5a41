"""`manage.py bootstrap`: groups and the first administrator; safe to run again, and from two processes at once."""

from typing import Any

from django.core.management.base import BaseCommand

from numaweb import bootstrapping


class Command(BaseCommand):
    help = (
        "Creates the roles and, if there is none, the first administrator; prints a generated password once."
    )

    def handle(self, *_: Any, **__: Any) -> None:
        made = bootstrapping.bootstrap()
        if made is None:
            self.stdout.write("There is an administrator already; roles are up to date.")
        elif made.password is None:
            self.stdout.write(f"Made the administrator {made.username} with the given password.")
        else:
            self.stdout.write(
                f"Made the administrator {made.username}; password (shown once): {made.password}"
            )
