"""The small formats in which the kernel prints: sizes, `name value` lines, CPU descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from numacore.cpuset import MAX_ID

_UNITS = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
}
_SIZE = re.compile(r"(\d+)\s*([A-Za-z]*)", re.ASCII)
_NUMBERED = {name: re.compile(name + r"(\d+)", re.ASCII) for name in ("cpu", "node", "index", "memory_tier")}


def size(text: str) -> int | None:
    """Bytes of `32K`, `16384 kB`, `2 MB` or a bare number; None if it is none of them."""
    match = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(match[2].lower()) if match else None
    return int(match[1]) * unit if match and unit and len(match[1]) < 16 else None


def numbered(kind: str, names: list[str]) -> list[int]:
    """The numbers of `cpu0`, `cpu12` and the like, ascending; other names do not count."""
    matches = (_NUMBERED[kind].fullmatch(name) for name in names)
    return sorted(number for match in matches if match and (number := int(match[1][:9])) <= MAX_ID)


def meminfo(text: str) -> dict[str, int]:
    """`/proc/meminfo` or a node's `meminfo` ("Node 0 MemTotal: 1 kB") in bytes; counts stay counts."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, colon, value = line.rpartition(":")
        amount = size(value) if colon else None
        if amount is not None:
            found[name.split()[-1] if name.split() else ""] = amount
    return found


def counters(text: str) -> dict[str, int]:
    """Lines of `name value` with whole numbers."""
    pairs = (line.split() for line in text.splitlines())
    return {
        pair[0]: int(pair[1])
        for pair in pairs
        if len(pair) == 2 and pair[1].isdecimal() and len(pair[1]) < 20
    }


def cpuinfo(text: str) -> Iterator[dict[str, str]]:
    """`/proc/cpuinfo` as one table for each block of lines."""
    for block in re.split(r"\n\s*\n", text):
        pairs = (line.partition(":") for line in block.splitlines())
        table = {name.strip(): value.strip() for name, colon, value in pairs if colon}
        if table:
            yield table
