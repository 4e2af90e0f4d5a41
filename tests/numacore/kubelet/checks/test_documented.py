"""Every code that the checks give is told to operators, in both languages."""

import ast
from pathlib import Path

import pytest

from tests.servers import ROOT

SOURCES = sorted((ROOT / "numacore" / "kubelet" / "checks").glob("*.py"))
BUILT = {"bad-duration", "bad-quantity", "give-duration", "give-quantity"}
"""Codes that are put together of parts."""


def codes(file: Path) -> set[str]:
    """First arguments of Reason and the codes of the table of the managers' words."""
    found: set[str] = set()
    for call in ast.walk(ast.parse(file.read_text())):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id in ("Reason", "_Rule")
        ):
            given = call.args[:1] if call.func.id == "Reason" else call.args[2:]
            constants = (
                each for argument in given for each in ast.walk(argument) if isinstance(each, ast.Constant)
            )
            found |= {
                each.value
                for each in constants
                if isinstance(each.value, str) and each.value not in ("bad-", "give-")
            }
    return found


ALL = BUILT.union(*map(codes, SOURCES))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tables_of_codes_are_whole_and_true(language: str) -> None:
    text = (ROOT / "docs" / language / "kubelet-settings.md").read_text()
    told = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")}
    assert told == ALL
