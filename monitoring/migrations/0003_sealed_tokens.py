"""Bearer tokens of exporters and of Prometheus are encrypted from now on; those that are there already too."""

from collections.abc import Callable
from typing import Any

from django.db import migrations, models

from monitoring.models import sealed

COLUMNS = (("Endpoint", "token"), ("Settings", "prometheus_token"))


def rewrite(apps: Any, write: Callable[[str], str]) -> None:
    for model, column in COLUMNS:
        rows = apps.get_model("monitoring", model).objects.exclude(**{column: ""})
        for row in list(rows.only("pk", column)):  # all of them, before the first is written
            setattr(row, column, write(getattr(row, column)))
            row.save(update_fields=[column])


def seal(apps: Any, _editor: object) -> None:
    rewrite(apps, sealed.seal)


def unseal(apps: Any, _editor: object) -> None:
    """What no key opens is lost on the way back: an older version could not send it either."""
    rewrite(apps, lambda stored: sealed.unseal(stored).replace("\0", ""))


def columns(field: type[models.TextField[str, str]]) -> list[migrations.AlterField]:
    """Both columns with another kind of field."""
    return [
        migrations.AlterField(
            model_name=model.lower(),
            name=column,
            field=field(blank=True, max_length=4096, verbose_name=name),
        )
        for (model, column), name in zip(COLUMNS, ("bearer token", "Prometheus bearer token"), strict=True)
    ]


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0002_lease_seen"),
    ]

    operations = [
        *columns(models.TextField),
        migrations.RunPython(seal, unseal),
        *columns(sealed.SealedField),
    ]
