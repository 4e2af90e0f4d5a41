"""Backups with SQLite, and what is refused on every database; tests/services has PostgreSQL."""

import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.backends.sqlite3.base import DatabaseWrapper
from pytest_django.fixtures import Settings

from numaweb.backup import Manifest, archive, sqlite
from numaweb.connections import sqlite as sqlite_settings
from tests import kept

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="about SQLite"),
]


@contextmanager
def another(file: Path) -> Iterator[None]:
    """The models of this process live in another, new database meanwhile."""
    before, before_settings = connections["default"], connections.settings["default"]
    made = connections.configure_settings({"default": sqlite_settings(file)})["default"]
    connections.settings["default"] = made
    connections["default"] = there = DatabaseWrapper(made)
    try:
        yield
    finally:
        there.close()
        connections.settings["default"] = before_settings
        connections["default"] = before


def run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(*arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_all_comes_back_in_an_empty_database_and_goes_on(tmp_path: Path, settings: Settings) -> None:
    kept.fill()
    before, file = kept.everything(), tmp_path / "b.zip"
    said, _ = run("backup", str(file))
    assert "Keep NUMAWEB_SECRET_KEY" in said
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with zipfile.ZipFile(file) as written:
        assert not [name for name in written.namelist() if kept.TOKEN.encode() in written.read(name)]
        assert b"of-somebody" not in written.read(sqlite.NAME), "who has it has a session"
    with pytest.raises(CommandError, match="exists already"):
        run("backup", str(file))
    with pytest.raises(CommandError, match="this database is in use"):
        run("restore_backup", str(file))
    assert kept.everything() == before
    with another(tmp_path / "new.sqlite3"):
        _, complaints = run("restore_backup", str(file))
        assert complaints == ""
        assert kept.everything() == before
        kept.works()
    settings.SECRET_KEY = "another-key" * 6
    with another(tmp_path / "other.sqlite3"):
        _, complaints = run("restore_backup", str(file))
        assert "1 stored secret cannot be read" in complaints


def altered(file: Path, to: Path, change: Callable[[Manifest], Manifest], cut: bool = False) -> Path:
    """The backup with another manifest, or with half of its data."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(to, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == archive.MANIFEST:
                data = msgspec.json.encode(change(archive.read_manifest(old)))
            new.writestr(name, data[: len(data) // 2] if cut and name == sqlite.NAME else data)
    return to


def same(manifest: Manifest) -> Manifest:
    return manifest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    kept.fill()
    run("backup", str(tmp_path / "b.zip"))
    return tmp_path / "b.zip"


def test_what_does_not_fit_is_refused_with_the_cause(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = kept.everything()

    def refused(which: Path, words: str) -> None:
        with pytest.raises(CommandError, match=words):
            run("restore_backup", str(which))
        assert kept.everything() == before

    def older(manifest: Manifest) -> Manifest:
        return msgspec.structs.replace(manifest, migrations=manifest.migrations[:-2], numaweb="0.0.9")

    def newer(manifest: Manifest) -> Manifest:
        return msgspec.structs.replace(
            manifest, migrations=[*manifest.migrations, ("policies", "9999_later")]
        )

    refused(
        altered(file, tmp_path / "1", older), "an older version, numaweb 0.0.9 .*restore it with that version"
    )
    refused(altered(file, tmp_path / "2", newer), "another version")
    refused(
        altered(file, tmp_path / "3", lambda m: msgspec.structs.replace(m, database="postgresql")),
        "it is of postgresql, and this installation has sqlite",
    )
    refused(altered(file, tmp_path / "4", lambda m: msgspec.structs.replace(m, format=2)), "the format 2")
    (tmp_path / "5").write_bytes(file.read_bytes()[:2000])
    refused(tmp_path / "5", "was cut off")
    refused(tmp_path / "none", "cannot be read: No such file")
    # As if this database were empty: nothing of a damaged one gets in.
    monkeypatch.setattr(archive, "ensure_empty", lambda: None)
    refused(altered(file, tmp_path / "6", same, cut=True), "it is damaged")
    fewer = dict.fromkeys(connection.introspection.django_table_names(only_existing=True), 0)
    refused(
        altered(file, tmp_path / "7", lambda m: msgspec.structs.replace(m, tables=fewer)), "it is damaged"
    )


def test_a_backup_that_could_not_be_made_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_archive: zipfile.ZipFile) -> dict[str, int]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sqlite, "save", full)
    with pytest.raises(CommandError, match="No space left"):
        run("backup", str(tmp_path / "b.zip"))
    assert not (tmp_path / "b.zip").exists()
    assert not User.objects.exists()
