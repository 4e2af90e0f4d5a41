"""`manage.py bundle FILE.tar.gz`: what somebody who helps from afar wants to know, without secrets."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import translation

from numaweb import bundle


class Command(BaseCommand):
    help = "Writes a support bundle: versions, settings, the doctor's answer, counts, failures, events and logs, without secrets."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.tar.gz", help="must not exist")
        parser.add_argument(
            "--log",
            type=Path,
            action="append",
            default=[],
            metavar="FILE",
            help="a log that was kept in a file; repeatable. Those of local mode are taken by themselves",
        )

    def handle(self, *_: Any, file: Path, log: list[Path], **__: Any) -> None:
        try:
            with translation.override("en"):  # whoever helps has to read it
                names = bundle.write(file, log)
        except FileExistsError:
            raise CommandError(f"{file} exists already: choose another name.") from None
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
        self.stdout.write(
            f"{file}: {len(names)} files. Names of nodes, pods and people are in it, secrets are not."
        )
