"""Secrets taken out of texts that leave this machine, such as a support bundle's. What is written there should have none anyway."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from django.conf import settings

from monitoring.models.sealed import Unreadable
from monitoring.services import sealing

HIDDEN = "(hidden)"
SHORTEST = 6
"""A shorter secret is part of too many words."""
PATTERNS = (
    (re.compile(r"(?<=://)[^/@\s\"']*:[^/@\s\"']*(?=@)"), HIDDEN),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"\bnumaweb_[A-Za-z0-9_-]{20,}"), HIDDEN),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), HIDDEN),
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
        HIDDEN,
    ),
)
"""Passwords in addresses, headers, API tokens, tokens of ServiceAccounts (JWT), private keys: whoever's they are."""
CONFIGURED = (
    *("SECRET_KEY", "NUMAWEB_ADMIN_PASSWORD", "NUMAWEB_ORDER_KEY", "NUMAWEB_NOTICE_SECRET"),
    *("NUMAWEB_METRICS_TOKEN", "EMAIL_HOST_PASSWORD", "DATABASE_URL", "REDIS_URL", "NUMAWEB_PROMETHEUS_URL"),
)


class Scrubber:
    """Knows every secret of this installation: those of its settings and those that its database holds."""

    def __init__(self, stored: bool = True) -> None:
        """`stored` False: the database does not answer."""
        known = {*configured(), *(in_database() if stored else ())}
        known |= {json.dumps(each)[1:-1] for each in known}  # as it stands in a JSON document
        # The longest first: one may be part of another.
        words = sorted((each for each in known if len(each) >= SHORTEST), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, words))) if words else None

    def clean(self, text: str) -> str:
        for pattern, instead in PATTERNS:
            text = pattern.sub(instead, text)
        return self._known.sub(HIDDEN, text) if self._known else text


def configured() -> Iterator[str]:
    for name in CONFIGURED:
        yield from parts(str(getattr(settings, name)))
    yield from settings.SECRET_KEY_FALLBACKS
    provider: dict[str, Any] = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]
    yield from (str(app["secret"]) for app in provider["APPS"])


def in_database() -> Iterator[str]:
    for model, column in sealing.columns():
        for row in model._default_manager.exclude(**{column: ""}).only("pk", column):
            value = getattr(row, column)
            if not isinstance(value, Unreadable):
                yield from parts(value)


def parts(secret: str) -> Iterable[str]:
    """What of it may stand alone somewhere: the lines of a key, the password of an address, the values of a kubeconfig's users."""
    if "://" in secret and "\n" not in secret:
        password = urlsplit(secret).password or ""
        return (password, unquote(password))
    if "\n" not in secret:
        return (secret,)
    found = [line.strip() for line in secret.splitlines() if "-----" not in line and ":" not in line]
    try:
        document = yaml.safe_load(secret)
    except yaml.YAMLError:
        return found
    return [*found, *strings(document.get("users") if isinstance(document, dict) else None, "user")]


def strings(of: Any, key: str) -> Iterator[str]:
    """Every text below the key of that name."""
    for each in of if isinstance(of, list) else ():
        values = each.get(key) if isinstance(each, dict) else None
        yield from (text for text in (values or {}).values() if isinstance(text, str))
