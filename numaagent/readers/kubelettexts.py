"""The text of the files that the kubelet was told to read, so that a change of them can be shown and prepared before it is made.

What may hold a password is not told: headers for static pods, and addresses with a name and password in them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from typing import Literal

from numaagent.readers.files import Files, read_all
from numacore.kubeletstate import KubeletFile

LIMIT = 128 * 1024
"""Bytes of a file, as in `yamlfile`; a kubelet's configuration has a few KiB."""
LIMIT_TOGETHER = 256 * 1024
"""Bytes of all texts of a node: they travel in one section of a snapshot."""
_HEADER = "staticpodurlheader"
_ESCAPED_KEY = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)+"\s*:')
_USER_IN_ADDRESS = re.compile(r"://[^/\s\"']*@")

Kind = Literal["file", "drop-in"]


def read(files: Files, places: Iterable[tuple[str, Kind]]) -> tuple[KubeletFile, ...]:
    """The files in the order of the kubelet. What fails is in the value; the reader of settings counts it."""
    found: list[KubeletFile] = []
    left = LIMIT_TOGETHER
    for path, kind in places:
        each = _read(files, path, kind, min(LIMIT, left))
        left -= len((each.text or "").encode())
        found.append(each)
    return tuple(found)


def _read(files: Files, path: str, kind: Kind, limit: int) -> KubeletFile:
    shown = files.shown(path)
    try:
        descriptor = files.open(path)
        try:
            data = read_all(descriptor, LIMIT + 1)
        finally:
            os.close(descriptor)
    except OSError:
        return KubeletFile(path=shown, kind=kind, withheld="unreadable")
    if len(data) > limit:
        return KubeletFile(path=shown, kind=kind, withheld="too-large")
    digest = hashlib.sha256(data).hexdigest()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return KubeletFile(path=shown, kind=kind, sha256=digest, withheld="not-text")
    if "\0" in text:
        return KubeletFile(path=shown, kind=kind, sha256=digest, withheld="not-text")
    if _secret(text):
        return KubeletFile(path=shown, kind=kind, sha256=digest, withheld="secret")
    return KubeletFile(path=shown, kind=kind, sha256=digest, text=text)


def _secret(text: str) -> bool:
    """Comments count too: a header that was taken out of use may still be somebody's password. So does a key that is written with
    escapes, which nobody needs and which could be that header."""
    return (
        _HEADER in text.casefold()
        or _USER_IN_ADDRESS.search(text) is not None
        or _ESCAPED_KEY.search(text) is not None
    )
