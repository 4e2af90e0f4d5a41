"""`manage.py serve`: the web process of a distributed installation."""

from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from numaweb import server


class Command(BaseCommand):
    help = "Serves pages, REST and WebSockets until it is told to end."

    def handle(self, *_: Any, **__: Any) -> None:
        try:
            server.ensure_free(settings.NUMAWEB_LISTEN, settings.NUMAWEB_PORT)
        except server.PortTakenError as error:
            raise CommandError(str(error)) from None
        uvicorn.Server(server.configuration()).run()
