"""The words in which the kubelet refuses quantities, durations and lists of CPUs.

Rules: apimachinery pkg/api/resource/quantity.go `parseQuantityString`; Go time.ParseDuration; k8s.io/utils cpuset.Parse.
"""

from __future__ import annotations

import re

from numacore.cpuset import MAX_ID, CpuSet
from numacore.kubelet.options import quoted

FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX_WRONG = "unable to parse quantity's suffix"
NUMERIC_WRONG = "unable to parse numeric part of quantity"
_SHAPE = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_SUFFIX = re.compile(r"(?:[numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?", re.ASCII)
_DURATION = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+", re.ASCII)
_NUMBER = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)


def quantity_fault(text: str) -> str | None:
    """Go's error for a text that is no quantity; None = it is one."""
    shape = _SHAPE.fullmatch(text)
    if not text or shape is None:
        return FORMAT_WRONG
    if not _SUFFIX.fullmatch(shape[1]):
        return SUFFIX_WRONG
    if not any(each.isdigit() for each in text[: shape.start(1)]):
        return NUMERIC_WRONG
    return None


def duration_fault(text: str) -> str | None:
    """Go's error for a text that is no duration; None = it is one."""
    if text in ("0", "+0", "-0") or _DURATION.fullmatch(text):
        return None
    rest = text[1:] if text[:1] in ("+", "-") else text
    invalid = f"time: invalid duration {quoted(text)}"
    if not rest:
        return invalid
    while rest:
        number = _NUMBER.match(rest)
        if number is None:
            return invalid
        rest = rest[number.end() :]
        unit = re.match(r"[^.0-9]*", rest)
        name = unit[0] if unit else ""
        if not name:
            return f"time: missing unit in duration {quoted(text)}"
        if name not in ("ns", "us", "µs", "μs", "ms", "s", "m", "h"):
            return f"time: unknown unit {quoted(name)} in duration {quoted(text)}"
        rest = rest[len(name) :]
    return invalid


def seconds(text: str) -> float:
    """A duration in seconds; what is none counts as 0."""
    units = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    total = sum(
        float(number) * units[unit]
        for number, unit in re.findall(r"([0-9]*\.?[0-9]+|[0-9]+\.)(ns|us|µs|μs|ms|s|m|h)", text, re.ASCII)
    )
    return -total if text.startswith("-") else total


def cpus_fault(text: str) -> str | None:
    """The error of the kubelet's cpuset.Parse; None = it is a list of CPUs."""
    if not text:
        return None
    for part in text.split(","):
        bounds = part.split("-", 1)
        for bound in bounds:
            if fault := _atoi_fault(bound):
                return fault
        if len(bounds) == 2 and int(bounds[0]) > int(bounds[1]):
            return f"invalid range {quoted(part)} ({int(bounds[0])} > {int(bounds[1])})"
    return None


def cpus(text: str) -> CpuSet:
    """The CPUs of a list that `cpus_fault` finds nothing wrong with, "+1" among them. No machine has an id above `cpuset.MAX_ID`, which
    stands for all of those."""
    bits = 0
    for part in text.split(",") if text else ():
        low, _, high = part.partition("-")
        first, last = (min(int(each), MAX_ID) for each in (low, high or low))
        bits |= (1 << last + 1) - (1 << first)
    return CpuSet.of_bits(bits)


def _atoi_fault(text: str) -> str | None:
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return f"strconv.Atoi: parsing {quoted(text)}: invalid syntax"
    if int(text) not in _INT64:
        return f"strconv.Atoi: parsing {quoted(text)}: value out of range"
    return None
