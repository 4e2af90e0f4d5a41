"""Turns the same file of many containers into columns of numbers, in few calls to C parsers.

250 containers on 8 NUMA nodes are 5,000 numbers, read once a second or more; one `int()` each would cost more than
everything else together. Every shortcut gives None where the files are not of the usual form, and the caller then takes
them one by one.
"""

from __future__ import annotations

import re
from operator import add, methodcaller
from typing import Annotated

import msgspec

LARGEST = (1 << 62) - 1
"""Larger numbers are not believed, so that the sum of two still fits the wire."""
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
_flat = msgspec.json.Decoder(list[Count])
_rows = msgspec.json.Decoder(list[list[Count]])
_COMMAS = bytes.maketrans(b" =", b",,")
_USAGE = b"usage_usec "
_is_usage = methodcaller("startswith", _USAGE)
_is_first = methodcaller("startswith", b"anon N")
_is_second = methodcaller("startswith", b"file N")
_NUMBER = re.compile(rb"N(\d+)=(\d+)")


def whole(data: bytes | None) -> int | None:
    """One file that holds a whole number."""
    data = (data or b"").strip(b"\0 \t\r\n")
    return int(data) if data.isdigit() and len(data) < 19 else None


def wholes(files: list[bytes]) -> list[int] | None:
    """Files that hold a whole number each; JSON allows the line ends between them."""
    try:
        found = _flat.decode(b"[" + b",".join(files) + b"]")
    except msgspec.DecodeError:
        return None
    return found if len(found) == len(files) else None


def first_values(files: list[bytes]) -> list[int] | None:
    """`usage_usec`, the first line of `cpu.stat`."""
    if not all(map(_is_usage, files)):
        return None
    return wholes([data[11 : data.find(b"\n")] for data in files])


def pages(files: list[bytes]) -> dict[int, list[int]] | None:
    """Bytes by NUMA node from `memory.numa_stat` of version 2, whose first two lines are `anon` and `file`.

    `anon N0=5 N1=6` becomes the row `[0,0,5,1,6]` of one JSON text: labels and values take turns.
    """
    lines = [line for data in files for line in data.split(b"\n", 2)[:2]]
    if not all(map(_is_first, lines[0::2])) or not all(map(_is_second, lines[1::2])):
        return None
    try:
        rows = _rows.decode(b"[[0" + b"],[0".join(lines).translate(_COMMAS, b"Nanofile") + b"]]")
    except msgspec.DecodeError:
        return None
    if not lines or set(map(len, rows)) != {len(rows[0])}:
        return None
    anon, cache = list(zip(*rows[0::2], strict=True)), list(zip(*rows[1::2], strict=True))
    found: dict[int, list[int]] = {}
    for label, first, second in zip(anon[1::2], anon[2::2], cache[2::2], strict=True):
        found[label[0]] = list(map(add, first, second))
    return found if anon[1::2] == cache[1::2] == [(label,) * len(files) for label in found] else None


def pages_v2(data: bytes) -> dict[int, int] | None:
    """One `memory.numa_stat` of version 2, in bytes (Documentation/admin-guide/cgroup-v2.rst)."""
    return _sum([line for line in data.split(b"\n") if line.startswith((b"anon ", b"file "))], 1)


def pages_v1(data: bytes, page_size: int) -> dict[int, int] | None:
    """One of version 1, in pages (Documentation/admin-guide/cgroup-v1/memory.rst 5.6), groups below included if told."""
    lines = {line.partition(b"=")[0]: line for line in data.split(b"\n")}
    prefix = b"hierarchical_" if b"hierarchical_anon" in lines else b""
    return _sum([lines.get(prefix + name, b"") for name in (b"anon", b"file")], page_size)


def _sum(lines: list[bytes], unit: int) -> dict[int, int] | None:
    found: dict[int, int] = {}
    for line in lines:
        for node, amount in _NUMBER.findall(line):
            found[int(node)] = found.get(int(node), 0) + int(amount) * unit
    return found if all(amount <= LARGEST for amount in found.values()) and found else None
