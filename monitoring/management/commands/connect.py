"""`manage.py connect NAME`: makes the cluster that numaweb runs in known and watched. The chart runs it after `manage.py setup`."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_slug

from monitoring import services


class Command(BaseCommand):
    help = "Makes the cluster that numaweb runs in known and watched, by its pods' ServiceAccount. Safe to run again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="name in addresses of pages, such as production")
        parser.add_argument("--name", default="", help="name on pages where it is new; default: the slug")
        parser.add_argument("--exporter-namespace", default="", help="only its pods count as exporters")
        parser.add_argument(
            "--exporter-token-file", type=Path, help="the bearer token that exporters ask for"
        )
        parser.add_argument(
            "--exporter-ca-file", type=Path, help="exporters speak TLS, and this authority signed for them"
        )
        parser.add_argument("--exporter-name", default="", help="the name in their certificate")

    def handle(self, *_: Any, slug: str, **options: Any) -> None:
        try:
            validate_slug(slug)
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from None
        authority = content("--exporter-ca-file", options["exporter_ca_file"])
        exporters = services.Exporters(
            namespace=options["exporter_namespace"],
            token=content("--exporter-token-file", options["exporter_token_file"]),
            https=bool(authority),
            ca=authority,
            name=options["exporter_name"],
        )
        services.ensure_own_connection(slug, options["name"] or slug, exporters)
        self.stdout.write(f"{slug}: watched as the cluster that numaweb runs in")


def content(option: str, file: Path | None) -> str:
    """A secret comes from a file: an argument would stand in the list of processes."""
    try:
        return file.read_text(encoding="ascii").strip() if file else ""
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{option}: {error}") from None
