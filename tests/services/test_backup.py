"""Backups of a real PostgreSQL."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connections, transaction
from django.db.backends.postgresql.base import DatabaseWrapper

from numaweb import doctor
from numaweb.connections import postgres as postgres_settings
from policies.models import AuditEntry
from tests import kept, stack

pytestmark = pytest.mark.timeout(600)


@contextmanager
def another(postgres: stack.Part, name: str, template: str) -> Iterator[None]:
    """The models of this process live in another, new database meanwhile."""
    before, before_settings = connections["default"], connections.settings["default"]
    made = connections.configure_settings({"default": postgres_settings(postgres.database(name), pool=4)})
    del made["default"]["OPTIONS"]["pool"]  # all wrappers of a name share one, and so its database
    with psycopg.connect(postgres.url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        connections.settings["default"] = made["default"]
        connections["default"] = there = DatabaseWrapper(made["default"])
        try:
            yield
        finally:
            there.close()
            connections.settings["default"] = before_settings
            connections["default"] = before
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(*arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.mark.usefixtures("on_postgres")
def test_all_comes_back_in_an_empty_database_and_goes_on(
    postgres: stack.Part, migrated: str, tmp_path: Path
) -> None:
    kept.fill()
    before, file = kept.everything(), tmp_path / "b.zip"
    run("backup", str(file))
    with zipfile.ZipFile(file) as written:
        assert "django_session.copy" not in written.namelist()
        assert not [name for name in written.namelist() if kept.TOKEN.encode() in written.read(name)]
    with pytest.raises(CommandError, match="this database is in use"):
        run("restore_backup", str(file))
    with another(postgres, "restored", migrated):
        damaged = tmp_path / "damaged.zip"
        with zipfile.ZipFile(file) as old, zipfile.ZipFile(damaged, "w") as new:
            for name in old.namelist():
                # Nobody is in a group that does not exist.
                new.writestr(name, b"" if name == "auth_user.copy" else old.read(name))
        empty = kept.everything()
        with pytest.raises(CommandError, match="it is damaged"):
            run("restore_backup", str(damaged))
        assert kept.everything() == empty
        _, complaints = run("restore_backup", str(file))
        assert complaints == ""
        assert kept.everything() == before
        kept.works()
        with pytest.raises(IntegrityError), transaction.atomic():
            AuditEntry.objects.update(actor="nobody")
        told = [(each.state, each.text) for each in doctor.PARTS["database"]()]
        assert {state for state, _ in told} == {"ok"}
        assert told[0][1].startswith("PostgreSQL ")
