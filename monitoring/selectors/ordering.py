"""Orders of long lists, and a stretch of one: so that a database walks an index where there is one, and sorts little else."""

from typing import Any, TypeVar

from django.db.models import F, Field, Model, QuerySet

M = TypeVar("M", bound=Model)


def order(model: type[Model], column: str, *, descending: bool, back: bool = False) -> tuple[Any, str]:
    """What to order by, the key last. Unknown comes last whichever way one sorts; `back`: the whole order reversed.

    The key goes the way of the column unless unknowns keep the column from being read backwards: then one index serves
    both ways of a column that has no unknowns, and `(column DESC NULLS LAST, id)` the common way of the others.
    """
    down = descending != back
    if not field_of(model, column).null:
        return (f"-{column}", "-pk") if down else (column, "pk")
    nulls = {"nulls_first" if back else "nulls_last": True}
    return (F(column).desc(**nulls) if down else F(column).asc(**nulls)), "-pk" if back else "pk"


def field_of(model: type[Model], column: str) -> Field[Any, Any]:
    """The field of a column, over relations. Raises FieldDoesNotExist."""
    *relations, name = column.split("__")
    for relation in relations:
        model = model._meta.get_field(relation).related_model  # type: ignore[assignment]
    field = model._meta.get_field(name)
    assert isinstance(field, Field)
    return field


def stretch(
    ordered: QuerySet[M], start: int | None, stop: int | None, total: int | None = None
) -> QuerySet[M]:
    """Some rows of an ordered list. Their keys are found first: sorting whole rows takes several times as long.

    Where the list is known to have `total` rows, those of its second half are looked for from its end: what lies before them is
    passed over one by one.
    """
    keys = ordered.values("pk")
    if total is not None and start is not None and stop is not None and start > total // 2:
        keys, start, stop = keys.reverse(), total - min(stop, total), total - start
    return ordered.filter(pk__in=keys[start:stop])
