"""The only place that opens files. A failed read becomes None and a counted problem with cause and remedy.

Recorded trees are read below a root that no link can leave: absolute links are taken as if the root were `/`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque

from numaagent.readers.problems import Problems
from numacore.cpuset import CpuSet, CpuSetError

LIMIT = 256 * 1024
"""Bytes of a file that are read unless a reader says otherwise; kernel files of 1,024 CPUs stay below it."""
MAX_LINKS = 40
"""Links that one path may lead through, as in Linux (path_resolution(7))."""
MAX_PATH = 4095
MAX_DEPTH = 200
"""Bytes and folders of a path; Linux takes no longer ones, and no tree here is deeper."""
MAX_FOLDERS = 20_000
"""Folders whose real place is remembered: more than a machine of 1,024 CPUs has."""
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CAUSES = {
    errno.ENOENT: "it does not exist",
    errno.ENOTDIR: "it does not exist",
    errno.EACCES: "no right to read it: run the exporter as root, or give its user the right",
    errno.EPERM: "the kernel forbids to read it: run the exporter as root on the host's trees",
    errno.ELOOP: "its links run in a circle",
    errno.EISDIR: "it is a folder where a file was expected",
    errno.EMFILE: "too many open files: raise the limit of open files (ulimit -n)",
}
GONE = (errno.ENOENT, errno.ENODEV, errno.ENOTDIR, errno.ESRCH, errno.EOPNOTSUPP)
"""Errors of a file whose process, cgroup or device has ended, or that has no content by nature (threaded cgroups)."""


Stamp = tuple[int, int, int]


class Files:
    """Opens files below a root."""

    def __init__(self, root: str = "/", problems: Problems | None = None) -> None:
        self.root = root
        self.problems = problems or Problems()
        self._folders: dict[str, str] = {}

    def reader(self, name: str) -> Source:
        """Begins a new attempt of a reader."""
        self.problems.begin(name)
        return Source(self, name)

    def shown(self, path: str) -> str:
        """A path as the machine calls it."""
        return path[len(self.root) :] if self.root != "/" and path.startswith(self.root + "/") else path

    def open(self, path: str) -> int:
        """A descriptor of a regular file. Raises OSError."""
        if self.root == "/" or not path.startswith(self.root + "/"):
            descriptor = os.open(_checked(path), _FLAGS)
        else:
            descriptor = self._open_below(path)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)

    def folder(self, path: str) -> str:
        """The path of a folder with all links followed inside the root, remembered. Raises OSError."""
        if self.root == "/" or not path.startswith(self.root + "/"):
            return _checked(path)
        found = self._folders.get(path)
        if found is None:
            if len(self._folders) > MAX_FOLDERS:
                self._folders.clear()
            real = self.place(path)
            found = self._folders[path] = real if _link(real) is None else self.resolve(real)
        return found

    def place(self, path: str) -> str:
        """The path with the links of its folder followed inside the root; a link at its end stays. Raises OSError."""
        above, _, name = _checked(path).rpartition("/")
        return f"{self.folder(above)}/{name}"

    def resolve(self, path: str) -> str:
        """Follows every link of a path below the root as if the root were `/`. Raises OSError."""
        steps = deque(path[len(self.root) :].split("/"))
        done: list[str] = []
        links = 0
        while steps:
            step = steps.popleft()
            if step == "..":
                del done[-1:]
            elif step not in ("", "."):
                target = _link(f"{self.root}/{'/'.join([*done, step])}")
                if target is None:
                    done.append(step)
                    continue
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if target.startswith("/"):
                    done.clear()
                steps.extendleft(reversed(target.split("/")))
        return "/".join([self.root, *done])

    def _open_below(self, path: str) -> int:
        try:
            return os.open(self.place(path), _FLAGS | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        return os.open(self.resolve(path), _FLAGS | os.O_NOFOLLOW)


class Source:
    """One attempt of one reader: reads that note their own failures.

    `required`: whether it is a problem that the file does not exist; no right, rubbish and size always are.
    """

    __slots__ = ("files", "name")

    def __init__(self, files: Files, name: str) -> None:
        self.files = files
        self.name = name

    def fail(self, path: str, cause: str) -> None:
        """Notes that a file is of no use."""
        self.files.problems.note(self.name, self.files.shown(path), cause)

    def refused(self, path: str, error: OSError, required: bool = True) -> None:
        """Notes why a file cannot be opened or read."""
        if required or error.errno not in GONE:
            self.fail(path, cause_of(error))

    def data(self, path: str, *, limit: int = LIMIT, required: bool = False) -> bytes | None:
        """The bytes of a file; one larger than `limit` is not used at all."""
        try:
            descriptor = self.files.open(path)
        except OSError as error:
            self.refused(path, error, required)
            return None
        try:
            data = read_all(descriptor, limit + 1)
        except OSError as error:
            self.refused(path, error, required)
            return None
        finally:
            os.close(descriptor)
        if len(data) > limit:
            self.fail(path, f"it is larger than {limit} bytes and was not used")
            return None
        return data

    def text(self, path: str, *, limit: int = LIMIT, required: bool = False) -> str | None:
        """The text of a file without the blanks around it, and without the NUL bytes that recorded trees have."""
        data = self.data(path, limit=limit, required=required)
        if data is None:
            return None
        try:
            return data.decode().replace("\0", "").strip()
        except UnicodeDecodeError:
            self.fail(path, "it holds bytes that are no text")
            return None

    def number(self, path: str, *, required: bool = False) -> int | None:
        """A whole number."""
        text = self.text(path, required=required)
        if text is None:
            return None
        try:
            found = int(text)
        except ValueError:
            self.fail(path, f"{text[:40]!r} is not a whole number" if text else "it is empty")
            return None
        if abs(found) >> 63:
            self.fail(path, f"{text[:40]!r} is too large a number")
            return None
        return found

    def ids(self, path: str, *, required: bool = False) -> CpuSet | None:
        """A set in the list format; an empty file is the empty set."""
        text = self.text(path, required=required)
        return None if text is None else self._set(path, text, CpuSet.parse)

    def mask(self, path: str, *, required: bool = False) -> CpuSet | None:
        """A set in the mask format; an empty file says nothing."""
        text = self.text(path, required=required)
        return self._set(path, text, CpuSet.parse_mask) if text else None

    def mask_or_ids(self, stem: str, listed: str) -> CpuSet | None:
        """A set that the kernel prints in both formats.

        The mask comes first: kernels before 5.17 cut long lists at one page (4 KiB), which happens from about 1,000
        CPUs on, and never a mask.
        """
        found = self.mask(stem)
        return self.ids(listed) if found is None else found

    def names(self, path: str, *, required: bool = False) -> list[str]:
        """Names in a folder; empty where it does not exist."""
        try:
            return list(filter(_readable, os.listdir(self.files.folder(path))))
        except OSError as error:
            self.refused(path, error, required)
            return []

    def folders(self, path: str) -> list[str]:
        """Names of the folders in a folder; empty where it does not exist. Links are not followed."""
        try:
            with os.scandir(self.files.folder(path)) as entries:
                return [e.name for e in entries if e.is_dir(follow_symlinks=False) and _readable(e.name)]
        except OSError as error:
            self.refused(path, error, required=False)
            return []

    def stamp(self, path: str) -> Stamp | None:
        """What changes when a folder gets or loses a folder; None where the file system does not tell.

        cgroup folders keep their time of change, but count their folders as links, as most file systems do. Those that
        do not (overlayfs, btrfs) say 1.
        """
        try:
            found = os.stat(self.files.folder(path))
        except OSError:
            return None
        return (found.st_ino, found.st_nlink, found.st_mtime_ns) if found.st_nlink > 1 else None

    def link(self, path: str) -> str | None:
        """What a symbolic link names, not followed; None where it is no link."""
        try:
            return os.readlink(self.files.place(path))
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether there is something of that name."""
        return self.state(path) is not None

    def state(self, path: str) -> tuple[int, int, int] | None:
        """What changes when a file is replaced or written: inode, size, time of change."""
        try:
            found = os.stat(self.files.place(path), follow_symlinks=self.files.root == "/")
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _set(self, path: str, text: str, parse: object) -> CpuSet | None:
        assert callable(parse)
        try:
            found = parse(text)
        except CpuSetError as error:
            self.fail(path, str(error))
            return None
        assert isinstance(found, CpuSet)
        return found


def cause_of(error: OSError) -> str:
    """Why a file cannot be read, and what helps."""
    return _CAUSES.get(error.errno or 0) or error.strerror or "the read failed"


def read_all(descriptor: int, limit: int) -> bytes:
    """Up to `limit` bytes from the descriptor's place on; kernel files come in pieces. Raises OSError."""
    first = os.read(descriptor, limit)
    parts = [first]
    left = limit - len(first)
    while left > 0 and parts[-1]:
        parts.append(os.read(descriptor, left))
        left -= len(parts[-1])
    return b"".join(parts)


def _readable(name: str) -> bool:
    """Names of bytes that are no UTF-8 cannot be told to anybody; the kernel makes none."""
    return name.isascii() or name.isprintable()


def _checked(path: str) -> str:
    """Paths come from files too (mounts, flags); one that no system call takes does not exist."""
    if "\0" in path or len(path) > MAX_PATH or path.count("/") > MAX_DEPTH:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return path


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
