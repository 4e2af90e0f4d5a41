"""Whole numbers as few bytes: differences, zig-zag, bytes of equal weight side by side, zstd.

Neighbours along the last axis are alike (a counter's next sample, the next NUMA node's), so that their differences are
small; with small numbers most high bytes are 0, and side by side they vanish.
"""

from __future__ import annotations

import struct
import threading

import numpy as np
import zstandard
from numpy.typing import NDArray

VERSION = 1
HEADER = struct.Struct("<BBII")
"""version, bytes of one number, rows, columns"""
MOST = 64 * 1024 * 1024
"""Largest block that is unpacked, bytes."""
WIDTHS = (1, 2, 4, 8)

Numbers = NDArray[np.int64]


class CodecError(ValueError):
    """Bytes that are no block of this codec; the message says why."""


def pack(rows: Numbers, level: int = 3) -> bytes:
    """A two-dimensional array as bytes; numbers from -2**61 to 2**61."""
    steps = np.diff(rows, axis=1, prepend=0)
    folded = ((steps << 1) ^ (steps >> 63)).astype(np.uint64)
    width = _width(int(folded.max(initial=0)))
    lanes = folded.astype(f"<u{width}").reshape(-1).view(np.uint8).reshape(-1, width).T
    body = zstandard.ZstdCompressor(level=level).compress(np.ascontiguousarray(lanes).tobytes())
    return HEADER.pack(VERSION, width, *rows.shape) + body


def unpack(data: bytes) -> Numbers:
    """The array. Raises CodecError."""
    try:
        version, width, rows, columns = HEADER.unpack_from(data)
    except struct.error as error:
        raise CodecError(f"a block of {len(data)} bytes has no header") from error
    size = rows * columns * width
    if version != VERSION or width not in WIDTHS or size > MOST:
        raise CodecError(f"a block of version {version} with {rows} x {columns} numbers of {width} bytes")
    try:
        raw = _decompressor().decompress(bytes(data[HEADER.size :]), max_output_size=max(size, 1))
    except zstandard.ZstdError as error:
        raise CodecError(f"a block that cannot be unpacked: {error}") from error
    if len(raw) != size:
        raise CodecError(f"a block of {len(raw)} bytes where {size} are announced")
    lanes = np.frombuffer(raw, np.uint8).reshape(width, rows * columns).T
    folded = np.ascontiguousarray(lanes).view(f"<u{width}").reshape(rows, columns).astype(np.uint64)
    steps = (folded >> np.uint64(1)).astype(np.int64) ^ -(folded & np.uint64(1)).astype(np.int64)
    return np.cumsum(steps, axis=1)


def _decompressor() -> zstandard.ZstdDecompressor:
    """One for each thread: to make it takes as long as to unpack a small block, and threads may not share one."""
    if not hasattr(_own, "decompressor"):
        _own.decompressor = zstandard.ZstdDecompressor()
    found: zstandard.ZstdDecompressor = _own.decompressor
    return found


_own = threading.local()


def _width(largest: int) -> int:
    return next(width for width in WIDTHS if largest < 1 << (8 * width))
