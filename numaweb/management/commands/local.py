"""`manage.py local`: the whole product on this machine, with this machine and a simulated cluster to look at."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from numaweb import local, server


class Command(BaseCommand):
    help = "Runs everything in one process group until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--listen", metavar="ADDRESS:PORT", help="instead of NUMAWEB_LISTEN and NUMAWEB_PORT"
        )

    def handle(self, *_: Any, listen: str | None, **__: Any) -> None:
        try:
            if listen:
                server.listen(listen)
            local.run(self.say)
        except (local.StartError, server.AddressError) as error:
            raise CommandError(str(error)) from None

    def say(self, text: str) -> None:
        self.stdout.write(f"numaweb  {text}")
        self.stdout.flush()
