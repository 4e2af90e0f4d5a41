"""The one program that needs nothing around it."""

import shutil
from pathlib import Path

from tests.goprograms import LackingError

_INTERPRETER = b"/ld-linux"
"""Stands in a program that is linked against a C library."""


def program() -> Path:
    """Raises LackingError when there is none, or one that would not run alone."""
    found = shutil.which("busybox")
    if found is None or _INTERPRETER in Path(found).read_bytes():
        raise LackingError("a busybox that runs alone (apt-get install busybox-static)")
    return Path(found)
