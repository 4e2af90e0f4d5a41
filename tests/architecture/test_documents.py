"""The operators' documents: both languages complete, no link into nowhere, the settings of both the same."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands
from django.utils import translation

from monitoring.api import urls as monitoring_api
from monitoring.views import node
from numaagent import config
from numaagent.exporter import families
from numaagent.exporter.exposition import Family
from policies import api as policies_api
from tests.servers import ROOT

DOCS = ROOT / "docs"
ENGLISH = sorted(path.name for path in (DOCS / "en").glob("*.md"))
CHINESE = sorted(path.name for path in (DOCS / "zh").glob("*.md") if path.name != "settings.md")
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"```.*?```", re.DOTALL)


def shape(page: Path) -> list[str]:
    """Levels of the headings and the kinds of blocks, in order: what two translations have in common."""
    found = []
    for line in FENCE.sub("```", page.read_text(encoding="utf-8")).splitlines():
        mark = re.match(r"(#+ |```|\|---)", line)
        if mark:
            found.append(mark.group().strip())
    return found


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings as the usual Markdown servers make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


def test_it_has_every_page_in_both_languages() -> None:
    assert ENGLISH == CHINESE


@pytest.mark.parametrize("name", ENGLISH)
def test_it_says_the_same_in_both_languages(name: str) -> None:
    assert shape(DOCS / "en" / name) == shape(DOCS / "zh" / name)


def test_it_describes_the_same_settings_in_both_languages() -> None:
    english, chinese = (
        (DOCS / name).read_text(encoding="utf-8") for name in ("settings.md", "zh/settings.md")
    )
    row = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
    assert row.findall(english) == row.findall(chinese)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_it_links_to_what_is_there(page: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        target, _, anchor = link.partition("#")
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_describes_every_metric(language: str) -> None:
    text = (DOCS / language / "exporter.md").read_text(encoding="utf-8")
    rows = {
        row.group(1): row.group(2)
        for row in re.finditer(r"^\| `(numa_\w+)` \|.*\| (.+) \|$", text, re.MULTILINE)
    }
    wanted = {each.sample: each.help for each in vars(families).values() if isinstance(each, Family)}
    own = {name: meaning for name, meaning in wanted.items() if name.startswith("numa_")}
    assert rows.keys() == own.keys()
    if language == "en":
        assert rows == own


def test_every_test_that_stands_for_a_fault_is_there() -> None:
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+/\w+\.py)(?:::(\w+))?`", text.split("## Faults")[1].split("\n## ")[0])
    assert len(named) > 15
    for file, test in named:
        found = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"def {test}(" in found or not test, f"{file}::{test}"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_lists_every_address_of_rest(language: str) -> None:
    text = (DOCS / language / "api.md").read_text(encoding="utf-8")
    named = {part for code in re.findall(r"`([^`\n]+)`", text) for part in re.findall(r"([\w.-]+)/", code)}
    patterns = [*monitoring_api.patterns(lambda *_, **__: None), *policies_api.patterns()]
    last = [re.search(r"([a-z-]+)/$", str(each.pattern)) for each in patterns]
    wanted = {found[1] for found in last if found}
    assert wanted - named == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_it_names_the_ports_that_the_programs_listen_on(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    exporters = re.findall(r"(?:\b10\.\d+\.\d+\.\d+|exporter|server\d|podIP\}):(\d{4,5})\b", text)
    assert set(exporters) <= {str(config.DEFAULT_PORT)}
    webs = re.findall(r"(?:localhost|NODE):(\d+)", text)
    assert set(webs) <= {"30881"}


@pytest.mark.parametrize(("language", "heading"), [("en", "## Node"), ("zh", "## 节点")])
def test_it_has_every_tab_of_a_node(language: str, heading: str) -> None:
    text = (DOCS / language / "pages.md").read_text(encoding="utf-8").split(heading, 1)[1]
    table = re.findall(r"^\| ([^|]+) \|", text.split("\n\n**", 1)[0].split("\n\nIn the", 1)[0], re.MULTILINE)
    with translation.override({"en": "en", "zh": "zh-hans"}[language]):
        assert table[1:] == [str(label) for label in node.TABS.values()]


def test_it_names_commands_that_there_are() -> None:
    named = {
        name
        for page in PAGES
        for name in re.findall(r"manage\.py ([a-z_]+)", page.read_text(encoding="utf-8"))
    }
    assert named - get_commands().keys() == set()
