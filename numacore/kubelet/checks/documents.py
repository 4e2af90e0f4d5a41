"""The text of a configuration file as values, read as the kubelet's YAML library reads it.

That library speaks YAML 1.1 in its own way (go.yaml.in/yaml v2, resolve.go): `yes`, `on` and `y` are booleans, `0777` is octal, and
`1:30` and dates are texts. PyYAML takes the text apart; what a plain scalar means is decided here. A text that begins with `{` is JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from numacore.kubelet.checks.assembly import Document

MAX_BYTES = 1 << 20
"""Of one file. The kubelet's own is a few KiB."""
MAX_DEPTH = 50
MAX_VALUES = 100_000
"""Aliases count each time, so that a few lines cannot become gigabytes."""

_TRUE = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_FALSE = frozenset(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"))
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_INTEGERS = (
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]+", re.ASCII), 16),
    (re.compile(r"[-+]?0[bB][01]+", re.ASCII), 2),
    (re.compile(r"[-+]?0[oO]?[0-7]+", re.ASCII), 8),
    (re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII), 10),
)
_SPECIAL = frozenset(
    f"{sign}.{word}" for sign in ("", "+", "-") for word in ("inf", "Inf", "INF", "nan", "NaN", "NAN")
)


class _SyntaxError(Exception):
    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


class _Loader(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser, yaml.composer.Composer):
    """PyYAML's parser without its idea of what plain scalars mean."""

    PLAIN = "?"

    def __init__(self, text: str) -> None:
        yaml.reader.Reader.__init__(self, text)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)
        yaml.composer.Composer.__init__(self)

    def descend_resolver(self, _parent: object, _index: object) -> None:
        """Paths decide nothing."""

    def ascend_resolver(self) -> None:
        """As above."""

    def resolve(self, kind: type[yaml.Node], _value: object, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return self.PLAIN if implicit[0] else "tag:yaml.org,2002:str"
        return "tag:yaml.org,2002:seq" if kind is yaml.SequenceNode else "tag:yaml.org,2002:map"


def read(text: str) -> Document:
    """Never raises: what cannot be read is a document with a fault."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        return Document(fault=f"more than {MAX_BYTES} bytes")
    if text.lstrip().startswith("{"):
        return _json(text)
    try:
        return _yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return Document(text, fault=error.problem or str(error), line=mark.line + 1 if mark else 0)
    except yaml.YAMLError as error:
        return Document(text, fault=" ".join(str(error).split()))
    except _SyntaxError as error:
        return Document(text, fault=str(error), line=error.line)
    except RecursionError:
        return Document(text, fault=f"nested deeper than {MAX_DEPTH}")


def _json(text: str) -> Document:
    twice: list[tuple[str, int]] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in found:
            if key in made:
                twice.append((key, 0))
            made[key] = value
        return made

    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        return Document(text, json=True, fault=error.msg, line=error.lineno)
    except RecursionError:
        return Document(text, json=True, fault=f"nested deeper than {MAX_DEPTH}")
    return Document(text, value, tuple(twice), json=True)


def _yaml(text: str) -> Document:
    loader = _Loader(text)
    try:
        node = loader.get_node() if loader.check_node() else None
        reader = _Reader()
        value = None if node is None else reader.value(node, "", 0)
        more = _further(loader)
    finally:
        loader.dispose()
    return Document(text, value, tuple(reader.duplicates), documents=1 + more)


def _further(loader: _Loader) -> int:
    """Documents after the first; a mistake in them is nobody's."""
    number = 0
    try:
        while loader.check_node():
            loader.get_node()
            number += 1
    except yaml.YAMLError:
        number += 1
    return number


class _Reader:
    """Makes values of nodes."""

    def __init__(self) -> None:
        self.duplicates: list[tuple[str, int]] = []
        self._values = 0

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        self._values += 1
        line = node.start_mark.line + 1
        if depth > MAX_DEPTH:
            raise _SyntaxError(f"nested deeper than {MAX_DEPTH}", line)
        if self._values > MAX_VALUES:
            raise _SyntaxError(f"more than {MAX_VALUES} values", line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, f"{path}[{at}]", depth + 1) for at, each in enumerate(node.value)]
        return scalar(node.value) if node.tag == _Loader.PLAIN else str(node.value)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        own: set[str] = set()
        for key, value in node.value:
            name = self._key(key)
            if key.value == "<<" and key.tag == _Loader.PLAIN:
                made = self._merge(value, path, depth) | made
                continue
            here = f"{path}.{name}" if path else name
            if name in own:
                self.duplicates.append((here, key.start_mark.line + 1))
            own.add(name)
            made[name] = self.value(value, here, depth + 1)
        return made

    def _merge(self, node: yaml.Node, path: str, depth: int) -> dict[str, Any]:
        """What `<<` brings in; of several mappings the first wins."""
        merged: dict[str, Any] = {}
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(each, yaml.MappingNode):
                raise _SyntaxError(
                    "map merge requires map or sequence of maps as the value", node.start_mark.line + 1
                )
            merged = self.value(each, path, depth + 1) | merged
        return merged

    def _key(self, node: yaml.Node) -> str:
        """Keys of JSON are texts: numbers and booleans are written out (sigs.k8s.io/yaml)."""
        if not isinstance(node, yaml.ScalarNode):
            raise _SyntaxError("a key that is no text", node.start_mark.line + 1)
        name = key_text(node.value, plain=node.tag == _Loader.PLAIN)
        if name is None:
            raise _SyntaxError("a key that is null", node.start_mark.line + 1)
        return name


def key_text(text: str, *, plain: bool) -> str | None:
    """The text that a key of JSON becomes, `plain` = it stands without quotes; None = it is null, which is no key."""
    value = scalar(text) if plain else text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return None if value is None else str(value)


def scalar(text: str) -> Any:
    """What a scalar without quotes means: None, a boolean, a number or the text itself."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text in _SPECIAL:
        return float(text.replace(".", "").replace("Inf", "inf"))
    plain = text.replace("_", "")
    if text[0].isdigit() or text[0] in "+-.":
        for form, base in _INTEGERS:
            if form.fullmatch(plain):
                return int(re.sub("^([-+]?)0[oO]", r"\1", plain) if base == 8 else plain, base)
        if _FLOAT.fullmatch(plain):
            return float(plain)
    return text
