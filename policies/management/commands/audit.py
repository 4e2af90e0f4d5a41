"""`manage.py audit --verify`: proves that no audit entry was altered, removed or put in between."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from policies import audit
from policies.models import AuditEntry


class Command(BaseCommand):
    help = "Checks the audit log's chain of hashes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--verify", action="store_true", required=True, help="walk the whole log")

    def handle(self, *_: Any, **__: Any) -> None:
        broken = audit.verify()
        if broken:
            raise CommandError(f"The audit log is broken at entry {broken.sequence}: {broken.reason}.")
        self.stdout.write(f"The audit log holds: {AuditEntry.objects.count()} entries, unbroken.")
