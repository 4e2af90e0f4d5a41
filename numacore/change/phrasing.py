"""Values as the text of a kubelet's file: YAML in blocks of lines, YAML in one line, JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from numacore.kubelet.checks import documents

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9.-]*|[0-9]+(?:m|Ki|Mi|Gi|Ti)", re.ASCII)
_INDENT = re.compile("^ *")


def scalar(value: Any, quote: str = "") -> str:
    """With the quotes that stood there; without any only what every YAML library reads as the same text."""
    if not isinstance(value, str):
        return json_text(value)
    if quote == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if quote != '"' and _PLAIN.fullmatch(value) and documents.scalar(value) == value:
        return value
    return json_text(value)


def flow(value: Any, quote: str = "") -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(name)}: {flow(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value, quote)


def block_entry(name: str, value: Any, column: int) -> Iterator[str]:
    margin = " " * column
    if isinstance(value, dict | list) and value:
        yield f"{margin}{scalar(name)}:"
        yield from block(value, column + (2 if isinstance(value, dict) else 0))
    else:
        yield f"{margin}{scalar(name)}: {flow(value)}"


def block(value: Any, column: int) -> list[str]:
    """A map or a list that is not empty, as lines."""
    if isinstance(value, dict):
        return [line for name, each in value.items() for line in block_entry(name, each, column)]
    lines: list[str] = []
    for each in value:
        if isinstance(each, dict | list) and each:
            first, *rest = block(each, column + 2)
            lines += [f"{' ' * column}- {first.lstrip()}", *rest]
        else:
            lines.append(f"{' ' * column}- {flow(each)}")
    return lines


def json_text(value: Any, unit: str = "", depth: int = 0, ending: str = "\n") -> str:
    """As JSON: in one line, or indented by `unit` where the text around it has lines."""
    data = msgspec.json.encode(value)
    if not unit:
        return data.decode()
    lines = msgspec.json.format(data, indent=1).decode().split("\n")
    return (ending + unit * depth).join(
        _INDENT.sub(lambda found: unit * len(found[0]), each) for each in lines
    )
