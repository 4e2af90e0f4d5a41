"""The running kubelet's command line, from `/proc/PID/cmdline`."""

from __future__ import annotations

from numaagent.config import Roots
from numaagent.readers.files import Files, Source

_NAMES = ("kubelet", "hyperkube")


class Finder:
    """Finds the kubelet once and looks whether it is still there after that."""

    def __init__(self, files: Files, roots: Roots) -> None:
        self._files = files
        self._roots = roots
        self._pid: str | None = None

    def command(self) -> list[str] | None:
        """The kubelet's arguments, its own name first; None where none runs (or processes are hidden from us)."""
        source = self._files.reader("kubelet-process")
        if self._pid is not None and (found := self._arguments(source, self._pid)):
            return found
        self._pid = None
        for pid in filter(str.isdecimal, source.names(self._roots.proc)):
            if found := self._arguments(source, pid):
                self._pid = pid
                return found
        return None

    def _arguments(self, source: Source, pid: str) -> list[str] | None:
        # The short name decides first: it costs one read for each of thousands of processes.
        if source.text(f"{self._roots.proc}/{pid}/comm") not in _NAMES:
            return None
        data = source.data(f"{self._roots.proc}/{pid}/cmdline") or b""
        words = data.decode(errors="replace").rstrip("\0").split("\0")
        return words if words[0].rpartition("/")[2] in _NAMES else None


def flags(words: list[str]) -> dict[str, str]:
    """`--name=value`, `--name value` and `--name` (then "true") as a table; the last one counts."""
    found: dict[str, str] = {}
    rest = words[1:]
    for i, word in enumerate(rest):
        if word.startswith("-") and word.strip("-"):
            name, equals, value = word.lstrip("-").partition("=")
            following = rest[i + 1] if i + 1 < len(rest) else "--"
            found[name] = value if equals else ("true" if following.startswith("-") else following)
    return found
