"""`manage.py serve`: the web process of a distributed installation."""

from argparse import ArgumentParser
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from numaweb import server


class Command(BaseCommand):
    help = "Serves pages, REST and WebSockets until it is told to end."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--listen", metavar="ADDRESS:PORT", help="instead of NUMAWEB_LISTEN and NUMAWEB_PORT"
        )

    def handle(self, *_: Any, listen: str | None, **__: Any) -> None:
        try:
            if listen:
                server.listen(listen)
            server.ensure_free(settings.NUMAWEB_LISTEN, settings.NUMAWEB_PORT)
        except server.AddressError as error:
            raise CommandError(str(error)) from None
        uvicorn.Server(server.configuration()).run()
