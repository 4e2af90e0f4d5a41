"""`manage.py doctor`: is everything as it should be, and what to do where not."""

import os
from argparse import ArgumentParser
from typing import Any

import msgspec
from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import translation
from django.utils.translation import gettext as _

from numaweb import __version__, doctor

WORDS = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
"""Variables that name the reader's language, the first that is set counts (gettext's manual, Locale Environment Variables)."""


class Command(BaseCommand):
    help = "Checks settings, database, Redis, clusters, exporters, Prometheus and this machine, and says what to do. It changes nothing."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON document instead of lines")

    def handle(self, *_args: Any, json: bool, **_options: Any) -> None:
        """Ends with 1 if anything failed, else with 0."""
        with translation.override(language()):
            found = []
            for each in doctor.examine():
                found.append(each)
                if not json:
                    self.tell(each)
            failed = any(each.state == "failed" for each in found)
            if json:
                document = {"version": __version__, "ok": not failed, "findings": found}
                self.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode())
        if failed:
            raise SystemExit(1)

    def tell(self, finding: doctor.Finding) -> None:
        word = {
            "ok": _("ok"),
            "warning": _("warning"),
            "failed": _("failed"),
            "unchecked": _("not checked"),
        }[finding.state]
        self.stdout.write(f"{finding.part}: {word}: {finding.text}")
        if finding.remedy:
            self.stdout.write(f"    {finding.remedy}")


def language() -> str:
    told = next((os.environ[name] for name in WORDS if os.environ.get(name)), "")
    if told.lower().startswith("zh"):
        return "zh-hans"
    return "en" if told and not told.startswith("C") else settings.LANGUAGE_CODE
