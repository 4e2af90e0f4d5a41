"""Writes files of a tree so that readers can neither see half of one nor lose it.

Readers keep files open and read them again, as one does with sysfs and cgroups; so a file that changes is written over
in place, its whole text with one call, and keeps its inode. Directories that come and go (containers) are made aside
and renamed into place whole.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from numacore.cpuset import CpuSet

STAGING = ".staging"
"""Where directories are made and taken down, below the root and outside everything that an exporter reads."""


def lines(values: Iterable[str]) -> str:
    """Texts as lines, each ended."""
    return "".join(f"{value}\n" for value in values)


def mask(cpus: CpuSet, width: int) -> str:
    """The kernel's mask format for a machine with room for `width` CPUs: 32-bit words, most significant first."""
    words = -(-width // 32)
    text = f"{cpus.bits:0{words * 8}x}"
    first = width % 32 or 32
    return ",".join([text[:8][8 - -(-first // 4) :], *(text[i : i + 8] for i in range(8, len(text), 8))])


class Tree:
    """The files below one root. Paths are relative to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._base = str(root)
        self._made: set[str] = set()
        self._same: dict[str, str] = {}
        self._written: dict[str, bytes] = {}

    def path(self, path: str) -> str:
        """The path on this machine."""
        return f"{self._base}/{path}"

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        """Writes a file that stays as it is, with its directories."""
        self.folder(path.rpartition("/")[0])
        _create(self.path(path), text.encode(), mode)

    def put_all(self, folder: str, values: dict[str, object]) -> None:
        """Writes several one-line files that stay as they are into one directory.

        A large machine has tens of thousands of them and few different texts: equal ones become one file with many
        names, which keeps a tree of 384 CPUs at 20 MB of page cache instead of 90.
        """
        self.folder(folder)
        for name, value in values.items():
            self._share(f"{self._base}/{folder}/{name}", f"{value}\n")

    def _share(self, path: str, text: str) -> None:
        first = self._same.get(text)
        try:
            if first is not None:
                os.link(first, path)
                return
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
        _create(path, text.encode(), 0o644)
        self._same[text] = path

    def link(self, path: str, target: str) -> None:
        """Makes a symbolic link."""
        self.folder(path.rpartition("/")[0])
        os.symlink(target, self.path(path))

    def folder(self, path: str) -> None:
        """Makes a directory and those above it."""
        if path not in self._made:
            os.makedirs(self.path(path), exist_ok=True)
            self._made.add(path)

    def keep(self, path: str, text: str) -> None:
        """Writes a file that changes: over its old text in place, and not at all if it stayed the same."""
        data = text.encode()
        if self._written.get(path) == data:
            return
        before = self._written.get(path)
        self._written[path] = data
        if before is None:
            self.put(path, text)
        else:
            _overwrite(self.path(path), data, len(before))

    def replace(self, path: str, text: str, mode: int = 0o600) -> None:
        """Writes a file that its owner replaces by renaming (state files of the kubelet)."""
        if self._written.get(path) == text.encode():
            return
        self._written[path] = text.encode()
        self.folder(path.rpartition("/")[0])
        made = self.path(path) + ".new"
        _create(made, text.encode(), mode)
        os.replace(made, self.path(path))

    def enter(self, staged: str, path: str) -> None:
        """Renames a directory that was made below `STAGING` into its place, so that it appears whole."""
        self.folder(path.rpartition("/")[0])
        os.rename(self.path(staged), self.path(path))
        self._forget(staged)

    def adopt(self, path: str, text: str) -> None:
        """Tells what a changing file holds that was made in a staged directory."""
        self._written[path] = text.encode()

    def leave(self, path: str) -> None:
        """Takes a directory or file away at once."""
        self.folder(STAGING)
        away = self.path(f"{STAGING}/gone")
        os.rename(self.path(path), away)
        if os.path.isdir(away) and not os.path.islink(away):
            shutil.rmtree(away)
        else:
            os.unlink(away)
        self._forget(path)

    def _forget(self, path: str) -> None:
        inside = path + "/"
        self._made = {made for made in self._made if made != path and not made.startswith(inside)}
        self._written = {k: v for k, v in self._written.items() if k != path and not k.startswith(inside)}


def _create(path: str, data: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)


def _overwrite(path: str, data: bytes, before: int) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(handle, data, 0)
        if len(data) < before:
            os.ftruncate(handle, len(data))
    finally:
        os.close(handle)
