"""What keeps a cluster from being removed: changes on its nodes that only these rows can finish or take back.

A cluster that is gone for good can be removed all the same: switched off first, nobody goes on with it anyway.
"""

from typing import Any

from django.db.models import CASCADE, ProtectedError, Q


def with_active(collector: Any, field: Any, those: Any, using: str) -> None:
    """Rollouts go with their cluster, unless one is at work. Raises ProtectedError."""
    _go(collector, field, those, using, Q(state__in=those.model.ACTIVE))


def with_standing(collector: Any, field: Any, those: Any, using: str) -> None:
    """Originals go with their cluster, unless one still stands changed. Raises ProtectedError."""
    _go(collector, field, those, using, Q(restored=None))


def _go(collector: Any, field: Any, those: Any, using: str, left: Q) -> None:
    if found := list(those.filter(left, cluster__enabled=True)):
        raise ProtectedError(f"{len(found)} of {those.model._meta.verbose_name_plural}", set(found))
    CASCADE(collector, field, those, using)
