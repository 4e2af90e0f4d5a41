"""API tokens: making one and finding the one that a request carries. numaweb.access says what it may do."""

import hashlib
import secrets
from datetime import datetime, timedelta

from numaweb.models import ApiToken

MARK = "numaweb_"  # lets secret scanners recognise a leaked token
SHOWN = len(MARK) + 6
USED_EVERY = timedelta(minutes=1)  # a busy token does not write a row at each request


def fill(token: ApiToken) -> str:
    """Give an unsaved token its secret and return it: the only moment at which it is known."""
    secret = MARK + secrets.token_urlsafe(32)
    token.prefix, token.hash = secret[:SHOWN], hashed(secret)
    return secret


def hashed(secret: str) -> str:
    """A plain hash is enough: the secret has 256 random bits, there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


def find(secret: str, now: datetime) -> ApiToken | None:
    token = ApiToken.objects.select_related("user").filter(hash=hashed(secret)).first()
    if token is None or not token.user.is_active or (token.expires and token.expires <= now):
        return None
    if token.last_used is None or now - token.last_used > USED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used=now)
    return token
