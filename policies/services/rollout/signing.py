"""Who signs orders: an Ed25519 key from NUMAWEB_ORDER_KEY, else one that is made at first use and kept sealed in the database."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from monitoring.models.sealed import Unreadable
from numacore.change import order as orders
from numacore.change.order import Order, Signed
from policies.models import AuditHead, OrderKey
from policies.services.rollout.error import RolloutError


class Signer:
    """One private key."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self._name = orders.key_name(private.public_key().public_bytes_raw())

    def sign(self, order: Order) -> bytes:
        """The order as it travels; the same bytes for the same order, as Ed25519 has no chance in it. Raises orders.OrderError."""
        document = orders.encode(order)
        signature = self._private.sign(orders.signed_bytes(document))
        return orders.encode_signed(Signed(document=document, signature=signature, key=self._name))

    @property
    def public_pem(self) -> str:
        """What appliers are to believe: the content of the ConfigMap `numaweb-order-keys`, key `keys.pem`."""
        encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        return self._private.public_key().public_bytes(encoding, form).decode("ascii")


def signer() -> Signer:
    """Raises RolloutError (`no-key`): there is a key that cannot be used."""
    pem = settings.NUMAWEB_ORDER_KEY or _stored()
    if isinstance(pem, Unreadable):
        raise RolloutError("no-key", cause=_("it was encrypted with another secret key"))
    try:
        private = serialization.load_pem_private_key(pem.encode("utf-8"), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise RolloutError("no-key", cause=str(error)[:200]) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise RolloutError("no-key", cause=_("it is no Ed25519 key"))
    return Signer(private)


def _stored() -> str:
    """The newest key of the database, made at the first use: two at once make one."""
    found = OrderKey.objects.order_by("-pk").first()
    if found is not None:
        return found.private
    with transaction.atomic():
        # Whoever writes the audit log queues at one row; who makes the key queues there, too.
        AuditHead.objects.select_for_update().filter().first()
        found = OrderKey.objects.order_by("-pk").first()
        return found.private if found else _made().private


def _made() -> OrderKey:
    private = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return OrderKey.objects.create(private=private.decode("ascii"), made=timezone.now())
