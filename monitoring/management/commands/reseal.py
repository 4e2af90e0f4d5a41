"""`manage.py reseal`: encrypts the stored secrets with the present secret key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from monitoring import services


class Command(BaseCommand):
    help = (
        "Encrypts every stored secret with the present secret key: bearer tokens of exporters and of Prometheus, and of "
        "each connection to Kubernetes its kubeconfig, its ServiceAccount token and its exporters' token, and the private key of "
        "orders. After it, the earlier keys in NUMAWEB_SECRET_KEY_FALLBACKS are needed no more. Safe to run again."
    )

    def handle(self, *_: Any, **_options: Any) -> None:
        found = services.reseal()
        self.stdout.write(f"{found.done} secrets are encrypted with the present key")
        if found.unreadable:
            raise CommandError(
                f"No key opens: {', '.join(found.unreadable)}. Enter it again in the administration, "
                "or add the key that it was encrypted with to NUMAWEB_SECRET_KEY_FALLBACKS."
            )
