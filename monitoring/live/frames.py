"""Binary frames of the overview: planes of one byte per NUMA node.

Layout, numbers little-endian:

    offset  size  what
    0       2     "NW"
    2       1     version, 1
    3       1     type: 0 = full, 1 = delta
    4       4     epoch (u32): another one = another hub, forget everything
    8       4     sequence (u32): a delta follows the frame with the number before it, else there is a gap
    12      4     position of the first cell (u32), 0 so far
    16      4     number of cells (u32)
    20      8     when the newest data came (f64, seconds since 1970)
    28            plane `pinned`, then plane `busy`

A plane in a full frame is one byte per cell. In a delta frame it is a bitmap of the changed cells, ceil(cells / 8)
bytes with the lowest bit first, and then one byte per changed cell in ascending order. A byte is a share in steps of
half a percent: 200 = 1, 255 = unknown (`hot.UNIT`, `hot.UNKNOWN`). The cells of a node are its NUMA nodes in ascending
order of their ids, beginning at `Node.slot`.
"""

from __future__ import annotations

import struct

import numpy as np

from monitoring.hot import Planes

HEADER = struct.Struct("<2sBBIIIId")
MAGIC, VERSION = b"NW", 1
FULL, DELTA = 0, 1
LIMIT = 64 * 1024
"""Largest delta. What does not fit stays different and comes with the next tick."""


def full(planes: Planes, epoch: int, sequence: int, taken: float) -> bytes:
    """All cells."""
    size = len(planes.busy)
    header = HEADER.pack(MAGIC, VERSION, FULL, epoch, sequence, 0, size, taken)
    return b"".join((header, planes.pinned.tobytes(), planes.busy.tobytes()))


def delta(sent: Planes, now: Planes, epoch: int, sequence: int, taken: float, start: int = 0) -> bytes:
    """What changed between two states of the same length; `sent` is brought to what the receiver then has.

    Cells from `start` on come first where not all fit.
    """
    size = len(now.busy)
    room = LIMIT - HEADER.size - 2 * ((size + 7) // 8)
    parts = [HEADER.pack(MAGIC, VERSION, DELTA, epoch, sequence, 0, size, taken)]
    for before, after in ((sent.pinned, now.pinned), (sent.busy, now.busy)):
        changed = np.flatnonzero(before != after)
        if len(changed) > room:
            split = int(np.searchsorted(changed, start % size))
            changed = np.sort(np.roll(changed, -split)[: max(room, 0)])
        room -= len(changed)
        marks = np.zeros(size, bool)
        marks[changed] = True
        before[changed] = after[changed]
        parts += [np.packbits(marks, bitorder="little").tobytes(), after[changed].tobytes()]
    return b"".join(parts)
