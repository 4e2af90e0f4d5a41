"""New settings in a kubelet's file, and every other byte of it as it was.

A library that reads YAML and writes it again sets its own spaces, quotes and line breaks. So PyYAML only says where things stand, and
the text between is left alone. What comes out is read again as the kubelet reads it, and given away only if it says what was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from numacore.change import phrasing, places
from numacore.change.places import Member, Node, PlaceError
from numacore.kubelet.checks import documents
from numacore.kubelet.checks.assembly import API_VERSION, KIND, Document

REMOVE: Final = None
"""As the value of a field: it goes. In a drop-in it is written as null, which takes away what the file before sets."""
OWNER = "# Written by numaweb, which owns this file: change the policy there, not here."
"""The first line of a drop-in that is ours; one without it is somebody else's, whatever its name."""
Fault = Literal[
    "too-large", "syntax", "empty", "not-a-mapping", "several-documents", "duplicates", "alias", "form"
]


class EditError(ValueError):
    """A text that is not edited. `reason`: a code that pages have a sentence for; `line`: where, 0 = unknown."""

    def __init__(self, reason: Fault, line: int = 0, field: str = "") -> None:
        super().__init__(" ".join(filter(None, (reason, field, f"line {line}" if line else ""))))
        self.reason, self.line, self.field = reason, line, field


def edit(text: str, keys: Mapping[str, Any]) -> str:
    """The text with top-level fields set to new values; REMOVE takes one out. What already has its value is not touched.

    Raises EditError: the text cannot be read, says something twice, or has a form in which the change cannot be made.
    """
    document = _read(text)
    intended = dict(document.value)
    for name, value in keys.items():
        if value is REMOVE:
            intended.pop(name, None)
        else:
            intended[name] = value
    if same(intended, document.value):
        return text
    root = _places(text, document)
    for fine in (True, False):
        made = _Editor(text, root, document, json_text=document.json, fine=fine).edited(keys)
        if made is not None and _says(made, intended):
            return made
    raise EditError("form")


def drop_in(keys: Mapping[str, Any]) -> str:
    """The text of a drop-in that is ours alone. REMOVE at any depth is written as null."""
    lines = [
        OWNER,
        f"apiVersion: {API_VERSION}",
        f"kind: {KIND}",
    ]
    for name in sorted(keys):
        lines += phrasing.block_entry(name, keys[name], 0)
    made = "\n".join(lines) + "\n"
    if not _says(made, {"apiVersion": API_VERSION, "kind": KIND, **keys}):
        raise EditError("form")
    return made


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 is not true, and maps have no order."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other or (one != one and other != other))


def _read(text: str) -> Document:
    document = documents.read(text)
    if document.fault.startswith("more than"):
        raise EditError("too-large", document.line)
    if document.fault:
        raise EditError("syntax", document.line)
    if document.documents > 1:
        raise EditError("several-documents")
    if document.value is None:
        raise EditError("empty")
    if not isinstance(document.value, dict):
        raise EditError("not-a-mapping")
    for path, line in document.duplicates:
        raise EditError("duplicates", line, path)
    return document


def _says(text: str, intended: Mapping[str, Any]) -> bool:
    try:
        return same(_read(text).value, dict(intended))
    except EditError:
        return False


def _places(text: str, document: Document) -> Node:
    try:
        root = places.of_json(text) if document.json else places.of_yaml(text)
    except PlaceError as error:
        raise EditError("form") from error
    assert root is not None, "a document with values has places"
    return root


_KINDS: dict[type, str] = {dict: "mapping", list: "sequence"}


class _UnfitError(Exception):
    """This way of making the change does not fit the text's form."""


class _Editor:
    """Collects what is cut out and put in. `fine`: inside of maps too; else whole top-level fields are written anew."""

    def __init__(self, text: str, root: Node, document: Document, *, json_text: bool, fine: bool) -> None:
        self.text, self.root, self.document = text, root, document
        self.json, self.fine = json_text, fine
        self.ending = "\r\n" if "\r\n" in text else "\n"
        self.splices: list[tuple[int, int, str]] = []

    def edited(self, keys: Mapping[str, Any]) -> str | None:
        changed = {
            name: value
            for name, value in keys.items()
            if not (name in self.document.value and same(self.document.value[name], value))
            and not (value is REMOVE and name not in self.document.value)
        }
        for member in self.root.members:
            if member.name in changed and member.value.named:
                raise EditError("alias", self.text.count("\n", 0, member.start) + 1, member.name)
        wanted = {name: value for name, value in self.document.value.items() if name not in changed}
        wanted |= {name: value for name, value in changed.items() if value is not REMOVE}
        try:
            self._mapping(self.root, self.document.value, wanted, 0)
        except _UnfitError:
            return None
        text = self.text
        for start, end, new in sorted(self.splices, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _mapping(self, node: Node, old: Mapping[str, Any], new: Mapping[str, Any], depth: int) -> None:
        if self.json:
            self._json_members(node, old, new, depth)
        elif node.flow:
            self._flow_members(node, old, new)
        else:
            self._block_members(node, old, new)

    def _value(self, member: Member, old: Any, new: Any, depth: int = 0) -> None:
        """Another value for what stands behind a colon, or a dash."""
        node = member.value
        if same(old, new):
            return
        if node.named:
            raise _UnfitError
        if self.fine and node.kind == "mapping" and isinstance(new, dict) and new and node.members:
            before = len(self.splices)
            try:
                self._mapping(node, old, new, depth + 1)
                return
            except _UnfitError:
                del self.splices[before:]
        if self.fine and node.kind == "sequence" and isinstance(new, list) and len(new) == len(node.items):
            for item, was, will in zip(node.items, old, new, strict=True):
                self._value(Member("", item.start, item.start, item), was, will)
            return
        self._whole(member, new, depth)

    def _whole(self, member: Member, new: Any, depth: int) -> None:
        node, text = member.value, self.text
        alike = bool(new) and node.kind == _KINDS.get(type(new))
        if self.json:
            self._splice(
                node.start, node.end, phrasing.json_text(new, self._json_unit(), depth + 1, self.ending)
            )
        elif node.flow:
            gap = " " if node.start == member.colon and member.name else ""
            self._splice(node.start, node.end, gap + phrasing.flow(new, node.quote))
        elif alike:
            first, *rest = phrasing.block(new, self._column(node.start))
            self._splice(node.start, node.end, self.ending.join([first.lstrip(), *rest]))
        elif member.name:
            line = text.rfind("\n", 0, node.start) + 1
            if node.kind == "scalar":
                self._splice(member.colon, node.end, " " + phrasing.flow(new))
            else:
                self._splice(member.colon, member.colon, " " + phrasing.flow(new))
                self._splice(line, self._line_end(node.end), "")
        else:
            raise _UnfitError

    def _block_members(self, node: Node, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        column = self._column(node.members[0].start)
        kept = False
        for member in node.members:
            if member.name not in new:
                line = self.text.rfind("\n", 0, member.start) + 1
                if self.text[line : member.start].strip():
                    raise _UnfitError
                self._splice(line, self._line_end(member.value.end), "")
            elif not same(old.get(member.name), new[member.name]):
                self._value(member, old.get(member.name), new[member.name])
                kept = True
            else:
                kept = True
        lines = [
            line
            for name, value in new.items()
            if name not in old
            for line in phrasing.block_entry(name, value, column)
        ]
        if not kept and not lines:
            raise _UnfitError
        if lines:
            at = self._line_end(node.end)
            added = self.ending.join(lines)
            closed = at > 0 and self.text[at - 1] == "\n"
            self._splice(at, at, added + self.ending if closed else self.ending + added)

    def _flow_members(self, node: Node, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        if old.keys() != new.keys() or node is self.root:
            raise _UnfitError
        for member in node.members:
            self._value(member, old[member.name], new[member.name])

    def _json_members(self, node: Node, old: Mapping[str, Any], new: Mapping[str, Any], depth: int) -> None:
        members = node.members
        kept = [each for each in members if each.name in new]
        added = [(name, value) for name, value in new.items() if name not in old]
        if not kept:
            raise _UnfitError
        for at, member in enumerate(members):
            if member.name in new:
                continue
            if any(each.start < member.start for each in kept):
                self._splice(members[at - 1].value.end, member.value.end, "")
            else:
                self._splice(member.start, members[at + 1].start, "")
        for member in kept:
            self._value(member, old[member.name], new[member.name], depth)
        if added:
            last = members[-1].value.end
            gap = self._json_gap(node)
            unit = self._json_unit()
            colon = self.text[members[0].colon : members[0].value.start]
            self._splice(
                last,
                last,
                "".join(
                    f",{gap}{phrasing.json_text(name)}:{colon}{phrasing.json_text(value, unit, depth + 1, self.ending)}"
                    for name, value in added
                ),
            )

    def _json_gap(self, node: Node) -> str:
        """What stands before a member, as it does before the first."""
        return self.text[node.start + 1 : node.members[0].start]

    def _json_unit(self) -> str:
        gap = self._json_gap(self.root)
        return gap.rpartition("\n")[2] if "\n" in gap else ""

    def _splice(self, start: int, end: int, new: str) -> None:
        self.splices.append((start, end, new))

    def _column(self, at: int) -> int:
        line = self.text.rfind("\n", 0, at) + 1
        return at - line - (line == 0 and self.text.startswith("\ufeff"))

    def _line_end(self, at: int) -> int:
        """Behind the line break, or the end of the text."""
        found = self.text.find("\n", at)
        return len(self.text) if found < 0 else found + 1
