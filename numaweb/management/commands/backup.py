"""`manage.py backup FILE`: everything that the database keeps, in one file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from numaweb import backup


class Command(BaseCommand):
    help = (
        "Writes everything that the database keeps into one file, while numaweb works. Secrets in it are encrypted with the secret "
        "key, which is not in it: keep NUMAWEB_SECRET_KEY, too, at another place."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="must not exist")

    def handle(self, *_: Any, file: Path, **__: Any) -> None:
        try:
            made = backup.write(file)
        except FileExistsError:
            raise CommandError(f"{file} exists already: choose another name.") from None
        except backup.BackupError as error:
            raise CommandError(f"No backup was made: {error}.") from None
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
        self.stdout.write(
            f"{file}: {sum(made.tables.values())} rows of {len(made.tables)} tables, {file.stat().st_size} bytes, "
            f"of numaweb {made.numaweb} on {made.database}. Keep NUMAWEB_SECRET_KEY with it, at another place: "
            "without it the stored secrets cannot be read."
        )
