"""Whose orders are believed: signed by a known key, for this node, not too old, not behind what the node has seen."""

from __future__ import annotations

import binascii
import datetime as dt
import hashlib
import re

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from numaagent.applier import places, writing
from numaagent.applier.places import Host
from numaagent.applier.refusal import RefusedError
from numacore.change import order as orders
from numacore.change.order import Order, OrderError

_BLOCK = re.compile(rb"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)
MARGIN = 30
"""Seconds that stopping, writing and starting may take beside the waits of an order."""


class Seen(msgspec.Struct, frozen=True):
    """The newest order that this node has taken on."""

    epoch: int
    document: str
    """SHA-256 of it."""


def keys(pem: bytes) -> dict[str, Ed25519PublicKey]:
    """Public keys by name, from one PEM file that may hold several: the old and the new one while keys change."""
    found = {}
    for block in _BLOCK.findall(pem):
        try:
            key = serialization.load_pem_public_key(block)
        except (ValueError, binascii.Error) as error:
            raise RefusedError(
                "key-unreadable", f"--keys: a public key cannot be read: {error}; write it as PEM"
            ) from error
        if not isinstance(key, Ed25519PublicKey):
            raise RefusedError("key-unreadable", "--keys: a key is no Ed25519 key; make one with numaweb")
        found[orders.key_name(key.public_bytes_raw())] = key
    if not found:
        raise RefusedError("key-unreadable", "--keys: the file holds no PUBLIC KEY in PEM form")
    return found


def opened(data: bytes, known: dict[str, Ed25519PublicKey]) -> tuple[Order, str]:
    """The order of an envelope whose signature is right, and the hash of its document. Raises RefusedError."""
    try:
        signed = orders.decode_signed(data)
        key = known.get(signed.key)
        if key is None:
            raise RefusedError(
                "key-unknown",
                f"key: {signed.key[:64]!r} is none of the keys that this node believes; give the applier the public key of the numaweb that signed",
                key=signed.key[:64],
            )
        try:
            key.verify(signed.signature, orders.signed_bytes(signed.document))
        except InvalidSignature as error:
            raise RefusedError(
                "signature",
                "signature: it is not this document's; somebody changed the order, make it again",
            ) from error
        return orders.decode(signed.document), hashlib.sha256(signed.document).hexdigest()
    except OrderError as error:
        raise RefusedError("order", str(error), field=error.field) from error


def check(order: Order, host: Host, node: str) -> None:
    """Raises RefusedError for an order that is not this node's, or for a place where the applier does not write."""
    if order.node != node:
        raise RefusedError(
            "wrong-node", f"node: the order is for {order.node}, this is {node}", order=order.node, node=node
        )
    here = _machine_id(host)
    if order.machine_id and here is None:
        raise RefusedError(
            "wrong-node",
            f"machine_id: {places.MACHINE_ID} cannot be read, so nobody can tell whether this is the machine that the order "
            "is for; mount it",
            order=order.machine_id,
            node="",
        )
    if order.machine_id and order.machine_id != here:
        raise RefusedError(
            "wrong-node",
            f"machine_id: the order is for machine {order.machine_id}, this is {here}: the node was replaced; look at it and plan again",
            order=order.machine_id,
            node=here or "",
        )
    if found := places.fault(order):
        field, words = found
        raise RefusedError("place", f"{field}: {words}", field=field)
    if order.dead_man < order.healthy_within + order.steady_for + MARGIN:
        raise RefusedError(
            "dead-man-short",
            f"dead_man: {order.dead_man} s are not {MARGIN} s longer than healthy_within and steady_for together; the node would "
            "go back while the kubelet still starts",
        )


def check_time(order: Order, now: float) -> None:
    """Raises RefusedError for an order that comes too late."""
    if order.expires <= now:
        raise RefusedError(
            "expired",
            f"expires: the order was good until {_time(order.expires)}, here it is {_time(now)}; make it again, or set this node's clock",
            until=order.expires,
            now=int(now),
        )


def seen(host: Host) -> Seen | None:
    """The newest order that this node has taken on. Raises RefusedError where that is not readable."""
    try:
        found = writing.read(host.at(places.EPOCH))
        return None if found is None else msgspec.json.decode(found.data, type=Seen)
    except (OSError, msgspec.DecodeError) as error:
        raise RefusedError(
            "state-unreadable",
            f"{places.EPOCH}: {error}; look at it, and remove it if this node's orders shall be counted anew",
        ) from error


def check_epoch(order: Order, document: str, newest: Seen | None) -> None:
    """Raises RefusedError for an order that another one has overtaken."""
    if newest is None or order.epoch > newest.epoch:
        return
    if order.epoch < newest.epoch:
        raise RefusedError(
            "epoch",
            f"epoch: {order.epoch} is lower than {newest.epoch}, which this node has taken on; a newer plan has overtaken this one",
            epoch=order.epoch,
            newest=newest.epoch,
        )
    if document != newest.document:
        raise RefusedError(
            "epoch-twice",
            f"epoch: this node has taken on another order with {order.epoch}; count up for each order",
            epoch=order.epoch,
            newest=newest.epoch,
        )


def _machine_id(host: Host) -> str | None:
    try:
        found = writing.read(host.at(places.MACHINE_ID))
    except OSError:
        return None
    return None if found is None else found.data.decode("ascii", "replace").strip()


def _time(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat(sep=" ", timespec="seconds")
