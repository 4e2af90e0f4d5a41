"""`manage.py collect`: one shift in the foreground, for whoever wants to see why nothing is collected."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from monitoring import hot, services
from monitoring.models import Endpoint


class Command(BaseCommand):
    help = "Works one shift of collection here and tells how each exporter did."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--shard", type=int, default=0)

    def handle(self, *_: Any, **options: Any) -> None:
        result = services.collect(options["shard"])
        self.stdout.write(
            f"shift: {result}" + (" (another process collects this shard)" if result == "busy" else "")
        )
        for name, count in sorted(hot.store().counts().items()):
            self.stdout.write(f"  {name}: {count}")
        for endpoint in Endpoint.objects.filter(enabled=True).select_related("cluster").order_by("pk"):
            cause = endpoint.conflict or endpoint.error
            self.stdout.write(f"{endpoint.cluster.slug} {endpoint} {endpoint.state} {cause}".rstrip())
