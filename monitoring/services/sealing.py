"""Stored secrets encrypted anew, so that an earlier secret key can be given up."""

from __future__ import annotations

import msgspec
from django.apps import apps
from django.db import transaction
from django.db.models import Model

from monitoring.models.sealed import SealedField, Unreadable


def columns() -> list[tuple[type[Model], str]]:
    """Every column of every room that holds a secret."""
    return [
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, SealedField)
    ]


class Resealed(msgspec.Struct, frozen=True):
    """How many secrets are encrypted with the present key now, and where those stand that no key opens."""

    done: int
    unreadable: list[str]


@transaction.atomic
def reseal() -> Resealed:
    """Encrypts every stored secret with the present key; what cannot be read stays as it is. Safe to run again."""
    done, unreadable = 0, []
    for model, column in columns():
        for row in model._default_manager.exclude(**{column: ""}).select_for_update().order_by("pk"):
            if isinstance(getattr(row, column), Unreadable):
                where = " ".join(dict.fromkeys((str(model._meta.verbose_name), str(row))))
                unreadable.append(f"{column} of {where}")
            else:
                row.save(update_fields=[column])
                done += 1
    return Resealed(done, unreadable)
