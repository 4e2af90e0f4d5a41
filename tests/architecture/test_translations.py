"""The Chinese catalogue is complete, current and says the same with the same placeholders."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import polib
import pytest

from tests import servers
from tests.architecture import source
from tests.servers import ROOT

CATALOGUE = "locale/zh_Hans/LC_MESSAGES/django.po"
PLACEHOLDER = re.compile(r"%\([a-z_0-9]+\)[a-z]|%[sd]|\{[a-z_0-9]*\}")


@pytest.fixture(scope="module")
def catalogue() -> polib.POFile:
    file = ROOT / CATALOGUE
    assert file.exists(), f"{CATALOGUE} is missing"
    return polib.pofile(str(file))


def said(entry: polib.POEntry) -> list[str]:
    return list(entry.msgstr_plural.values()) or [entry.msgstr]


def test_it_translates_every_text(catalogue: polib.POFile) -> None:
    assert not [entry.msgid for entry in catalogue if entry.fuzzy or entry.obsolete or not all(said(entry))]


def test_it_keeps_every_placeholder(catalogue: polib.POFile) -> None:
    for entry in catalogue:
        wanted = set(PLACEHOLDER.findall(entry.msgid_plural or entry.msgid))
        for text in said(entry):
            assert set(PLACEHOLDER.findall(text)) == wanted, entry.msgid


def test_it_knows_exactly_the_texts_of_the_sources(catalogue: polib.POFile, tmp_path: Path) -> None:
    servers.program("xgettext")
    wanted = [name for name in source.tracked() if name.startswith((*source.PRODUCT, "templates/"))]
    for name in [each for each in wanted if each.endswith((".py", ".html", ".txt"))]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "locale").mkdir()
    command = [sys.executable, "-m", "django", "makemessages", "--locale=zh_Hans", "--no-location"]
    subprocess.run([*command, "--verbosity=0"], cwd=tmp_path, check=True, capture_output=True)
    fresh = polib.pofile(str(tmp_path / CATALOGUE))
    texts = {(entry.msgctxt, entry.msgid) for entry in fresh}
    assert {(entry.msgctxt, entry.msgid) for entry in catalogue} == texts
