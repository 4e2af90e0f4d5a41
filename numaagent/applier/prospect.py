"""What an order would do to this node, found out by reading only. Every reason not to do it is found here or in `trust`."""

from __future__ import annotations

import difflib
import os
import stat
from typing import Any

import msgspec

from numaagent.applier import health, inforce, keeping, places, writing
from numaagent.applier.places import Host
from numaagent.applier.refusal import RefusedError
from numaagent.applier.units import Unit
from numaagent.applier.writing import PLAIN, Attributes, Content
from numacore.change import editing, undo
from numacore.change.editing import EditError
from numacore.change.order import Order, StateFile
from numacore.kubelet.checks import documents
from numacore.kubelet.checks.assembly import API_VERSION, KIND

ROOM = 256 * 1024
"""Bytes that have to be free beside what is written, so that a kubelet can write its state files."""


class Prospect(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it stands and as it will be; None = there is (will be) none."""

    before: Content | None
    after: bytes | None
    attributes: Attributes
    """Of the file that will be."""
    state: tuple[StateFile, ...]
    """Those of the order's state files that exist."""
    port: int
    """Of the kubelet's /configz."""
    unchanged: bool = False

    def diff(self, path: str) -> str:
        """The change of the text."""
        old, new = (
            each.decode(errors="replace").splitlines(keepends=True)
            for each in (_data(self.before), self.after or b"")
        )
        return "".join(difflib.unified_diff(old, new, path, path))


def of(order: Order, host: Host) -> Prospect:
    """Raises RefusedError: the file is not as the order expects it, or cannot become what the order says."""
    present = _present(order, host)
    sha256 = "" if present is None else present.sha256
    if sha256 == order.after:
        return made(order, host, present, unchanged=True)
    if sha256 != order.before:
        raise RefusedError(
            "file-changed",
            f"before: {order.path} is not what the plan was made for (it has {_short(sha256)}, expected {_short(order.before)}): somebody "
            "changed it; look at the node and plan again",
            path=order.path,
            here=sha256,
            expected=order.before,
        )
    return made(order, host, present)


def made(order: Order, host: Host, before: Content | None, *, unchanged: bool = False) -> Prospect:
    """The prospect of a file. Raises RefusedError."""
    if unchanged:
        after, attributes = (None, PLAIN) if before is None else (before.data, before.attributes)
    elif order.act == "restore":
        after, attributes = _original(order, host, before)
    else:
        after, attributes = _edited(order, before), PLAIN if before is None else before.attributes
    if (writing.sha256(after) if after is not None else "") != order.after:
        raise RefusedError(
            "outcome-differs",
            f"after: {order.path} would not become what the plan shows; bring applier and numaweb to the same version and plan again",
            path=order.path,
        )
    return Prospect(
        before=before,
        after=after,
        attributes=attributes,
        state=state_files(order, host),
        port=_port(order, after),
        unchanged=unchanged,
    )


def state_files(order: Order, host: Host) -> tuple[StateFile, ...]:
    """Those of the order's state files that exist. Raises RefusedError."""
    found: list[StateFile] = []
    for name in keeping.STATE_FILES:
        path = f"{order.root}/{name}"
        if name in order.state_files:
            try:
                if writing.read(host.at(path)) is not None:
                    found.append(name)
            except OSError as error:
                raise _unreadable("state_files", path, error) from error
    return tuple(found)


def check_room(order: Order, host: Host, prospect: Prospect) -> None:
    """Raises RefusedError: a folder that has to be written is full. That they can be written shows when the copies are made."""
    copies = len(_data(prospect.before)) * 4 + len(prospect.after or b"") * 2
    for name in prospect.state:
        copies += os.stat(host.at(f"{order.root}/{name}")).st_size * 3
    for folder in (undo.STATE, order.path.rpartition("/")[0], order.root, undo.UNITS):
        free = os.statvfs(_existing(host.at(folder)))
        if free.f_bavail * free.f_frsize < copies + ROOM or (free.f_files and not free.f_favail):
            raise RefusedError(
                "no-room",
                f"{folder}: there are {free.f_bavail * free.f_frsize} bytes and {free.f_favail} files left, {copies + ROOM} bytes are needed; make "
                "room on the node",
                folder=folder,
                free=free.f_bavail * free.f_frsize,
                needed=copies + ROOM,
            )


def _existing(folder: str) -> str:
    """The folder, or the one above that it will be made in."""
    while not os.path.isdir(folder) and folder != "/":
        folder = os.path.dirname(folder)
    return folder


async def check_kubelet(order: Order, unit: Unit) -> None:
    """Raises RefusedError: there is no kubelet to change, or it is not well before. Whoever restores may do so on a sick one."""
    if unit.load != "loaded":
        raise RefusedError(
            "no-kubelet",
            f"unit: systemd says that {order.unit} is {unit.load}; this node's kubelet is started by something else, change it there",
            load=unit.load,
        )
    if order.act == "restore":
        return
    words = await health.says_ok(order.healthz_port) if order.healthz_port else ""
    if unit.active != "active" or not unit.main_pid or words:
        raise RefusedError(
            "kubelet-unwell",
            f"unit: the kubelet is not well before the change ({unit.active}/{unit.sub}{', ' + words if words else ''}), so nobody could "
            "tell whether the change is to blame; repair it first: journalctl -u kubelet",
            active=unit.active,
        )


def _present(order: Order, host: Host) -> Content | None:
    folder = order.path.rpartition("/")[0]
    try:
        _straight(host, folder)
        _straight(host, order.root)
        return writing.read(host.at(order.path))
    except OSError as error:
        raise _unreadable("path", order.path, error) from error


def _straight(host: Host, folder: str) -> None:
    """Raises OSError unless the folder and all above it are folders: a link would lead out of the host's tree."""
    place = host.root.rstrip("/")
    for name in folder.strip("/").split("/"):
        place = f"{place}/{name}"
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            raise NotADirectoryError(
                f"{place} is a link or no folder; name the real place in the kubelet's --config"
            )


def _edited(order: Order, before: Content | None) -> bytes:
    try:
        if order.drop_in:
            return editing.drop_in(order.keys).encode()
        if before is None:
            raise RefusedError("no-file", f"path: there is no {order.path}; plan again", path=order.path)
        text = before.data.decode()
        _check_kind(order, text)
        keys: dict[str, Any] = {**order.keys, **dict.fromkeys(order.removed, editing.REMOVE)}
        return editing.edit(text, keys).encode()
    except (EditError, UnicodeDecodeError) as error:
        raise RefusedError(
            "not-editable",
            f"path: {order.path} cannot be changed without changing more: {error}; put the file into a plain form by hand",
            path=order.path,
            why=str(error),
        ) from error


def _check_kind(order: Order, text: str) -> None:
    value = documents.read(text).value
    told = (value.get("apiVersion"), value.get("kind")) if isinstance(value, dict) else (None, None)
    if told != (API_VERSION, KIND):
        raise RefusedError(
            "not-settings",
            f"path: {order.path} holds {told[1] or 'something'} ({told[0] or 'no apiVersion'}) and not a kubelet's settings ({API_VERSION}, {KIND}); "
            "look at the kubelet's --config",
            path=order.path,
        )


def _original(order: Order, host: Host, before: Content | None) -> tuple[bytes | None, Attributes]:
    kept = keeping.original(host, order.path)
    if kept is None:
        raise RefusedError(
            "no-original",
            f"path: this node keeps no original of {order.path}, so numaweb never changed it here; there is nothing to restore",
            path=order.path,
        )
    known, data = kept
    if known.sha256 != order.after:
        raise RefusedError(
            "original-differs",
            f"after: the original kept on this node has {_short(known.sha256)}, the plan has {_short(order.after)}; look at "
            f"{places.ORIGINAL}{order.path} and plan again",
            path=order.path,
        )
    return data, known.attributes or (PLAIN if before is None else before.attributes)


def _port(order: Order, after: bytes | None) -> int:
    """The file's word; a drop-in of ours says nothing of it."""
    if order.drop_in or after is None:
        return inforce.PORT
    value = documents.read(after.decode("utf-8", "replace")).value
    port = value.get("port") if isinstance(value, dict) else None
    return port if isinstance(port, int) and 0 < port < 65536 else inforce.PORT


def _unreadable(field: str, path: str, error: OSError) -> RefusedError:
    return RefusedError(
        "unreadable",
        f"{field}: {path} cannot be read: {error.strerror or error}; the applier follows no links and needs root and the host's folders",
        path=path,
    )


def _data(content: Content | None) -> bytes:
    return b"" if content is None else content.data


def _short(sha256: str) -> str:
    return f"sha256 {sha256[:12]}" if sha256 else "no file"
