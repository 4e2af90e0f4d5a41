"""What only the Planner's templates need."""

from __future__ import annotations

from typing import Literal

from django import template
from django.forms import BoundField, CheckboxInput, Select
from django.utils.safestring import SafeString

from monitoring.figures import plan, volcano

register = template.Library()


@register.filter
def control(field: BoundField, row: int | None = None) -> SafeString:
    """A field's input as the pages draw it; in a table it is named by its column and row."""
    kind = (
        "form-select form-select-sm"
        if isinstance(field.field.widget, Select)
        else "form-control form-control-sm"
    )
    if isinstance(field.field.widget, CheckboxInput):
        kind = "form-check-input"
    more: dict[str, str | bool] = {"class": kind}
    if row is not None:
        more["aria-label"] = f"{field.label} {row}"
    if field.errors:
        more["aria-invalid"] = "true"
    return field.as_widget(attrs=more)


@register.filter
def verdict_label(state: str) -> str:
    """A state in words."""
    return str(plan.STATES[state])


@register.filter
def stage_label(stage: Literal["filter", "predicate", "allocation", "score"]) -> str:
    """A step of Volcano in words."""
    return str(volcano.STAGES[stage])
