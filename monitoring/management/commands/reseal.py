"""`manage.py reseal`: encrypts the stored tokens with the present secret key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from monitoring import services


class Command(BaseCommand):
    help = (
        "Encrypts the bearer tokens of exporters and of Prometheus with the present secret key. After it, the earlier "
        "keys in NUMAWEB_SECRET_KEY_FALLBACKS are needed no more. Safe to run again."
    )

    def handle(self, *_: Any, **_options: Any) -> None:
        found = services.reseal()
        self.stdout.write(f"{found.done} tokens are encrypted with the present key")
        if found.unreadable:
            raise CommandError(
                f"No key opens the token of: {', '.join(found.unreadable)}. Enter it again in the administration, "
                "or add the key that it was encrypted with to NUMAWEB_SECRET_KEY_FALLBACKS."
            )
