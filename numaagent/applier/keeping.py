"""Copies on the node: what stood there before the product's first change, and before each change, with checksums.

original/<path of the file>   the first of all, until somebody removes it; original/<path>.json says what it is
changes/<epoch>/              order.json, journal, before, state files as they were, answer.json; of the newest changes, and of those that
                              kept an original
"""

from __future__ import annotations

import hashlib
import os

import msgspec

from numaagent.applier import places, writing
from numaagent.applier.journal import Journal
from numaagent.applier.places import Host
from numaagent.applier.refusal import RefusedError
from numaagent.applier.trust import Seen
from numaagent.applier.writing import Attributes, Content
from numacore.change import order as orders
from numacore.change.order import Answer, Order, OrderError, StateFile

EARLIER = 3
"""So many changes before the one that begins are kept."""
STATE_FILES: tuple[StateFile, ...] = ("cpu_manager_state", "memory_manager_state")


class Original(msgspec.Struct, frozen=True):
    """What is known of a file's first copy. `sha256` "" = there was no such file."""

    sha256: str
    epoch: int
    attributes: Attributes | None = None
    restored: bool = False
    """The node went back to it: whoever edits the file from then on makes a new original."""


class Change:
    """One change's folder."""

    def __init__(self, host: Host, epoch: int) -> None:
        self.folder = host.at(f"{places.CHANGES}/{epoch}")
        self.journal = Journal(f"{self.folder}/journal")

    def begin(self, data: bytes, before: Content | None) -> None:
        """The order and the file as it stands; what is there already stays."""
        writing.make_folder(self.folder)
        if before is not None and writing.read(f"{self.folder}/before") is None:
            writing.write(f"{self.folder}/before", before.data, before.attributes)
        if writing.read(f"{self.folder}/order.json") is None:
            writing.write(f"{self.folder}/order.json", data)

    def order(self) -> Order:
        """The order, which was believed when it was written here. Raises RefusedError: it cannot be read any more."""
        try:
            found = writing.read(f"{self.folder}/order.json")
            return orders.decode(orders.decode_signed(b"" if found is None else found.data).document)
        except (OSError, OrderError) as error:
            raise RefusedError(
                "state-unreadable",
                f"{places.CHANGES}: {error}; systemctl start numaweb-kubelet-undo.service takes the change back",
            ) from error

    def before(self) -> Content | None:
        """The file as it stood."""
        return writing.read(f"{self.folder}/before")

    def keep_state(self, name: StateFile, content: Content) -> None:
        """A state file as it was when the kubelet had stopped."""
        writing.write(f"{self.folder}/{name}", content.data, content.attributes)

    def answer(self) -> Answer | None:
        """What came of it; None = it is not finished, or was never begun."""
        try:
            found = writing.read(f"{self.folder}/answer.json")
            return None if found is None else orders.decode_answer(found.data)
        except (OSError, OrderError):
            return None

    def finish(self, answer: Answer) -> None:
        """What came of it, for the next run and for whoever looks at the node."""
        writing.write(f"{self.folder}/answer.json", orders.encode_answer(answer))


def take_on(host: Host, epoch: int, document: str) -> None:
    """From here on this node takes no lower epoch."""
    writing.write(host.at(places.EPOCH), msgspec.json.encode(Seen(epoch, document)))


def original(host: Host, path: str) -> tuple[Original, bytes | None] | None:
    """The first copy of a file, checked. None = the product never changed it. Raises RefusedError: the copy is damaged."""
    place = host.at(places.ORIGINAL + path)
    try:
        told = writing.read(f"{place}.json")
        if told is None:
            return None
        known = msgspec.json.decode(told.data, type=Original)
        copy = writing.read(place) if known.sha256 else None
    except (OSError, msgspec.DecodeError) as error:
        raise _damaged(path, str(error)) from error
    data = None if copy is None else copy.data
    if known.sha256 and (data is None or hashlib.sha256(data).hexdigest() != known.sha256):
        raise _damaged(path, "its content is not what was kept")
    return known, data


def keep_original(host: Host, path: str, before: Content | None, epoch: int) -> None:
    """Keeps a file as it was before the product's first change, once. The description last: without it the copy counts as none."""
    standing = original(host, path)
    sha256 = "" if before is None else before.sha256
    if standing is not None and (not standing[0].restored or standing[0].sha256 == sha256):
        return
    place = host.at(places.ORIGINAL + path)
    writing.make_folder(place.rpartition("/")[0])
    writing.remove(f"{place}.json")
    if before is None:
        writing.remove(place)
        known = Original("", epoch)
    else:
        writing.write(place, before.data, before.attributes)
        known = Original(sha256, epoch, before.attributes)
    writing.write(f"{place}.json", msgspec.json.encode(known))


def mark(host: Host, order: Order) -> None:
    """Notes whether the file is now the original again."""
    found = original(host, order.path)
    if found is not None and found[0].restored != (order.act == "restore"):
        known = msgspec.structs.replace(found[0], restored=order.act == "restore")
        writing.write(f"{host.at(places.ORIGINAL + order.path)}.json", msgspec.json.encode(known))


def prune(host: Host, epoch: int) -> None:
    """Changes long past go, when this one begins; nobody reads them any more but a person.

    Those that kept an original stay, and all of them while it is not known which these are. Raises OSError: some are left, for the next time.
    """
    try:
        stay = _first_changes(host)
        with os.scandir(host.at(places.CHANGES)) as entries:
            found = [each for each in entries if _is_number(each.name) and each.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, msgspec.DecodeError):
        return
    earlier = sorted((each for each in found if int(each.name) < epoch), key=lambda each: int(each.name))
    for each in earlier[:-EARLIER]:
        if int(each.name) not in stay:
            writing.remove_folder(each.path)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal()


def _first_changes(host: Host) -> set[int]:
    """Epochs of the changes that originals were kept by. Raises OSError, msgspec.DecodeError: one of them does not tell."""
    found = set()
    for folder, _folders, names in os.walk(host.at(places.ORIGINAL), onerror=_fail):
        for name in names:
            # A description. The kubelet's file itself may be called so, too: then its description is beside it.
            if name.endswith(".json") and f"{name}.json" not in names:
                told = writing.read(f"{folder}/{name}")
                found.add(msgspec.json.decode(b"" if told is None else told.data, type=Original).epoch)
    return found


def _fail(error: OSError) -> None:
    raise error


def _damaged(path: str, cause: str) -> RefusedError:
    return RefusedError(
        "original-damaged",
        f"{places.ORIGINAL}{path}: the kept copy cannot be used: {cause}; compare it with {places.CHANGES}",
        path=path,
    )
