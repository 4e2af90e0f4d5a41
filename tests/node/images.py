"""The container images of the node: one that waits until it is told to end, and our agent as a cluster would run it.

What the agent stands on is an image of its own, which lies on the node's disk; the agent's sources are brought to the node that is running.
"""

import compileall
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from py_compile import PycInvalidationMode

from tests.goprograms import LackingError, Say
from tests.node import busybox, cache, debian, oci
from tests.servers import ROOT

WAITS = "numaweb.test/waits:1"
"""For pods whose work is of no interest, and for the sandbox of every pod: busybox with a shell, which ends at once when asked to."""
AGENT = "docker.io/library/numa-exporter:local"
"""What `numa-exporter:local` of docs/kubernetes/numa-exporter.yaml means to a kubelet."""

_BASE = "numaweb.test/python:1"
# As in build/Dockerfile.
_PYTHON, _SUITE = "3.11", "bookworm"
_BELOW = ("python3", "ca-certificates", "libstdc++6")
"""Debian's smallest images have the last one too, by apt; a compiled package needs it."""
_LOCKED = ROOT / "requirements" / "agent.txt"
_ROOMS = ("numacore", "numaagent")
_APPLETS = ("sh", "sleep", "cat", "dd", "nc", "wget", "ls", "head", "tail", "awk", "kill")
_WAITING = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"
_DIRECTORY_MODE, _FILE_MODE, _PROGRAM_MODE = 0o755, 0o644, 0o755


def waits() -> Path:
    """The archive of WAITS."""
    program = busybox.program().read_bytes()

    def fill(layer: tarfile.TarFile) -> None:
        for name in ("bin", "tmp", "proc", "sys", "dev", "etc"):
            _directory(layer, name)
        _file(layer, "bin/busybox", program, _PROGRAM_MODE)
        for name in _APPLETS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(link)

    def make(folder: Path) -> None:
        config = {"Env": ["PATH=/bin"], "Entrypoint": ["/bin/sh", "-c", _WAITING]}
        with _layer(fill) as layer:
            oci.write(folder / "waits.tar", WAITS, [layer], config)

    key = cache.key_of(program, _sources())
    return cache.kept("images", key, make) / "waits.tar"


def python(say: Say) -> Path:
    """The archive of what the agent stands on: Debian's Python and the locked packages."""
    tree, packages = _below(say)

    def make(folder: Path) -> None:
        with _layer(lambda layer: _copy(layer, packages)) as upper:
            oci.write(folder / "python.tar", _BASE, [tree, upper], {"Cmd": ["python3"]})

    key = cache.key_of(str(tree), str(packages), _sources())
    return cache.kept("images", key, make) / "python.tar"


def agent(say: Say) -> Path:
    """The archive of AGENT as it is in this checkout, for a node that has the image of `python`."""
    tree, packages = _below(say)
    ours = [file for room in _ROOMS for file in (ROOT / room).rglob("*") if "__pycache__" not in file.parts]
    config = {
        "Env": [
            "PATH=/usr/bin:/bin",
            "PYTHONPATH=/opt/packages",
            "PYTHONUNBUFFERED=1",
            "PYTHONDONTWRITEBYTECODE=1",
        ],
        "WorkingDir": "/srv/numaweb",
        "User": "10001:10001",
        "Entrypoint": ["python3", "-m", "numaagent"],
        "Cmd": ["exporter"],
    }

    def make(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as name:
            top = Path(name)
            for room in _ROOMS:
                place = top / "srv" / "numaweb" / room
                shutil.copytree(ROOT / room, place, ignore=shutil.ignore_patterns("__pycache__"))
            _compile(top)
            with (
                _layer(lambda layer: _copy(layer, packages)) as middle,
                _layer(lambda layer: _copy(layer, top)) as upper,
            ):
                oci.write(folder / "agent.tar", AGENT, [tree, middle, upper], config, known=2)

    key = cache.key_of(str(tree), str(packages), cache.contents(ROOT, ours), _sources())
    return cache.kept("images", key, make) / "agent.tar"


def _below(say: Say) -> tuple[Path, Path]:
    tree = debian.tree(_SUITE, "extract", _BELOW, say)
    return tree, _packages(tree, say)


def _sources() -> bytes:
    return Path(__file__).read_bytes() + Path(oci.__file__).read_bytes()


def _packages(tree: Path, say: Say) -> Path:
    """A folder with the locked packages for the image's Python, from wherever pip gets packages on this machine, and with its standard
    library, compiled."""

    def make(top: Path) -> None:
        folder = top / "opt" / "packages"
        say("Fetching the agent's packages, once")
        wanted = ["--no-deps", "--require-hashes", "--only-binary=:all:", f"--python-version={_PYTHON}"]
        wanted += [f"--platform=manylinux{form}_x86_64" for form in ("2014", "_2_17", "_2_28")]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--no-compile", *wanted, f"--target={folder}", f"--requirement={_LOCKED}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["no word about why"]
            raise LackingError(f"the agent's Python packages ({said[-1]})")
        library = f"usr/lib/python{_PYTHON}"
        subprocess.run(
            ["tar", "--extract", f"--file={tree}", f"--directory={top}", f"./{library}"], check=True
        )
        _compile(top)
        for file in (top / library).rglob("*.py"):
            file.unlink()

    key = cache.key_of(str(tree), _PYTHON, _LOCKED.read_bytes(), _sources())
    return cache.kept("packages", key, make)


def _compile(top: Path) -> None:
    """Puts beside every module below the folder what Python makes of it: emulated processors take minutes for that, at each start.
    Another version than the image's makes something that the image's leaves alone."""
    compileall.compile_dir(
        top, quiet=2, stripdir=str(top), prependdir="/", invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
    )


@contextmanager
def _layer(fill: Callable[[tarfile.TarFile], None]) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(suffix=".tar") as file:
        with tarfile.open(fileobj=file, mode="w") as layer:
            fill(layer)
        file.flush()
        yield Path(file.name)


def _copy(layer: tarfile.TarFile, top: Path) -> None:
    """The files below `top`, in the order of their names, with no times and no owners."""
    for file in sorted(top.rglob("*")):
        if file.is_file():
            mode = _PROGRAM_MODE if file.stat().st_mode & 0o100 else _FILE_MODE
            _file(layer, str(file.relative_to(top)), file.read_bytes(), mode)


def _directory(layer: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, _DIRECTORY_MODE
    layer.addfile(entry)


def _file(layer: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    layer.addfile(entry, io.BytesIO(content))
