"""The file: a zip archive with a manifest and the data. What is in it fits the tables of the version that wrote it, and no others."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import msgspec
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from monitoring.models import Cluster
from numaweb import __version__, probes
from numaweb.backup import postgres, sqlite
from numaweb.backup.error import BackupError
from policies.models import AuditEntry

FORMAT = 1
MANIFEST = "manifest.json"
FILLED = (get_user_model(), Cluster, AuditEntry)
"""What no database has that is only migrated."""


class Manifest(msgspec.Struct, frozen=True):
    format: int
    numaweb: str
    database: str
    """sqlite or postgresql."""
    made: str
    migrations: list[tuple[str, str]]
    tables: dict[str, int]
    """Rows of each."""


def write(file: Path) -> Manifest:
    """Writes a new file that only its owner may read. Raises BackupError, OSError; then there is no file."""
    probes_fit()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with (
            os.fdopen(descriptor, "wb") as target,
            zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive,
        ):
            kept = (postgres if connection.vendor == "postgresql" else sqlite).save(archive)
            manifest = Manifest(
                FORMAT,
                __version__,
                connection.vendor,
                timezone.now().isoformat(timespec="seconds"),
                sorted(MigrationRecorder(connection).applied_migrations()),
                kept,
            )
            # At the end: a file that was cut off has none, and is no backup.
            archive.writestr(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    except BaseException:
        file.unlink()
        raise
    return manifest


def probes_fit() -> None:
    try:
        probes.check_migrations()
    except probes.NotReadyError as error:
        raise BackupError(str(error)) from None


def read_manifest(archive: zipfile.ZipFile) -> Manifest:
    """Raises BackupError."""
    try:
        manifest = msgspec.json.decode(archive.read(MANIFEST), type=Manifest)
    except (KeyError, msgspec.DecodeError, zipfile.BadZipFile):
        raise BackupError("it has no manifest: it is no backup of numaweb, or was cut off") from None
    if manifest.format != FORMAT:
        raise BackupError(f"it has the format {manifest.format}, and this version knows {FORMAT}")
    return manifest


def restore(file: Path) -> Manifest:
    """Puts everything into this installation's database, all of it or nothing. Raises BackupError, OSError."""
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        raise BackupError("it is no backup of numaweb, or was cut off") from None
    with archive:
        manifest = read_manifest(archive)
        ensure_fits(manifest)
        call_command("migrate", verbosity=0, interactive=False)
        ensure_empty()
        try:
            (postgres if connection.vendor == "postgresql" else sqlite).load(archive, manifest.tables)
        except (zipfile.BadZipFile, KeyError, EOFError) as error:
            raise BackupError(f"it is damaged: {error}") from None
    return manifest


def ensure_fits(manifest: Manifest) -> None:
    if manifest.database != connection.vendor:
        raise BackupError(
            f"it is of {manifest.database}, and this installation has {connection.vendor}: set NUMAWEB_DATABASE_URL"
        )
    theirs, ours = set(manifest.migrations), probes.known_migrations()
    if theirs == ours:
        return
    older = "an older" if theirs < ours else "another"
    raise BackupError(
        f"it is of {older} version, numaweb {manifest.numaweb} ({len(ours - theirs)} migrations less and {len(theirs - ours)} "
        f"more than this one, {__version__}): restore it with that version, then update"
    )


def ensure_empty() -> None:
    filled = [model._meta.db_table for model in FILLED if model._default_manager.exists()]
    if filled:
        raise BackupError(
            f"this database is in use ({', '.join(filled)} have rows): give NUMAWEB_DATABASE_URL a new, empty one"
        )
