"""SQLite: a copy of the database by its own backup interface, which waits for nobody and sees one moment."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import zipfile
from contextlib import closing
from pathlib import Path

from django.db import connection

from numaweb.backup.error import BackupError

NAME = "numaweb.sqlite3"
SESSIONS = "django_session"


def save(archive: zipfile.ZipFile) -> dict[str, int]:
    """Rows of each table that was written."""
    connection.ensure_connection()
    with tempfile.TemporaryDirectory(prefix="numaweb-backup-") as folder:
        file = Path(folder) / NAME
        with closing(sqlite3.connect(file)) as copy:
            connection.connection.backup(copy)
            # Who has a copy of it could go on with everybody's session.
            copy.execute(f"DELETE FROM {SESSIONS}")  # noqa: S608 - a constant
            copy.commit()
            copy.execute("VACUUM")
            found = counted(copy)
        archive.write(file, NAME)
    return found


def counted(copy: sqlite3.Connection) -> dict[str, int]:
    names = connection.introspection.django_table_names(only_existing=True)
    return {
        name: copy.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608 - names of our tables
        for name in sorted(names)
    }


def load(archive: zipfile.ZipFile, wanted: dict[str, int]) -> None:
    """Raises BackupError, KeyError, zipfile.BadZipFile."""
    connection.ensure_connection()
    with tempfile.TemporaryDirectory(prefix="numaweb-backup-") as folder:
        file = Path(folder) / NAME
        with archive.open(NAME) as entry, file.open("wb") as target:
            shutil.copyfileobj(entry, target)
        try:
            with closing(sqlite3.connect(file)) as copy:
                if counted(copy) != wanted or copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
                    raise BackupError("it is damaged: its database is not what its manifest says")
                copy.backup(connection.connection)
        except sqlite3.DatabaseError as error:
            raise BackupError(f"it is damaged: {error}") from None
