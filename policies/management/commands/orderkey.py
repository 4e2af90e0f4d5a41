"""`manage.py orderkey`: what nodes have to believe before they carry out orders of this numaweb."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from policies.services.rollout import signing
from policies.services.rollout.error import RolloutError


class Command(BaseCommand):
    help = (
        "Print the public key of orders, for the ConfigMap numaweb-order-keys: "
        "kubectl -n numaweb create configmap numaweb-order-keys --from-file=keys.pem=/dev/stdin"
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        try:
            self.stdout.write(signing.signer().public_pem, ending="")
        except RolloutError as error:
            raise CommandError(
                f"the key of orders cannot be used: {error.cause}; set NUMAWEB_ORDER_KEY_FILE to an Ed25519 key in PEM form, "
                "or the secret key with which the stored one was encrypted"
            ) from None
