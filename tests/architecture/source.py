"""The product's Python as syntax trees, for the tests of this folder."""

import ast
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.servers import ROOT

PRODUCT = ("numaweb", "policies", "monitoring", "numacore", "numaagent", "numasim")


@functools.cache
def tracked() -> tuple[str, ...]:
    """Every file of the repository, as git knows it."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(name for name in listing.stdout.splitlines() if (ROOT / name).exists())


@functools.cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


def product() -> Iterator[tuple[str, ast.Module]]:
    """Name and tree of every module of ours, generated protobuf code left out."""
    for room in PRODUCT:
        for file in sorted((ROOT / room).rglob("*.py")):
            if not file.stem.endswith(("_pb2", "_pb2_grpc")):
                yield str(file.relative_to(ROOT)), parsed(file)


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call with the last part of the called name: `apps.get_model(...)` is `get_model`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute):
                yield function.attr, node
            elif isinstance(function, ast.Name):
                yield function.id, node


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
