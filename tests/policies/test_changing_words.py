"""Every code that a change of a node may give has a sentence in each language, and every value that the sentence names comes with it."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from django.utils import translation

from numacore.change import editing, managed
from numacore.diagnosis import Reason
from policies.words import changing
from tests.monitoring.pages.test_sentences import codes
from tests.servers import ROOT

SOURCES = (*sorted(file.name for file in (ROOT / "numacore/change").glob("*.py")),)


def given() -> set[str]:
    """Codes that stand in the sources, and those that are put together of parts."""
    text = "".join((ROOT / "numacore/change" / name).read_text() for name in SOURCES)
    text += (ROOT / "numacore/whatif/changing.py").read_text()
    found = set(re.findall(r'"((?:ask|route|managed|leave|change|volcano|wish)-[a-z0-9-]+)"', text))
    found |= {f"edit-{reason}" for reason in get_args(editing.Fault)}
    found |= {f"route-{why}" for why in ("unreadable", "too-large", "not-text", "secret")}
    return found


def test_every_code_has_a_sentence_and_every_sentence_a_code() -> None:
    ours = {
        code
        for code in changing.FORMS
        if code.partition("-")[0] in ("ask", "route", "managed", "leave", "change", "volcano", "wish", "edit")
    }
    assert set(managed.CODES) <= given()
    assert len(given()) > 50
    assert ours == given()
    assert codes("numacore/whatif/candidate.py", "Reason") <= set(changing.FORMS)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_sentences_are_filled_in_each_language(language: str) -> None:
    reason = Reason("ask-memory-sum", {"have": 101 << 20, "need": 100 << 20})
    with translation.override(language):
        said = changing.said(reason)
    assert "101 MiB" in said.text
    assert ("kubelet demands" in said.text) == (language == "en")
    assert said.remedy


def test_a_fault_of_a_wish_is_said_too() -> None:
    assert "excl" in changing.said(Reason("wish-options-exclude", {"first": "a", "second": "b"})).text
