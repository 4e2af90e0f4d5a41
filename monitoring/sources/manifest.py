"""Text that somebody pasted, as the documents of a manifest: YAML or JSON, bounded, nothing executed, every fault named.

Kubernetes refuses a key that stands twice, and so do we; PyYAML alone would silently take the last.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import yaml
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from numacore import manifest
from numacore.diagnosis import Reason
from numacore.manifest import Fault, ManifestError

MOST_CHARACTERS = 512 * 1024
MOST_DEPTH = 60
"""Levels in one another; a pod needs about ten."""
MOST_NODES = 200_000
"""Keys, values and items with every alias written out: a small text can stand for billions."""
MOST_DIGITS = 40
MERGE = "<<"


class _Loader(yaml.CSafeLoader):
    """Plain values only. As for Kubernetes (sigs.k8s.io/yaml) `1:30` and a date are texts, and so is a number that is too long
    to be any amount: whatever wants a number there says what it found."""


def _integer(loader: _Loader, node: ScalarNode) -> Any:
    return node.value if _is_text(node) else loader.construct_yaml_int(node)


def _float(loader: _Loader, node: ScalarNode) -> Any:
    return node.value if _is_text(node) else loader.construct_yaml_float(node)


def _is_text(node: ScalarNode) -> bool:
    return ":" in node.value or len(node.value) > MOST_DIGITS


def _as_it_stands(_loader: _Loader, node: ScalarNode) -> Any:
    return node.value


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _as_it_stands)


def read(text: str) -> tuple[manifest.Group, ...]:
    """The groups of pods that a pasted text makes.

    Raises:
        ManifestError: the text is unreadable, or one of its documents would be refused.
    """
    return manifest.read(documents(text))


def documents(text: str) -> list[Any]:
    """The documents of a text as values. JSON is YAML as well.

    Raises:
        ManifestError: it is too large, no YAML, or a key stands twice in one mapping.
    """
    if len(text) > MOST_CHARACTERS:
        raise refused(Reason("too-long", {"most": MOST_CHARACTERS, "found": len(text)}))
    if not text.strip():
        raise refused(Reason("empty"))
    try:
        _check_shape(text)
        nodes = list(yaml.compose_all(text, Loader=_Loader))
        faults = [fault for number, node in enumerate(nodes, start=1) for fault in _check_node(node, number)]
        if faults:
            raise ManifestError(faults)
        return [_value(node) for node in nodes]
    except yaml.YAMLError as error:
        raise refused(_unreadable(error)) from None
    except (ValueError, OverflowError, TypeError, RecursionError) as error:
        if isinstance(error, ManifestError):
            raise
        # A date that is none, a key that is a list: PyYAML lets Python's own errors through.
        raise refused(Reason("not-yaml", {"problem": str(error)[:200], "line": 1, "column": 1})) from None


def refused(reason: Reason, document: int = 1, field: str = "") -> ManifestError:
    return ManifestError([Fault(document, field, reason)])


def _value(node: Node | None) -> Any:
    if node is None:
        return None
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _check_shape(text: str) -> None:
    """Refuses what would be dear to compose: it is told from the events, without building anything."""
    depth = aliases = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                raise refused(Reason("too-deep", {"most": MOST_DEPTH, "line": _line(event.start_mark)}))
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        elif isinstance(event, AliasEvent):
            aliases += 1
            if aliases > MOST_NODES // 100:
                raise refused(Reason("too-many-aliases", {"line": _line(event.start_mark)}))


def _check_node(root: Node | None, number: int) -> Iterator[Fault]:
    """Keys that stand twice, and aliases that make the document endless or far too large."""
    if root is None:  # an empty document
        return
    sizes: dict[int, int] = {}
    if _size(root, sizes, set()) > MOST_NODES:
        yield Fault(number, "", Reason("too-many-nodes", {"most": MOST_NODES}))
        return
    yield from _twice(root, number, "")


def _size(node: Node, known: dict[int, int], above: set[int]) -> int:
    """How many nodes there are with every alias written out. Depth is bounded before."""
    if isinstance(node, ScalarNode):
        return 1
    if id(node) in above:
        return MOST_NODES + 1
    if id(node) not in known:
        above.add(id(node))
        parts = (
            [part for pair in node.value for part in pair] if isinstance(node, MappingNode) else node.value
        )
        known[id(node)] = 1 + sum(_size(part, known, above) for part in parts)
        above.discard(id(node))
    return known[id(node)]


def _twice(node: Node, number: int, path: str) -> Iterator[Fault]:
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            yield from _twice(item, number, f"{path}[{index}]")
    elif isinstance(node, MappingNode):
        seen: set[Hashable] = set()
        for key, value in node.value:
            name = str(key.value)[:80] if isinstance(key, ScalarNode) else "?"
            here = f"{path}.{name}" if path else name
            if isinstance(key, ScalarNode) and key.value != MERGE and key.value in seen:
                yield Fault(
                    number, here, Reason("duplicate-key", {"key": name, "line": _line(key.start_mark)})
                )
            seen.add(key.value if isinstance(key, ScalarNode) else id(key))
            yield from _twice(value, number, here)


def _line(mark: Any) -> int:
    return int(mark.line) + 1 if mark else 1


def _unreadable(error: yaml.YAMLError) -> Reason:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    place: dict[str, str | int | float] = (
        {"line": mark.line + 1, "column": mark.column + 1} if mark else {"line": 1, "column": 1}
    )
    return Reason("not-yaml", place | {"problem": str(problem)[:200]})
