"""The words of the Makefile: those that documents name exist, each is explained, and a build server needs only one."""

import os
import re

import pytest

from tests.architecture import source
from tests.servers import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORDS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
EXPLAINED = set(re.findall(r"^([a-z][a-z-]*):.*## \S", MAKEFILE, re.MULTILINE))
DOCUMENTS = sorted(name for name in source.tracked() if name.endswith(".md"))


def test_it_explains_every_word() -> None:
    assert WORDS - EXPLAINED == {"services"}  # part of others, never typed


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_has_every_word_that_a_document_names(name: str) -> None:
    named = set(
        re.findall(r"(?:^|`)make ([a-z][a-z-]*)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert not named - WORDS


def test_it_gives_a_build_server_one_program_that_calls_make_test() -> None:
    program = ROOT / ".ci" / "run"
    assert os.access(program, os.X_OK)
    lines = [line for line in program.read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "exec make test"]


@pytest.mark.parametrize("name", [name for name in source.tracked() if name.endswith(".sh")])
def test_it_can_run_every_script(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    assert (ROOT / name).read_text().startswith("#!")
