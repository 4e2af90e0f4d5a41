"""Files that stay open between readings: a kernel file is made anew for each `pread` at offset 0.

A group that has ended answers ENODEV. The number of descriptors is bounded; beyond it files are opened for each reading.
"""

from __future__ import annotations

import os
import resource

from numaagent.readers.files import GONE, Files, Source

SPARE_DESCRIPTORS = 256
"""Descriptors left for connections and the slower readers."""
MAX_DESCRIPTORS = 6000
_BUFFER = 4096
_LARGE = 1 << 16


def descriptor_budget() -> int:
    """How many descriptors may stay open; raises the process's soft limit to its hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS + SPARE_DESCRIPTORS
    most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    allowed = wanted if soft == resource.RLIM_INFINITY else min(soft, wanted)
    return max(allowed - SPARE_DESCRIPTORS, 0)


class Kept:
    """Files that stay open between readings."""

    def __init__(self, files: Files, budget: int) -> None:
        self._files = files
        self._budget = budget
        self._open: dict[str, int] = {}
        self._missing: set[str] = set()
        self._columns: dict[int, list[int]] = {}
        self.ended = False
        """Whether a group was found to have ended since this was last reset."""

    def data(self, source: Source, path: str) -> bytes | None:
        """The file's content now; None where there is none, which is a problem only if it is more than missing."""
        if path in self._missing:
            return None
        descriptor = self._open.get(path)
        if descriptor is not None:
            try:
                data = os.pread(descriptor, _BUFFER, 0)
                return data if len(data) < _BUFFER else os.pread(descriptor, _LARGE, 0)
            except OSError:
                self._drop(path)  # its group has ended; a new one may have the same name
        try:
            return self._first(path)
        except OSError as error:
            if error.errno in GONE:
                self._gone(path)
            source.refused(path, error, required=False)
            return None

    def column(self, source: Source, paths: list[str], size: int) -> list[bytes | None]:
        """The first `size` bytes of many files at once; None where there is none.

        Once all of them are open (or known to be missing) a column is one loop over descriptors. `paths` must stay the
        same list from call to call; `watch` forgets it.
        """
        descriptors = self._columns.get(id(paths))
        if descriptors is not None:
            try:
                return [os.pread(each, size, 0) if each >= 0 else None for each in descriptors]
            except OSError:
                self._columns.clear()  # one has ended: find out which
        found = [self.data(source, path) for path in paths]
        if all(path in self._open or path in self._missing for path in paths):
            self._columns[id(paths)] = [self._open.get(path, -1) for path in paths]
        return found

    def watch(self, paths: set[str]) -> None:
        """Closes what is not read any more, and looks anew for what was missing."""
        for path in self._open.keys() - paths:
            self._drop(path)
        self._columns.clear()
        self.retry()

    def retry(self) -> None:
        """Looks anew for what was missing: a controller may have been turned on."""
        self.ended = False
        if self._missing:
            self._missing.clear()
            self._columns.clear()

    def close(self) -> None:
        """Closes all of them."""
        self.watch(set())

    def _first(self, path: str) -> bytes:
        descriptor = self._files.open(path)
        try:
            data = os.pread(descriptor, _LARGE, 0)
        except OSError:
            os.close(descriptor)
            raise
        if len(self._open) < self._budget:
            self._open[path] = descriptor
        else:
            os.close(descriptor)
        return data

    def _drop(self, path: str) -> None:
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            self._columns.clear()
            os.close(descriptor)

    def _gone(self, path: str) -> None:
        """Either the group has ended, or it never had the file (a controller that is off)."""
        self._missing.add(path)
        if not os.path.isdir(path.rpartition("/")[0]):
            self.ended = True
