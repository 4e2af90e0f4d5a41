"""Reads YAML that may be hostile: bounded in bytes, nodes and depth, and without aliases (the "billion laughs")."""

from __future__ import annotations

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent, MappingStartEvent, ScalarEvent, SequenceStartEvent

from numaagent.readers.files import Source

LIMIT = 128 * 1024
"""A kubelet's configuration has a few KiB."""
MAX_NODES = 10_000
MAX_DEPTH = 32


class _RefusedError(ValueError):
    """A document that is not read for safety."""


def table(source: Source, path: str, *, required: bool = False) -> dict[str, object] | None:
    """The document's table; None where it is missing or unusable, with the cause noted."""
    text = source.text(path, limit=LIMIT, required=required)
    if text is None:
        return None
    try:
        _check(text)
        found = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        source.fail(path, f"it is not YAML: {' '.join(str(error).split())[:200]}")
    except (_RefusedError, RecursionError, ValueError) as error:
        source.fail(path, f"it was not used: {error}")
    else:
        if isinstance(found, dict):
            return {str(name): value for name, value in found.items()}
        source.fail(path, "it holds no table")
    return None


def _check(text: str) -> None:
    depth = nodes = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        if isinstance(event, AliasEvent):
            raise _RefusedError("it has aliases (*name), which configuration files do not need")
        started = isinstance(event, MappingStartEvent | SequenceStartEvent)
        nodes += started or isinstance(event, ScalarEvent)
        depth += started - (type(event).__name__ in ("MappingEndEvent", "SequenceEndEvent"))
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            raise _RefusedError(f"it has more than {MAX_NODES} values or {MAX_DEPTH} levels")
