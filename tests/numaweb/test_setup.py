"""`manage.py setup`: what an installation does before its processes work."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from numaweb import probes

pytestmark = pytest.mark.django_db


def test_it_makes_tables_roles_and_the_first_administrator() -> None:
    out = io.StringIO()
    call_command("setup", stdout=out)
    assert "Made the administrator admin" in out.getvalue()
    call_command("setup", "--only-wait", "--patience=0")


def test_it_waits_for_the_database_and_then_says_what_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise DatabaseError("refused at 10.0.0.1")

    monkeypatch.setitem(probes.PARTS, "database", away)
    with pytest.raises(CommandError, match=r"database: cannot be reached") as told:
        call_command("setup", "--patience=0")
    assert "10.0.0.1" not in str(told.value)


def test_who_only_waits_is_told_of_tables_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def waiting() -> None:
        raise probes.NotReadyError("3 migrations are not applied: run manage.py migrate")

    monkeypatch.setitem(probes.PARTS, "migrations", waiting)
    with pytest.raises(CommandError, match="migrations: 3 migrations are not applied"):
        call_command("setup", "--only-wait", "--patience=0")
