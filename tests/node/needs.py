"""What an emulated node takes of this machine, looked at before anything is made of it that takes minutes."""

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.goprograms import LackingError
from tests.node import network
from tests.node.network import NetworkError

PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "ssh": "openssh-client",
    "ip": "iproute2",
}
"""Each with its Debian package."""
MEMORY = 4 << 30
"""Bytes: the node's three GiB, QEMU, and the control plane beside it."""
ROOM = 3 << 30
"""Bytes below the folder for temporary files: the node's own disk with what was saved in it."""
_MEMINFO = Path("/proc/meminfo")


def check() -> None:
    """Raises LackingError, which names everything that is missing at once."""
    if missing := [*_missing()]:
        raise LackingError("; ".join(missing))


def _missing() -> Iterator[str]:
    if platform.machine() != "x86_64":
        yield f"x86-64 processors, for which the node's programs are built (it has {platform.machine()})"
    if os.geteuid() != 0:
        yield "root, who makes network devices and Debian trees"
    packages = sorted(package for program, package in PROGRAMS.items() if shutil.which(program) is None)
    if packages:
        yield f"programs (apt-get install {' '.join(packages)})"
    try:
        network.check()
    except NetworkError as error:
        yield str(error)
    available = _available()
    if available is not None and available < MEMORY:
        yield f"{MEMORY >> 30} GiB of memory that nobody uses (it has {available / (1 << 30):.1f})"
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < ROOM:
        yield f"{ROOM >> 30} GiB of room in {folder} (it has {free / (1 << 30):.1f})"


def _available() -> int | None:
    """Bytes; None = the kernel does not say."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", _MEMINFO.read_text(), re.MULTILINE)
    return int(found[1]) << 10 if found else None
