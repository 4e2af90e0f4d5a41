"""Values of a file against the types of KubeletConfiguration: what Go's JSON decoder refuses, and what it passes over.

Rules: sigs.k8s.io/json decode.go (names match to the letter); encoding/json, which reads the configuration again after drop-ins, takes
names in any case.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import lru_cache
from math import inf, isfinite
from typing import Any

import msgspec

from numacore.kubelet.checks import quantities
from numacore.kubelet.checks.tables import FIELDS

_ROOT = "KubeletConfiguration"
_INTEGERS = {
    "int32": range(-(1 << 31), 1 << 31),
    "int64": range(-(1 << 63), 1 << 63),
    "uint32": range(1 << 32),
}
_INDEX = re.compile(r"\[[0-9]+\]")


class TypeFault(msgspec.Struct, frozen=True):
    """A value that the field does not take. `at_once`: the decoder stops there, else it goes on and tells the first at the end."""

    path: str
    words: str
    value: Any
    wanted: str
    at_once: bool = False


class Decoded(msgspec.Struct, frozen=True):
    """What the decoder makes of a file: fields that it knows and that are not null."""

    value: dict[str, Any]
    faults: tuple[TypeFault, ...] = ()
    """In the order in which the kubelet would tell them: it tells the first."""
    unknown: tuple[str, ...] = ()


def known_fields(minor: int) -> frozenset[str]:
    return _known(minor)


@lru_cache(maxsize=32)
def _known(minor: int) -> frozenset[str]:
    return frozenset(
        path for path, (_, since, until) in FIELDS.items() if minor >= since and (not until or minor < until)
    )


@lru_cache(maxsize=32)
def _children(minor: int) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for path in _known(minor):
        parent, _, name = path.rpartition(".")
        if not name.endswith(("[]", "{}")):
            found.setdefault(parent, []).append(name)
    return {parent: tuple(sorted(names)) for parent, names in found.items()}


def decode(value: dict[str, Any], minor: int, *, any_case: bool = False, in_order: bool = False) -> Decoded:
    """`any_case`: field names match in any case, as after drop-ins. `in_order`: keys come as they stand (JSON), not sorted (YAML)."""
    reader = _Reader(minor, any_case, in_order)
    made = reader.struct(value, "", "")
    faults = sorted(reader.faults, key=lambda fault: not fault.at_once)
    return Decoded(made, tuple(faults), tuple(reader.unknown))


class _Reader:
    def __init__(self, minor: int, any_case: bool, in_order: bool) -> None:
        self.minor, self.any_case, self.in_order = minor, any_case, in_order
        self.faults: list[TypeFault] = []
        self.unknown: list[str] = []

    def struct(self, value: dict[str, Any], kind: str, path: str) -> dict[str, Any]:
        """`kind`: path in the table, `path`: the same with indexes."""
        names = _children(self.minor).get(kind, ())
        made: dict[str, Any] = {}
        for key, given in self._pairs(value):
            here = f"{path}.{key}" if path else key
            name = self._match(key, names)
            if name is None:
                self.unknown.append(here)
            elif given is not None:
                read = self.value(given, f"{kind}.{name}" if kind else name, here)
                before = made.get(name)
                both_maps = isinstance(before, dict) and isinstance(read, dict)
                made[name] = before | read if both_maps and isinstance(before, dict) else read
        return {name: each for name, each in made.items() if each is not None}

    def _pairs(self, value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        yield from value.items() if self.in_order else sorted(value.items())

    def _match(self, key: str, names: tuple[str, ...]) -> str | None:
        if key in names:
            return key
        if self.any_case:
            return next((name for name in names if name.casefold() == key.casefold()), None)
        return None

    def value(self, given: Any, kind: str, path: str) -> Any:
        """The value as the field's type; None for what it does not take, or null."""
        if given is None:
            return None
        if isinstance(given, float) and not isfinite(given):
            sign = {inf: "+Inf", -inf: "-Inf"}.get(given, "NaN")
            self.faults.append(TypeFault(path, f"json: unsupported value: {sign}", given, "number", True))
            return None
        wanted, _, go_type = FIELDS[kind][0].partition(" ")
        match wanted:
            case "struct":
                return (
                    self.struct(given, kind, path)
                    if isinstance(given, dict)
                    else self._wrong(given, go_type, kind, path)
                )
            case "list":
                if not isinstance(given, list):
                    return self._wrong(given, go_type, kind, path)
                each = [self.value(one, kind + "[]", f"{path}[{at}]") for at, one in enumerate(given)]
                return [self._zero(kind + "[]") if one is None else one for one in each]
            case "map":
                if not isinstance(given, dict):
                    return self._wrong(given, go_type, kind, path)
                pairs = (
                    (name, self.value(one, kind + "{}", f"{path}[{name}]"))
                    for name, one in self._pairs(given)
                )
                return {name: one if one is not None else self._zero(kind + "{}") for name, one in pairs}
            case "string" | "bool":
                fits = isinstance(given, str if wanted == "string" else bool)
                return given if fits else self._wrong(given, go_type or wanted, kind, path)
            case "float64":
                fits = isinstance(given, int | float) and not isinstance(given, bool)
                return given if fits else self._wrong(given, wanted, kind, path)
            case _ if wanted in _INTEGERS:
                return self._integer(given, wanted, go_type or wanted, kind, path)
        return self._custom(given, wanted, kind, path)

    def _zero(self, kind: str) -> Any:
        """What null becomes in a map or a list."""
        wanted = FIELDS[kind][0].partition(" ")[0]
        zeros: dict[str, Any] = {
            "string": "",
            "bool": False,
            "resource.Quantity": "0",
            "struct": {},
            "list": [],
        }
        return zeros.get(wanted, 0)

    def _integer(self, given: Any, wanted: str, go_type: str, kind: str, path: str) -> Any:
        if isinstance(given, bool) or not isinstance(given, int | float):
            return self._wrong(given, go_type, kind, path)
        if given != int(given) or int(given) not in _INTEGERS[wanted]:
            return self._wrong(given, go_type, kind, path, f"number {_shown(given)}")
        return int(given)

    def _custom(self, given: Any, wanted: str, kind: str, path: str) -> Any:
        """Types that read themselves: durations, quantities, times."""
        if wanted in ("v1.Duration", "v1.TimeOrMetaDuration"):
            if not isinstance(given, str):
                if wanted == "v1.TimeOrMetaDuration" and isinstance(given, int | float):
                    return given
                return self._wrong(given, "string", kind, path, at_once=True, wanted="duration")
            fault = quantities.duration_fault(given)
        elif wanted in ("resource.Quantity", "resource.QuantityValue"):
            given = given if isinstance(given, str) else _shown(given)
            fault = quantities.quantity_fault(given)
        else:
            return given
        if fault is None:
            return given
        self.faults.append(
            TypeFault(path, fault, given, "duration" if "Duration" in wanted else "quantity", True)
        )
        return None

    def _wrong(
        self,
        given: Any,
        go_type: str,
        kind: str,
        path: str,
        found: str = "",
        *,
        at_once: bool = False,
        wanted: str = "",
    ) -> None:
        words = (
            f"json: cannot unmarshal {found or _kind(given)} into Go struct field {_within(kind)}."
            f"{_INDEX.sub('', _dotted(kind))} of type {go_type}"
        )
        self.faults.append(TypeFault(path, words, given, wanted or go_type, at_once))


def _within(kind: str) -> str:
    """The Go struct that a field stands in."""
    parent = kind.rstrip("[]{}").rpartition(".")[0]
    while parent and not FIELDS[parent][0].startswith("struct "):
        parent = parent.rpartition(".")[0]
    return FIELDS[parent][0].rpartition(".")[2] if parent else _ROOT


def _dotted(kind: str) -> str:
    return kind.replace("[]", "").replace("{}", "")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    return str(value)


def nearest(path: str, minor: int) -> str | None:
    """The field that an unknown one probably means: the same in another case, one that stands elsewhere, or a slip of a few letters."""
    parent, _, name = _INDEX.sub("[]", path).rpartition(".")
    names = _children(minor).get(parent, ())
    for each in names:
        if each.casefold() == name.casefold():
            return each
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.8)
    return close[0] if close else None
