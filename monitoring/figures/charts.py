"""History as Plotly figures: plain dicts, a line for each NUMA node, gaps stay gaps. Colours are the browser's theme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Protocol

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

RANGES = {  # seconds
    "10m": 600,
    "30m": 1800,
    "1h": 3600,
    "3h": 10_800,
    "6h": 21_600,
    "1d": 86_400,
    "3d": 259_200,
    "7d": 604_800,
    "14d": 1_209_600,
}
DEFAULT_RANGE = "1h"
# Distinct by hue and by brightness, so that they can be told apart without seeing colours; beyond these, dashes help.
COLOURS = ("#2f63bb", "#d98200", "#2b8a5c", "#a03fb0", "#0b8fa8", "#b8442e", "#6b7280", "#7a6a00")
DASHES = ("solid", "dash", "dot", "dashdot")
TITLES: dict[str, Promise] = {
    "busy": gettext_lazy("CPU busy by NUMA node"),
    "memory_used": gettext_lazy("Memory in use by NUMA node"),
    "remote_pages_rate": gettext_lazy("Pages placed for CPUs of other NUMA nodes"),
    "crossing": gettext_lazy("Cross-NUMA containers"),
}
FORMATS = {"busy": ".0%", "memory_used": "", "remote_pages_rate": "~s", "crossing": "d"}
UNITS: dict[str, Promise | str] = {
    "busy": "",
    "memory_used": "GiB",
    "remote_pages_rate": gettext_lazy("pages per second"),
    "crossing": "",
}
SCALES = {"memory_used": 1024**3}
"""What a value is divided by before it is drawn."""


class Series(Protocol):
    """What of a history selector's answer a chart needs: values by NUMA id, or of "node"; None = a gap."""

    @property
    def times(self) -> Sequence[datetime]: ...
    @property
    def values(self) -> Mapping[str, Sequence[float | None]]: ...


def chart(metric: str, series: Series) -> dict[str, Any]:
    """One metric over time, in the zone that pages show: Plotly draws a moment as it is written."""
    when = moments(series.times)
    lines = [line(place, key, when, series.values[key], metric) for place, key in enumerate(series.values)]
    return {"data": lines, "layout": layout(metric, several=len(lines) > 1)}


def moments(times: Sequence[datetime]) -> dict[str, Any]:
    """Where values stand: the first moment and milliseconds between two, which is a tenth of the bytes of every moment, and no text to read
    for each. As a list where clocks were put forward or back in between, or steps differ."""
    offsets = {timezone.localtime(at).utcoffset() for at in (*times[:: 1 + len(times) // SOME], *times[-1:])}
    steps = {after - before for before, after in pairwise(times)}
    if len(offsets) == len(steps) == 1:
        return {"x0": timezone.localtime(times[0]).isoformat(), "dx": steps.pop() / MILLISECOND}
    return {"x": [timezone.localtime(at).isoformat() for at in times]}


MILLISECOND = timedelta(milliseconds=1)
SOME = 20
"""So many of the moments are asked for their clock, and the last: a year has two changes, half a year apart."""


def line(
    place: int, key: str, when: dict[str, Any], values: Sequence[float | None], metric: str
) -> dict[str, Any]:
    scale = SCALES.get(metric, 1)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": _("NUMA %(id)s") % {"id": key} if key.isdigit() else str(TITLES[metric]),
        **when,
        "y": [None if value is None else round(value / scale, 4) for value in values],
        "connectgaps": False,
        "line": {
            "width": 1.6,
            "color": COLOURS[place % len(COLOURS)],
            "dash": DASHES[place // len(COLOURS) % len(DASHES)],
        },
    }


def layout(metric: str, *, several: bool) -> dict[str, Any]:
    axis: dict[str, Any] = {
        "tickformat": FORMATS[metric],
        "rangemode": "tozero",
        "title": {"text": str(UNITS[metric])},
    }
    if metric == "busy":
        axis["range"] = [0, 1.02]
    return {
        "showlegend": several,
        "legend": {"orientation": "h", "y": -0.18},
        "margin": {"l": 58, "r": 12, "t": 8, "b": 36},
        "hovermode": "x unified",
        "xaxis": {"type": "date", "tickformat": "%H:%M\n%Y-%m-%d"},
        "yaxis": axis,
    }
