"""PostgreSQL: each table by COPY, all as they were at one moment.

COPY instead of pg_dump: that program is not in the image, and refuses a server that is newer than itself.
"""

from __future__ import annotations

import zipfile

from django.apps import apps
from django.core.management.color import no_style
from django.db import DataError, IntegrityError, connection, transaction
from psycopg import sql

from numaweb.backup.error import BackupError
from policies import seal

LEFT_OUT = frozenset(("django_session",))
"""Who has a copy of it could go on with everybody's session."""
PIECE = 1024 * 1024


def tables() -> list[str]:
    return sorted(set(connection.introspection.django_table_names(only_existing=True)) - LEFT_OUT)


def save(archive: zipfile.ZipFile) -> dict[str, int]:
    """Rows of each table that was written."""
    found = {}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for table in tables():
            out = sql.SQL("COPY {} TO STDOUT").format(columns(table))
            with archive.open(f"{table}.copy", "w", force_zip64=True) as entry, cursor.copy(out) as copy:
                for piece in copy:
                    entry.write(piece)
            found[table] = cursor.rowcount
    return found


def columns(table: str) -> sql.Composed:
    """The table with its columns by name: their order is another in a table that was altered than in one that was made so."""
    with connection.cursor() as cursor:
        names = sorted(each.name for each in connection.introspection.get_table_description(cursor, table))
    return sql.SQL("{} ({})").format(sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, names)))


def load(archive: zipfile.ZipFile, wanted: dict[str, int]) -> None:
    """Raises BackupError, KeyError, zipfile.BadZipFile."""
    if set(wanted) != set(tables()):
        raise BackupError("it has other tables than this version")
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            seal.lift(connection)
            # What migrations wrote comes with the backup. Foreign keys are checked at the end of the transaction.
            every = sql.SQL(", ").join(map(sql.Identifier, tables()))
            cursor.execute(sql.SQL("TRUNCATE {} CASCADE").format(every))
            for table, rows in wanted.items():
                into = sql.SQL("COPY {} FROM STDIN").format(columns(table))
                with archive.open(f"{table}.copy") as entry, cursor.copy(into) as copy:
                    while piece := entry.read(PIECE):
                        copy.write(piece)
                if cursor.rowcount != rows:
                    raise BackupError(f"it is damaged: {table} has {cursor.rowcount} rows instead of {rows}")
            for statement in connection.ops.sequence_reset_sql(
                no_style(), apps.get_models(include_auto_created=True)
            ):
                cursor.execute(statement)
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            seal.put(connection)
    except (DataError, IntegrityError) as error:
        raise BackupError(f"it is damaged: {error}") from None
