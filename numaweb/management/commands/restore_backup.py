"""`manage.py restore_backup FILE`: a backup into an empty database."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from numaweb import backup
from numaweb.doctor import own
from policies import audit


class Command(BaseCommand):
    help = (
        "Puts a backup of this very version into the database that NUMAWEB_DATABASE_URL names, which has to be empty; all of it or "
        "nothing. Nothing else of numaweb may run meanwhile."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")

    def handle(self, *_: Any, file: Path, **__: Any) -> None:
        try:
            made = backup.restore(file)
        except backup.BackupError as error:
            raise CommandError(f"{file} was not restored: {error}.") from None
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
        self.stdout.write(f"Restored {sum(made.tables.values())} rows of {made.made}.")
        broken = audit.verify()
        if broken:
            self.stderr.write(f"The audit log is broken at entry {broken.sequence}: {broken.reason}.")
        secrets = own.sealed()
        if secrets.state != "ok":
            self.stderr.write(f"{secrets.text} {secrets.remedy}")
        self.stdout.write("Run manage.py bootstrap, then start numaweb; everybody signs in again.")
