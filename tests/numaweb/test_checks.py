"""Rules between settings."""

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from numaweb import checks

NONE_AT_ALL = {"DATABASE_URL": "", "REDIS_URL": "", "EMAIL_HOST": ""}


def found(*, settings: Settings, **values: Any) -> list[str]:
    for name, value in {**NONE_AT_ALL, **values}.items():
        setattr(settings, name, value)
    return [f"{message.id} {message.msg}" for check in checks.ALL for message in check()]


def test_it_has_nothing_to_say_about_no_settings(settings: Settings) -> None:
    assert found(settings=settings) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"DATABASE_URL": "postgresql://h/n"}, "W001 NUMAWEB_REDIS_URL is not set"),
        ({"REDIS_URL": "redis://h/0"}, "W001 NUMAWEB_DATABASE_URL is not set"),
        ({"NUMAWEB_TLS": True}, "E001 NUMAWEB_TLS=1 needs NUMAWEB_ALLOWED_HOSTS"),
        (
            {"SESSION_COOKIE_AGE": 7200, "NUMAWEB_SESSION_LONGEST": 3600},
            "E002 NUMAWEB_SESSION_LONGEST is shorter",
        ),
        ({"NUMAWEB_COLLECT_SHIFT": 1, "NUMAWEB_COLLECT_PERIOD": 5}, "E003 NUMAWEB_COLLECT_SHIFT is shorter"),
        ({"NUMAWEB_HISTORY_STEP": 7}, "E006 NUMAWEB_HISTORY_STEP=7 does not divide a minute"),
        (
            {"NUMAWEB_OIDC": True, "NUMAWEB_OIDC_ROLES": ["a=viewer"]},
            "E004 NUMAWEB_OIDC_URL is set but NUMAWEB_OIDC_CLIENT_ID is not",
        ),
        ({"NUMAWEB_OIDC": True, "NUMAWEB_OIDC_CLIENT_ID": "x"}, "E005 NUMAWEB_OIDC_ROLES names no usable"),
        (
            {"NUMAWEB_OIDC": True, "NUMAWEB_OIDC_CLIENT_ID": "x", "NUMAWEB_OIDC_ROLES": ["staff=king"]},
            "E005 NUMAWEB_OIDC_ROLES names no usable group=role pair: staff.",
        ),
        ({"NUMAWEB_NOTICE_MAIL": ["a@b.c"]}, "E007 NUMAWEB_NOTICE_MAIL names addresses"),
        ({"NUMAWEB_NOTICE_WEBHOOK": "https://h/x"}, "E008 NUMAWEB_NOTICE_WEBHOOK is set without"),
    ],
)
def test_it_names_what_does_not_fit(settings: Settings, values: dict[str, Any], said: str) -> None:
    (message,) = found(settings=settings, **values)
    assert message.startswith(f"numaweb.{said}")


def test_it_accepts_a_complete_identity_provider(settings: Settings) -> None:
    values = {"NUMAWEB_OIDC": True, "NUMAWEB_OIDC_CLIENT_ID": "x", "NUMAWEB_OIDC_ROLES": ["ops=operator"]}
    assert found(settings=settings, **values) == []
