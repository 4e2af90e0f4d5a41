"""Names of containers by their ids, from the names of log files and links; no log is opened.

The kubelet links `/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log` to a file below
`/var/log/pods/NAMESPACE_POD_UID/CONTAINER/` (kubelet kuberuntime/logs and legacy.go). Pod and namespace names have no
underscore (RFC 1123), so the parts are unambiguous.
"""

from __future__ import annotations

import re

import msgspec

from numaagent.readers.files import Files

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


def read(files: Files, folder: str, *, required: bool) -> Names:
    """The names; `required`: whether this machine has a kubelet, which keeps these folders."""
    source = files.reader("container-names")
    links = map(_LINK.fullmatch, source.names(f"{folder}/containers", required=required))
    pods = map(_POD.fullmatch, source.names(f"{folder}/pods", required=required))
    return Names(
        containers={link[4]: ContainerName(link[2], link[1], link[3]) for link in links if link},
        pods={pod[3]: PodName(pod[1], pod[2]) for pod in pods if pod},
    )
