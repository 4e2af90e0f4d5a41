"""Debian trees as tar archives: the node's system, and what lies under the agent in its container.

Packages come from wherever this machine's own apt gets its Debian packages.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.goprograms import LackingError, Say
from tests.node import cache

_LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")
_OPTIONS = (
    "--mode=root",
    "--format=tar",
    '--aptopt=APT::Install-Recommends "false"',
    '--aptopt=Acquire::Languages "none"',
    *(f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT),
)


def tree(suite: str, variant: str, packages: Sequence[str], say: Say) -> Path:
    """The archive of a tree with these packages and what they depend on; variants are mmdebstrap's. Takes a minute once.

    Raises:
        LackingError: no mmdebstrap, no Debian mirror, or one that does not serve this.
    """
    key = cache.key_of(suite, variant, *packages, *_OPTIONS)

    def make(folder: Path) -> None:
        say(f"Fetching a Debian tree ({suite}, {', '.join(packages[:3])}, ...), once")
        _run(
            [_program(), *_OPTIONS, f"--variant={variant}", f"--include={','.join(packages)}"], suite, folder
        )

    return cache.kept("trees", key, make) / "tree.tar"


def _run(command: Sequence[str], suite: str, folder: Path) -> None:
    done = subprocess.run(
        [*command, suite, str(folder / "tree.tar"), _mirror()], capture_output=True, text=True
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("E:")] or ["no word about why"]
        raise LackingError(f"a Debian tree of {suite} ({said[-1]})")


def _program() -> str:
    found = shutil.which("mmdebstrap")
    if found is None:
        raise LackingError("mmdebstrap (apt-get install mmdebstrap)")
    return found


def _mirror() -> str:
    """Where this machine gets Debian's main archive."""
    wanted = [
        "apt-get",
        "indextargets",
        "--format",
        "$(ORIGIN) $(RELEASE) $(REPO_URI)",
        "Created-By: Packages",
    ]
    told = subprocess.run(wanted, capture_output=True, text=True)
    for line in told.stdout.splitlines():
        origin, _, rest = line.partition(" ")
        release, _, address = rest.partition(" ")
        # Updates and security have archives, or at least names, of their own.
        if origin == "Debian" and address and "-" not in release:
            return address
    raise LackingError("a Debian mirror in apt's sources (and apt-get update)")
