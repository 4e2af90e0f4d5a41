"""Go programs that tests run: built once each, kept in a cache folder outside the repository.

A program lies under a name made from its module's files, its flags and the Go version, so a change of any of them builds anew and two
checkouts share what is equal. For conftest files and for commands below tests/.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests import servers

OLDEST_GO = (1, 26)

Say = Callable[[str], None]
"""Takes one line about what is going on."""


class LackingError(Exception):
    """What this machine would need to have."""


class Program(NamedTuple):
    """One program of a Go module."""

    name: str
    module: Path
    """The folder with its go.mod."""
    origin: str
    """Whose modules it is made of, as a person would say it."""
    package: str = "."
    flags: tuple[str, ...] = ()


def announce(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def built(program: Program, say: Say = announce) -> Path:
    """The program's binary, built if it is not there yet (minutes).

    Raises:
        LackingError: there is no Go, an old one, or no modules for it.
        subprocess.CalledProcessError: the build failed; what Go wrote stands above.
    """
    go, version = _compiler(program.module)
    binary = _cache() / _digest(program, version) / program.name
    if not binary.exists():
        with _alone(binary, program, say):
            # Another run may have built it while this one waited for its turn.
            if not binary.exists():
                _build(go, program, binary, say)
    return binary


def _compiler(module: Path) -> tuple[str, str]:
    """Go and the version that builds this module, which it may fetch by itself when the machine's settings let it."""
    go = shutil.which("go")
    if go is None:
        raise LackingError("Go")
    told = subprocess.run([go, "env", "GOVERSION"], cwd=module, capture_output=True, text=True, check=True)
    version = told.stdout.strip()
    if not _new_enough(version):
        raise LackingError(f"Go {OLDEST_GO[0]}.{OLDEST_GO[1]} (it has {version})")
    return go, version


def _new_enough(version: str) -> bool:
    numbers = version.removeprefix("go").split(" ")[0].split(".")
    return (
        len(numbers) > 1 and all(map(str.isdigit, numbers[:2])) and tuple(map(int, numbers[:2])) >= OLDEST_GO
    )


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numaweb" / "bin"


def _digest(program: Program, version: str) -> str:
    digest = hashlib.sha256(version.encode())
    for file in sorted(path for path in program.module.iterdir() if path.is_file()):
        digest.update(file.name.encode() + file.read_bytes())
    for flag in program.flags:
        digest.update(b"\0" + flag.encode())
    return digest.hexdigest()[:16]


@contextmanager
def _alone(binary: Path, program: Program, say: Say) -> Iterator[None]:
    """Two runs at once do not spend the minutes twice. The lock goes with its process, however that ends."""
    binary.parent.mkdir(parents=True, exist_ok=True)
    with binary.with_name(f"{binary.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Waiting for another run that builds {program.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(go: str, program: Program, binary: Path, say: Say) -> None:
    """Builds beside its place and moves it there, so that nobody ever sees half a binary."""
    say(f"Building {program.name}, once; from nothing this takes minutes")
    begun = time.monotonic()
    _fetch(go, program)
    being_made = binary.with_name(f"{binary.name}.{os.getpid()}")
    command = [*_behind(), go, "build", "-o", str(being_made), *program.flags, program.package]
    subprocess.run(command, cwd=program.module, check=True)
    being_made.replace(binary)
    say(f"Built {program.name} in {time.monotonic() - begun:.0f} s")


def _fetch(go: str, program: Program) -> None:
    fetched = subprocess.run([go, "mod", "download"], cwd=program.module, capture_output=True, text=True)
    if fetched.returncode:
        said = fetched.stderr.strip().splitlines() or ["no word about why"]
        raise LackingError(f"the Go modules of {program.origin} ({said[-1][:200]})")


def _behind() -> Sequence[str]:
    """A build ends with the run that wanted it, and steps back behind whatever else the machine does."""
    nice = shutil.which("nice")
    return [*servers.prefix(""), *([nice, "-n", "10"] if nice else [])]
