"""Rules between settings, as Django system checks: `manage.py check` and every start say what does not fit."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution


def both_services(**_: Any) -> list[CheckMessage]:
    if bool(settings.DATABASE_URL) == bool(settings.REDIS_URL):
        return []
    missing = "NUMAWEB_REDIS_URL" if settings.DATABASE_URL else "NUMAWEB_DATABASE_URL"
    return [
        Caution(
            f"{missing} is not set while its counterpart is.",
            hint="Several processes need both PostgreSQL and Redis; one process (`manage.py local`) needs neither.",
            id="numaweb.W001",
        )
    ]


def hosts_named(**_: Any) -> list[CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS or not settings.NUMAWEB_TLS:
        return []
    return [
        Error(
            "NUMAWEB_TLS=1 needs NUMAWEB_ALLOWED_HOSTS: a certificate has names, and so must we.",
            hint="Write the names that browsers use, separated by commas: NUMAWEB_ALLOWED_HOSTS=numa.example.org",
            id="numaweb.E001",
        )
    ]


def session_limits(**_: Any) -> list[CheckMessage]:
    if settings.NUMAWEB_SESSION_LONGEST >= settings.SESSION_COOKIE_AGE:
        return []
    return [
        Error(
            "NUMAWEB_SESSION_LONGEST is shorter than NUMAWEB_SESSION_IDLE.",
            hint="The longest session must be at least as long as the allowed idle time.",
            id="numaweb.E002",
        )
    ]


def collection_fits(**_: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if settings.NUMAWEB_COLLECT_SHIFT < settings.NUMAWEB_COLLECT_PERIOD:
        found.append(
            Error(
                "NUMAWEB_COLLECT_SHIFT is shorter than NUMAWEB_COLLECT_PERIOD: a shift would have no round.",
                hint="Let a shift last several rounds, such as 60 seconds with a period of 2.",
                id="numaweb.E003",
            )
        )
    if 60 % settings.NUMAWEB_HISTORY_STEP:
        found.append(
            Error(
                f"NUMAWEB_HISTORY_STEP={settings.NUMAWEB_HISTORY_STEP} does not divide a minute.",
                hint="Choose 1, 2, 5, 10, 15, 20, 30 or 60 seconds.",
                id="numaweb.E006",
            )
        )
    return found


def oidc_complete(**_: Any) -> list[CheckMessage]:
    if not settings.NUMAWEB_OIDC:
        return []
    return [*oidc_client(), *oidc_roles()]


def oidc_client() -> list[CheckMessage]:
    if settings.NUMAWEB_OIDC_CLIENT_ID:
        return []
    return [
        Error(
            "NUMAWEB_OIDC_URL is set but NUMAWEB_OIDC_CLIENT_ID is not.",
            hint="Register numaweb at the identity provider and set the client's id and secret.",
            id="numaweb.E004",
        )
    ]


def oidc_roles() -> list[CheckMessage]:
    pairs = [pair.partition("=") for pair in settings.NUMAWEB_OIDC_ROLES]
    wrong = [group for group, _, role in pairs if not group or role not in settings.NUMAWEB_ROLES]
    if pairs and not wrong:
        return []
    return [
        Error(
            "NUMAWEB_OIDC_ROLES names no usable group=role pair"
            + (f": {', '.join(wrong)}." if wrong else ", so nobody could sign in."),
            hint=f"Write numa-admins=administrator,everyone=viewer; roles are {', '.join(settings.NUMAWEB_ROLES)}.",
            id="numaweb.E005",
        )
    ]


def notices_arrive(**_: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if settings.NUMAWEB_NOTICE_MAIL and not settings.EMAIL_HOST:
        found.append(
            Error(
                "NUMAWEB_NOTICE_MAIL names addresses and NUMAWEB_MAIL_URL no mail server.",
                hint="Set NUMAWEB_MAIL_URL, such as smtps://user:password@mail.example.org:465.",
                id="numaweb.E007",
            )
        )
    if settings.NUMAWEB_NOTICE_WEBHOOK and not settings.NUMAWEB_NOTICE_SECRET:
        found.append(
            Error(
                "NUMAWEB_NOTICE_WEBHOOK is set without NUMAWEB_NOTICE_SECRET: its receiver could not tell our notices from forged ones.",
                hint="Set NUMAWEB_NOTICE_SECRET or NUMAWEB_NOTICE_SECRET_FILE to at least 32 random characters, here and at the receiver.",
                id="numaweb.E008",
            )
        )
    return found


ALL: Sequence[Any] = (
    both_services,
    hosts_named,
    session_limits,
    collection_fits,
    oidc_complete,
    notices_arrive,
)
