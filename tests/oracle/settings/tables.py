"""Writes numacore/kubelet/checks/tables.py from what the kubelets of several versions say of themselves.

    go build -o settings-1.37 . && ./settings-1.37 facts > 1.37.json      (and so on, see README.md)
    python -m tests.oracle.settings.tables 1.34.json 1.35.json 1.36.json 1.37.json > numacore/kubelet/checks/tables.py

The name of a file is its version. What is in the oldest of them counts as known to all older ones, but for gates, which tell their history.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ALWAYS = 0
LATER: dict[str, int] = {
    "cpuManagerPolicyOptions": 22,
    "topologyManagerPolicyOptions": 26,
    "--cpu-manager-policy-options": 22,
    "--topology-manager-policy-options": 26,
    "--config-dir": 28,
}
"""Minor versions that came with a field or a flag before the oldest kubelet asked (from documents)."""
HEAD = '''"""What kubelets of several versions know: fields of KubeletConfiguration v1beta1, flags and feature gates.

Made by tests/oracle/settings/tables.py from the kubelets %s themselves; do not edit.
"""

from __future__ import annotations
'''


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("facts", nargs="+", type=Path)
    chosen = parser.parse_args(arguments)
    versions = {int(file.stem.partition(".")[2]): json.loads(file.read_text()) for file in chosen.facts}
    minors = sorted(versions)
    out = [HEAD % ", ".join(f"1.{minor}" for minor in minors)]
    out += _table(
        "FIELDS",
        "dict[str, tuple[str, int, int]]",
        "Kind and Go type by path (`[]` an element, `{}` a value), first minor version that knows it (0 = older than all), first that does not (0 = none).",
        ((name, _spanned(versions, "fields", name)) for name in _names(versions, "fields")),
    )
    out += _table(
        "FLAGS",
        "dict[str, tuple[str, int, int]]",
        "The same of flags; `bool` needs no value.",
        ((name, _spanned(versions, "flags", name)) for name in _names(versions, "flags")),
    )
    out += _table(
        "GATES",
        "dict[str, tuple[tuple[tuple[int, str, bool, bool], ...], int, int]]",
        "Minor version, stage, default and whether it is locked to it, in order; then as above.",
        (
            (name, (_history(versions, name), *_spanned(versions, "gates", name)[1:]))
            for name in _names(versions, "gates")
        ),
    )
    out += _table(
        "DEPENDENCIES",
        "dict[int, dict[str, tuple[str, ...]]]",
        "Gates that a gate needs, by minor version; versions before the first do not ask.",
        (
            (minor, _needs(versions[minor]["dependencies"]))
            for minor in minors
            if versions[minor].get("dependencies")
        ),
    )
    print("\n".join(out))


def _needs(dependencies: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(sorted(needs)) for name, needs in sorted(dependencies.items()) if needs}


def _names(versions: dict[int, Any], kind: str) -> list[str]:
    return sorted({name for facts in versions.values() for name in facts[kind]})


def _spanned(versions: dict[int, Any], kind: str, name: str) -> tuple[str, int, int]:
    minors = sorted(versions)
    having = [minor for minor in minors if name in versions[minor][kind]]
    since = having[0] if having[0] != minors[0] else ALWAYS
    return (
        _short(versions[having[-1]][kind][name]) if kind != "gates" else "",
        LATER.get(f"--{name}" if kind == "flags" else name, since),
        _until(minors, versions, kind, name),
    )


def _until(minors: list[int], versions: dict[int, Any], kind: str, name: str) -> int:
    last = max(minor for minor in minors if name in versions[minor][kind])
    return ALWAYS if last == minors[-1] else last + 1


REWRITTEN: dict[str, int] = {"TopologyManagerPolicyOptions": 36}
"""Gates of which a newer kubelet tells another past than an older one told of its present, and the minor version that changed it (its sources)."""


def _history(versions: dict[int, Any], name: str) -> tuple[tuple[int, str, bool, bool], ...]:
    having = [minor for minor in sorted(versions) if name in versions[minor]["gates"]]
    first, last = having[0], having[-1]
    early = [step for step in versions[first]["gates"][name] if step[0] <= first]
    late = [step for step in versions[last]["gates"][name] if step[0] > first]
    told = [step for step in versions[last]["gates"][name] if step[0] <= first]
    changed = [(REWRITTEN[name], *told[-1][1:])] if early and told[-1][1:] != early[-1][1:] else []
    return tuple(tuple(step) for step in (*early, *changed, *late))


def _short(kind: str) -> str:
    """`string string` -> `string`."""
    first, _, rest = kind.partition(" ")
    return first if first == rest else kind


def _table(name: str, annotation: str, meaning: str, rows: Iterable[tuple[Any, Any]]) -> list[str]:
    body = [f"    {_quoted(key)}: {_quoted(value)}," for key, value in rows]
    return [f"{name}: {annotation} = {{", *body, "}  # fmt: skip", f'"""{meaning}"""', ""]


def _quoted(value: Any) -> str:
    return re.sub(r"'([^']*)'", r'"\1"', repr(value))


if __name__ == "__main__":
    main(sys.argv[1:])
