"""Writes metrics as Prometheus text 0.0.4 or OpenMetrics 1.0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
Kind = Literal["gauge", "counter", "info"]
Value = float | int


class Family(msgspec.Struct, frozen=True):
    """A metric: its name without `_total` or `_info`, and what it means. `unit`: the suffix of the name, if it has one."""

    name: str
    kind: Kind
    help: str
    unit: str = ""

    @property
    def sample(self) -> str:
        """Name of its samples."""
        return self.name + {"gauge": "", "counter": "_total", "info": "_info"}[self.kind]


def wants_open(accept: str) -> bool:
    """Whether a caller asks for OpenMetrics and does not put the text format before it."""
    offered = {}
    for part in accept.split(","):
        kind, _, rest = part.strip().partition(";")
        weight = next((each.strip()[2:] for each in rest.split(";") if each.strip().startswith("q=")), "1")
        offered[kind.strip().lower()] = float(weight) if weight.replace(".", "", 1).isdecimal() else 0.0
    return offered.get("application/openmetrics-text", 0.0) >= max(offered.get("text/plain", 0.0), 0.001)


def labels(pairs: Mapping[str, str]) -> str:
    """Labels between braces, escaped."""
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in pairs.items()) + "}"


def escaped(value: str) -> str:
    """A label's value: backslash, quote and line end are escaped."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: Value) -> str:
    """A value; whole numbers stay exact."""
    return str(value) if isinstance(value, int) else repr(float(value))


def block(family: Family, samples: Iterable[tuple[str, Value]], openmetrics: bool) -> str:
    """A family with its samples, (labels, value) each; empty text where there are none."""
    name = family.sample
    lines = [f"{name}{labelled} {number(value)}\n" for labelled, value in samples]
    return head(family, openmetrics) + "".join(lines) if lines else ""


def head(family: Family, openmetrics: bool) -> str:
    """The lines that describe a family. Only OpenMetrics knows units and infos."""
    text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    name = family.name if openmetrics else family.sample
    kind = "gauge" if family.kind == "info" and not openmetrics else family.kind
    unit = f"# UNIT {name} {family.unit}\n" if family.unit and openmetrics else ""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{unit}"
