"""Pictures with at most 256 colours: a third of the size, and no difference that an eye finds on a screen picture."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import numpy as np
from playwright.sync_api import Page

PIXELS = """async source => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [image.width, image.height];
  const pen = canvas.getContext('2d');
  pen.drawImage(image, 0, 0);
  const bytes = pen.getImageData(0, 0, image.width, image.height).data;
  let text = '';
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return [image.width, image.height, btoa(text)];
}"""
COLOURS = 256


def shrink(page: Page, file: Path) -> None:
    """Writes the picture again with its 256 most telling colours; `page` only lends its decoder."""
    source = "data:image/png;base64," + base64.b64encode(file.read_bytes()).decode()
    width, height, text = page.evaluate(PIXELS, source)
    pixels = np.frombuffer(base64.b64decode(text), np.uint8).reshape(-1, 4)[:, :3].astype(np.int32)
    found, inverse, counts = np.unique(
        pixels[:, 0] << 16 | pixels[:, 1] << 8 | pixels[:, 2], return_inverse=True, return_counts=True
    )
    # The most frequent colour of each of the most frequent kinds (4 bits a channel): a small green dot stays green.
    order = np.argsort(-counts, kind="stable")
    kinds = (found >> 12 & 0xF00) | (found >> 8 & 0xF0) | (found >> 4 & 0xF)
    _, first = np.unique(kinds[order], return_index=True)
    totals = np.bincount(kinds, weights=counts, minlength=4096)
    best = order[first]
    kept = found[best[np.argsort(-totals[kinds[best]], kind="stable")[:COLOURS]]]
    table = np.stack([kept >> 16, kept >> 8 & 255, kept & 255], axis=1)
    rare = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1)
    nearest = np.concatenate(
        [((part[:, None] - table[None]) ** 2).sum(axis=2).argmin(axis=1) for part in np.array_split(rare, 64)]
    )
    rows = nearest.astype(np.uint8)[inverse].reshape(height, width)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [(b"IHDR", head), (b"PLTE", table.astype(np.uint8).tobytes())]
    parts += [(b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts))


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
