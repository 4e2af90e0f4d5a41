"""`manage.py local`: the whole product on this machine, with this machine and a simulated cluster to look at."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from numaweb import local, server


class Command(BaseCommand):
    help = "Runs everything in one process group until Ctrl-C."

    def handle(self, *_: Any, **__: Any) -> None:
        try:
            local.run(self.say)
        except (local.StartError, server.PortTakenError) as error:
            raise CommandError(str(error)) from None

    def say(self, text: str) -> None:
        self.stdout.write(f"numaweb  {text}")
        self.stdout.flush()
