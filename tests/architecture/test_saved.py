"""What pages show can be taken away: no table and no figure in a template without its links that save it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.servers import ROOT

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
ELSEWHERE = {
    "numa/table.html": "the list's page saves it beside its filter",
    "monitoring/parts/cluster_events.html": "unheard.html saves it in its card's header",
    "monitoring/parts/pod_form.html": "a form",
    "policies/audit.html": "the page saves it beside its filter",
}
"""Tables whose template does not save them."""
FIGURES = re.compile(r"\bdata-(?:drawing|links|fleet|plot)\b")


def name(template: Path) -> str:
    return str(template.relative_to(ROOT / "templates"))


@pytest.mark.parametrize("template", TEMPLATES, ids=name)
def test_each_table_saves_itself(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    if name(template) not in ELSEWHERE:
        assert text.count("{% saves ") >= text.count("<table")


@pytest.mark.parametrize("template", TEMPLATES, ids=name)
def test_each_figure_saves_itself(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    assert text.count("numa/figure_saves.html") == len(FIGURES.findall(text))


@pytest.mark.parametrize("list_page", ["monitoring", "containers", "pods", "failures"])
def test_each_list_saves_itself(list_page: str) -> None:
    text = (ROOT / "templates" / "monitoring" / f"{list_page}.html").read_text(encoding="utf-8")
    assert re.findall(r"'(csv|json)' %}\?{{ query }}", text) == ["csv", "json"]
