"""Where the values of a kubelet's file stand in its text, in YAML and in JSON.

Only places: what a scalar means, `numacore.kubelet.checks.documents` says.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Literal

import msgspec
import yaml

from numacore.kubelet.checks import documents


class PlaceError(ValueError):
    """A text whose places cannot be told."""


class Node(msgspec.Struct, frozen=True):
    """A value in the text, from `start` to `end`. `members`: of a mapping; `items`: of a sequence."""

    kind: Literal["mapping", "sequence", "scalar", "alias"]
    start: int
    end: int
    flow: bool = True
    quote: str = ""
    named: bool = False
    """It has an anchor, or an alias stands in it: what changes here would change elsewhere too."""
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()


class Member(msgspec.Struct, frozen=True):
    name: str
    start: int
    colon: int
    """Behind the colon."""
    value: Node


class _Json:
    """The places of a JSON text, which is known to be one."""

    _SPACE = re.compile(r"[ \t\n\r]*")

    def __init__(self, text: str) -> None:
        self.text = text
        self._decoder = json.JSONDecoder()

    def root(self) -> Node:
        return self._value(self._skip(0))

    def _skip(self, at: int) -> int:
        found = self._SPACE.match(self.text, at)
        assert found is not None
        return found.end()

    def _value(self, at: int) -> Node:
        if self.text[at] == "{":
            return self._mapping(at)
        quote = '"' if self.text[at] == '"' else ""
        kind: Literal["sequence", "scalar"] = "sequence" if self.text[at] == "[" else "scalar"
        return Node(kind, at, self._decoder.raw_decode(self.text, at)[1], quote=quote)

    def _mapping(self, start: int) -> Node:
        members: list[Member] = []
        at = self._skip(start + 1)
        while self.text[at] != "}":
            if self.text[at] == ",":
                at = self._skip(at + 1)
            name, end = scanstring(self.text, at + 1)
            colon = self._skip(end) + 1
            value = self._value(self._skip(colon))
            members.append(Member(name, at, colon, value))
            at = self._skip(value.end)
        return Node("mapping", start, at + 1, members=tuple(members))


class _AliasNode(yaml.ScalarNode):
    """Where an alias stands; composing would put the node there that it means."""


class _Composer(
    yaml.reader.Reader,
    yaml.scanner.Scanner,
    yaml.parser.Parser,
    yaml.composer.Composer,
    yaml.resolver.BaseResolver,
):
    """PyYAML as far as nodes with their places."""

    def __init__(self, text: str) -> None:
        yaml.reader.Reader.__init__(self, text)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)
        yaml.composer.Composer.__init__(self)
        yaml.resolver.BaseResolver.__init__(self)
        self.anchored: set[int] = set()

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.get_event()  # type: ignore[no-untyped-call]
            return _AliasNode("alias", event.anchor, event.start_mark, event.end_mark)
        anchor = self.peek_event().anchor  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        if anchor is not None:
            self.anchored.add(id(node))
        return node


def of_json(text: str) -> Node:
    """The places of a text that is known to be JSON."""
    return _Json(text).root()


def of_yaml(text: str) -> Node | None:
    """The places of a text that is known to be YAML; None = there is nothing in it.

    Raises PlaceError where PyYAML does not follow.
    """
    composer = _Composer(text)
    try:
        node = composer.get_single_node()
    except yaml.YAMLError as error:
        raise PlaceError(" ".join(str(error).split())) from error
    finally:
        composer.dispose()
    return None if node is None else _placed(text, node, composer.anchored)


def _placed(text: str, node: yaml.Node, anchored: set[int]) -> Node:
    start, named = node.start_mark.index, id(node) in anchored
    if isinstance(node, _AliasNode):
        return Node("alias", start, node.end_mark.index, named=True)
    if isinstance(node, yaml.ScalarNode):
        end = node.end_mark.index
        if node.style in ("|", ">"):
            end = start + len(text[start:end].rstrip("\r\n"))
        return Node(
            "scalar", start, end, flow=node.style not in ("|", ">"), quote=node.style or "", named=named
        )
    flow = bool(node.flow_style)  # type: ignore[attr-defined]
    if isinstance(node, yaml.SequenceNode):
        items = tuple(_placed(text, each, anchored) for each in node.value)
        end = node.end_mark.index if flow or not items else items[-1].end
        return Node(
            "sequence", start, end, flow, named=named or any(each.named for each in items), items=items
        )
    members = tuple(_member(text, key, value, anchored) for key, value in node.value)
    end = node.end_mark.index if flow or not members else members[-1].value.end
    named = named or any(each.value.named for each in members)
    return Node("mapping", start, end, flow, named=named, members=members)


def _member(text: str, key: yaml.Node, value: yaml.Node, anchored: set[int]) -> Member:
    placed = _placed(text, value, anchored)
    colon = text.find(":", key.end_mark.index) + 1
    if isinstance(value, yaml.ScalarNode) and not value.value and placed.start == placed.end:
        placed = msgspec.structs.replace(placed, start=colon, end=colon)
    name = documents.key_text(key.value, plain=isinstance(key, yaml.ScalarNode) and key.style is None)
    return Member(name or "", key.start_mark.index, colon, placed)
