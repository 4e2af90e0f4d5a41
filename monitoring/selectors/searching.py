"""What of a container or pod a text is searched in: each as one expression, because one index has it (`services.texts`)."""

from __future__ import annotations

from django.db.models import F, Func, Q, TextField, Value

BETWEEN = "\n"
"""Between the names: no name has it, so that no text is found across two of them."""


def _together(*columns: str) -> Func:
    """Columns that are never null in one text. `Concat` guards against nulls, and an index would have to do the same."""
    parts: list[F | Value] = [F(columns[0])]
    for column in columns[1:]:
        parts += [Value(BETWEEN), F(column)]
    return Func(*parts, template="(%(expressions)s)", arg_joiner=" || ", output_field=TextField())


CONTAINER_NAMES = _together("namespace", "pod", "name")
POD_NAMES = _together("name", "owner_name")


def container_id(text: str) -> Q:
    """Containers whose id begins with a text, or whose pod has it as its uid. Kubernetes writes both in small letters."""
    return (
        Q(container_id__startswith=text)
        | Q(container_id__startswith=text.lower())
        | Q(pod_uid__in=(text, text.lower()))
    )
