"""Things that take long to make and are made of known things: each made once, kept in a cache folder outside the repository.

`kept("trees", key_of(...), make)` is a folder whose name says what it is made of. Two runs that want the same one make it once.
"""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

LONG_AGO = 14 * 24 * 3600.0


def key_of(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:16]


def contents(top: Path, files: Iterable[Path]) -> bytes:
    """What `key_of` needs to know of files below a folder: each one's path from there, mode and content."""
    digest = hashlib.sha256()
    for file in sorted(files):
        if file.is_file():
            digest.update(f"{file.relative_to(top)}\0{file.stat().st_mode & 0o777:o}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.digest()


def kept(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """The folder of this kind and key; `make` fills an empty one, and what it leaves when it fails is thrown away."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numaweb" / kind
    home.mkdir(parents=True, exist_ok=True)
    folder = home / key
    with (home / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            being_made = home / f"{key}.making"
            shutil.rmtree(being_made, ignore_errors=True)
            being_made.mkdir()
            make(being_made)
            being_made.rename(folder)
            _forget(home)
    os.utime(folder)
    return folder


def _forget(home: Path) -> None:
    """What nobody used for a long time is in the way: a disk has a gigabyte."""
    for folder in home.iterdir():
        if folder.is_dir() and folder.suffix == "" and time.time() - folder.stat().st_mtime > LONG_AGO:
            shutil.rmtree(folder, ignore_errors=True)
