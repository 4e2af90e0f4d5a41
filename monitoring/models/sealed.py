"""Texts that stand encrypted in the database: bearer tokens that this service has to send on.

Fernet (AES-128-CBC with HMAC-SHA256) with keys that HKDF-SHA256 derives from SECRET_KEY and SECRET_KEY_FALLBACKS: what
an older key encrypted is still read, what is written is encrypted with the present one.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import models

PURPOSE = b"numaweb: secrets in the database"


class Unreadable(str):
    """A secret that none of the keys opens. It is no usable text, and saving it keeps what is stored.

    With the key that it was made with it can be read again.
    """

    __slots__ = ("stored",)
    stored: str

    def __new__(cls, stored: str) -> Unreadable:
        made = super().__new__(cls, "\0")
        made.stored = stored
        return made


def seal(text: str) -> str:
    """The text as it is stored; "" stays "", so that the database can tell whether there is one."""
    if isinstance(text, Unreadable):
        return text.stored
    return _keys().encrypt(text.encode()).decode() if text else ""


def unseal(stored: str) -> str:
    """The text that is stored, or `Unreadable`."""
    try:
        return _keys().decrypt(stored.encode()).decode() if stored else ""
    except InvalidToken:
        return Unreadable(stored)


def _keys() -> MultiFernet:
    return _derived((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=8)
def _derived(secrets: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_key(each)) for each in secrets])


def _key(secret: str) -> bytes:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(secret.encode())
    return base64.urlsafe_b64encode(derived)


class SealedField(models.TextField[str, str]):
    """A text that is encrypted on its way into the database. Only "" can be looked for."""

    def get_prep_value(self, value: Any) -> Any:
        return None if value is None else seal(value)

    def from_db_value(self, value: str | None, _expression: Any, _connection: Any) -> str | None:
        return None if value is None else unseal(value)
