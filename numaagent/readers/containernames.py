"""Names of containers by their ids, from the names of log files and links; no log is opened.

The kubelet links `/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log` to a file below
`/var/log/pods/NAMESPACE_POD_UID/CONTAINER/` (kubelet kuberuntime/logs and legacy.go). Pod and namespace names have no
underscore (RFC 1123), so the parts are unambiguous.
"""

from __future__ import annotations

import re

import msgspec

from numaagent.readers.files import Files, Source

_LINK = re.compile(r"([^_]+)_([^_]+)_(.+)-([0-9a-f]{64})\.log")
_POD = re.compile(r"([^_]+)_([^_]+)_([0-9a-f-]{32,36})")


class PodName(msgspec.Struct, frozen=True):
    """A pod's names."""

    namespace: str
    pod: str


class ContainerName(msgspec.Struct, frozen=True):
    """A container's names."""

    namespace: str
    pod: str
    name: str


class Names(msgspec.Struct, frozen=True):
    """What the log folders tell."""

    containers: dict[str, ContainerName] = {}
    """By container id."""
    pods: dict[str, PodName] = {}
    """By pod uid."""


class Reader:
    """Reads the names again only when a link or folder came or went."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._last: tuple[object, Names] | None = None

    def read(self, *, required: bool) -> Names:
        """The names; `required`: whether this machine has a kubelet, which keeps these folders."""
        look = Source(self._files, "container-names")
        links, pods = f"{self._folder}/containers", f"{self._folder}/pods"
        key = (required, look.state(links), look.state(pods))
        if self._last is None or self._last[0] != key:
            self._last = (key, _read(self._files, links, pods, required))
        return self._last[1]


def _read(files: Files, links: str, pods: str, required: bool) -> Names:
    source = files.reader("container-names")
    found = map(_LINK.fullmatch, source.names(links, required=required))
    folders = map(_POD.fullmatch, source.names(pods, required=required))
    return Names(
        containers={link[4]: ContainerName(link[2], link[1], link[3]) for link in found if link},
        pods={pod[3]: PodName(pod[1], pod[2]) for pod in folders if pod},
    )
