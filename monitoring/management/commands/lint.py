"""`manage.py lint FILE`: what is wrong with a workload before anybody places it. The same as `plan --lint`."""

from typing import Any

from monitoring.management.commands import plan


class Command(plan.Command):
    help = (
        "Says what keeps the pods of a manifest (YAML or JSON; - reads standard input) from being placed as they ask. Ends with 1 "
        "when there is an error among it."
    )

    def handle(self, *arguments: Any, **options: Any) -> None:
        super().handle(*arguments, **{**options, "lint": True})
