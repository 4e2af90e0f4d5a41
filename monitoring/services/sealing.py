"""Stored secrets encrypted anew, so that an earlier secret key can be given up."""

from __future__ import annotations

import msgspec
from django.db import transaction
from django.db.models import Model

from monitoring.models import Connection, Endpoint, Settings
from monitoring.models.sealed import Unreadable

COLUMNS: tuple[tuple[type[Model], str], ...] = (
    (Endpoint, "token"),
    (Settings, "prometheus_token"),
    (Connection, "kubeconfig"),
    (Connection, "token"),
    (Connection, "exporter_token"),
)


class Resealed(msgspec.Struct, frozen=True):
    """How many secrets are encrypted with the present key now, and where those stand that no key opens."""

    done: int
    unreadable: list[str]


@transaction.atomic
def reseal() -> Resealed:
    """Encrypts every stored secret with the present key; what cannot be read stays as it is. Safe to run again."""
    done, unreadable = 0, []
    for model, column in COLUMNS:
        for row in model._default_manager.exclude(**{column: ""}).select_for_update().order_by("pk"):
            if isinstance(getattr(row, column), Unreadable):
                where = " ".join(dict.fromkeys((str(model._meta.verbose_name), str(row))))
                unreadable.append(f"{column} of {where}")
            else:
                row.save(update_fields=[column])
                done += 1
    return Resealed(done, unreadable)
