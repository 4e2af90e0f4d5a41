"""`manage.py cluster NAME --url ... `: makes a cluster known, with the addresses of its exporters."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_slug

from monitoring import services
from monitoring.models import Cluster
from monitoring.sources import address
from monitoring.sources.failures import SourceError


class Command(BaseCommand):
    help = (
        "Adds or changes a cluster: its exporters are exactly the given addresses, one of --url each, "
        "or one a line on standard input with --stdin. Safe to run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="name in addresses of pages, such as production")
        parser.add_argument("--name", default="", help="name on pages; default: the slug")
        parser.add_argument("--kind", default=Cluster.Kind.KUBERNETES, choices=Cluster.Kind.values)
        parser.add_argument("--url", action="append", default=[], help="http://HOST:PORT of an exporter")
        parser.add_argument("--stdin", action="store_true", help="read addresses from standard input")
        parser.add_argument("--token-file", default="", help="file with the exporters' bearer token")

    def handle(self, *_: Any, **options: Any) -> None:
        token = self.token(options["token_file"])
        lines = sys.stdin if options["stdin"] else []
        urls = [*options["url"], *(line.strip() for line in lines if line.strip())]
        try:
            validate_slug(options["slug"])
            for url in urls:
                address.parse(url)
        except (ValidationError, SourceError) as error:
            raise CommandError("; ".join(getattr(error, "messages", [str(error)]))) from None
        specs = [services.EndpointSpec(url, token=token) for url in urls]
        services.ensure_cluster(options["slug"], options["name"] or options["slug"], options["kind"], specs)
        self.stdout.write(f"{options['slug']}: {len(specs)} exporters")

    def token(self, path: str) -> str:
        """A token comes from a file: an argument would stand in the list of processes."""
        if not path:
            return ""
        try:
            with open(path, encoding="ascii") as file:
                return file.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"--token-file: {error}") from None
