"""Files that are either as they were or as they should be, whenever the power goes: temporary file, fsync, rename, fsync of the folder.

Mode, owner and extended attributes (SELinux labels, access lists) are kept. Links are not followed: a file that is one is refused by
whoever reads it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat

import msgspec

LIMIT = 8 << 20
"""Bytes of a file that is read: a kubelet's settings have some KiB, state files of a thousand pinned containers less than 4 MiB."""
_UNSUPPORTED = (errno.ENOTSUP, errno.ENOSYS)


class Attributes(msgspec.Struct, frozen=True):
    """What a file is besides its content."""

    mode: int
    uid: int
    gid: int
    extended: dict[str, bytes] = {}


PLAIN = Attributes(0o644, 0, 0)
PRIVATE = Attributes(0o600, 0, 0)


class Content(msgspec.Struct, frozen=True):
    """A file as it was read."""

    data: bytes
    attributes: Attributes

    @property
    def sha256(self) -> str:
        return sha256(self.data)


def sha256(data: bytes) -> str:
    """As orders name content."""
    return hashlib.sha256(data).hexdigest()


def read(path: str) -> Content | None:
    """A regular file; None = there is none. Raises OSError: a link (ELOOP), no regular file (EISDIR), too large (EFBIG)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EISDIR, "it is no regular file", path)
        data = file.read(LIMIT + 1)
        if len(data) > LIMIT:
            raise OSError(errno.EFBIG, f"it has more than {LIMIT} bytes", path)
        extended = _extended(descriptor)
    return Content(data, Attributes(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, extended))


def stage(staged: str, data: bytes, attributes: Attributes) -> None:
    """Writes all of a file under its temporary name, through to the disk. Raises OSError; then nothing is left of it."""
    remove(staged)
    try:
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            _dress(descriptor, attributes)
            os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(staged)
        raise


def settle(staged: str, path: str) -> None:
    """The staged file takes its place."""
    os.rename(staged, path)
    sync_folder(os.path.dirname(path))


def write(path: str, data: bytes, attributes: Attributes = PRIVATE) -> None:
    """The whole file, or the one that was there."""
    staged = f"{path}.new"
    stage(staged, data, attributes)
    settle(staged, path)


def append(path: str, data: bytes) -> None:
    """A line more, through to the disk."""
    fresh = not os.path.exists(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if fresh:
        sync_folder(os.path.dirname(path))


def remove(path: str) -> bool:
    """Takes a file away, through to the disk; whether there was one."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    sync_folder(os.path.dirname(path))
    return True


def remove_folder(path: str) -> None:
    """With the files in it, through to the disk. Raises OSError, also where folders are in it."""
    for name in os.listdir(path):
        os.unlink(f"{path}/{name}")
    os.rmdir(path)
    sync_folder(os.path.dirname(path))


def make_folder(path: str) -> None:
    """With the folders above it, readable for root alone, through to the disk."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    make_folder(above)
    os.mkdir(path, 0o700)
    sync_folder(above)


def sync_folder(path: str) -> None:
    """What is in a folder, through to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _extended(descriptor: int) -> dict[str, bytes]:
    try:
        return {name: os.getxattr(descriptor, name) for name in os.listxattr(descriptor)}
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return {}
        raise


def _dress(descriptor: int, attributes: Attributes) -> None:
    """Owner first: a change of owner takes bits of the mode away."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (attributes.uid, attributes.gid) and os.geteuid() == 0:
        os.fchown(descriptor, attributes.uid, attributes.gid)
    os.fchmod(descriptor, attributes.mode)
    standing = _extended(descriptor)
    for name, value in attributes.extended.items():
        if standing.get(name) != value:
            os.setxattr(descriptor, name, value)
