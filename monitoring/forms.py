"""What people fill in on pages beside filters: the stretch of the past that a history shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from monitoring.figures import charts

MOST_DAYS = 3660
"""Nothing is kept for longer (`Settings.quarter_days`)."""


class Span(msgspec.Struct, frozen=True):
    """A stretch of the past."""

    start: datetime
    end: datetime
    """No later than now."""
    query: dict[str, str]
    """The same as parameters of an address."""
    over: bool = False
    """Its end has passed: what it shows does not change any more."""


class MomentInput(forms.DateTimeInput):
    """A browser's own picker, which knows no zones: it shows a moment in the zone of the pages."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(
            attrs={"class": "form-control form-control-sm", "step": "1", "max": "9999-12-31T23:59:59"}
        )

    def format_value(self, value: Any) -> str | None:
        try:
            moment = parse_datetime(str(value))
            here = timezone.make_naive(moment) if moment and timezone.is_aware(moment) else moment
        except (ValueError, OverflowError):
            return None
        return here.strftime("%Y-%m-%dT%H:%M:%S") if here else None


class Moment(forms.DateTimeField):
    """A moment in ISO 8601; without a zone it is in the zone that pages show."""

    widget = MomentInput

    def to_python(self, value: Any) -> datetime | None:
        try:
            found: datetime | None = super().to_python(value)
            return found and found.astimezone(UTC)
        except (ValidationError, OverflowError):
            raise ValidationError(
                _(
                    "“%(value)s” is no date and time. Write it as 2026-01-31T09:30, or with a zone as 2026-01-31T09:30Z."
                ),
                params={"value": str(value)[:40]},
            ) from None


class SpanForm(forms.Form):
    """`range` names a stretch that ends now; `from`, with or without `to`, takes its place."""

    def __init__(self, query: Mapping[str, Any], now: datetime) -> None:
        super().__init__(query)
        self.now = now
        presets = [(name, name) for name in charts.RANGES]
        refused = _("There is no range “%%(value)s”. There are: %(ranges)s.") % {
            "ranges": ", ".join(charts.RANGES)
        }
        self.fields["range"] = forms.ChoiceField(
            required=False, choices=presets, label=_("Time range"), error_messages={"invalid_choice": refused}
        )
        self.fields["from"] = Moment(required=False, label=_("From"))
        self.fields["to"] = Moment(required=False, label=_("To"))

    def clean(self) -> dict[str, Any]:
        found = self.cleaned_data
        start, end = found.get("from"), found.get("to")
        if self.errors or (start is None and end is None):
            return found
        if start is None:
            self.add_error("from", _("A moment to begin with is missing."))
        elif start >= self.now:
            self.add_error("from", _("This lies in the future, of which there is no history."))
        elif start < self.now - timedelta(days=MOST_DAYS):
            self.add_error(
                "from",
                ValidationError(
                    _("This is more than %(days)s days ago, and nothing is kept for so long."),
                    params={"days": MOST_DAYS},
                ),
            )
        elif end is not None and end <= start:
            self.add_error("to", _("This is not later than “From”."))
        return found

    @property
    def moments(self) -> list[forms.BoundField]:
        return [self["from"], self["to"]]

    @property
    def preset(self) -> str:
        """Name of the stretch that ends now; "" = moments are given."""
        if self.cleaned_data["from"]:
            return ""
        return self.cleaned_data.get("range") or charts.DEFAULT_RANGE

    def span(self) -> Span | None:
        """What is asked for; None = it cannot be read, and `errors` says why."""
        if not self.is_valid():
            return None
        if self.preset:
            start = self.now - timedelta(seconds=charts.RANGES[self.preset])
            return Span(start, self.now, {"range": self.preset})
        start, end = self.cleaned_data["from"], self.cleaned_data["to"]
        query = {"from": _iso(start)} | ({"to": _iso(end)} if end else {})
        return Span(start, min(end or self.now, self.now), query, over=bool(end) and end <= self.now)


def _iso(moment: datetime) -> str:
    return timezone.localtime(moment).isoformat()
