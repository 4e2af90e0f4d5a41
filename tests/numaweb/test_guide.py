"""Every page has its place in the documents, in both languages, and the product shows them itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from django.test import Client
from django.urls import URLResolver, get_resolver

from monitoring.models import Cluster
from monitoring.views.base import Page
from numaweb import guide
from tests.monitoring.pages import seeds

LANGUAGES = list(guide.LANGUAGES)


def addresses(resolver: URLResolver | None = None) -> Iterator[tuple[str, object]]:
    """Names of all addresses, with the class that answers."""
    for each in (resolver or get_resolver()).url_patterns:
        if isinstance(each, URLResolver):
            yield from addresses(each)
        elif each.name:
            yield each.name, getattr(each.callback, "view_class", None)


class Seen(HTMLParser):
    """Ids and links of a page, and what a content security policy would not run."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.styled: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if given.get("href"):
            self.links.append(str(given["href"]))
        self.styled += [name for name in given if name == "style" or name.startswith("on")]


@pytest.fixture
def east(db: None) -> Cluster:
    return seeds.cluster()


def test_every_page_has_its_place_in_the_documents() -> None:
    known = dict(addresses())
    pages = {name for name, view in known.items() if isinstance(view, type) and issubclass(view, Page)}
    assert len(pages) > 20
    assert pages - {"guide"} <= set(guide.HELP)
    assert set(guide.HELP) <= set(known)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", sorted(guide.HELP))
def test_the_place_is_there_in_each_language(page: str, language: str) -> None:
    document, heading = guide.HELP[page]
    told = guide.headings("en", document)
    assert [each.level for each in told] == [each.level for each in guide.headings(language, document)]
    assert not heading or heading in [each.text for each in told]
    address = guide.place(language, document, heading)
    assert address.startswith(f"/docs/{language}/{document}/")
    if heading:
        anchor = address.partition("#")[2]
        assert anchor in Seen(guide.rendered(language, document)).ids


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_document_leads_outside_or_nowhere_or_needs_a_style(language: str) -> None:
    for document in guide.documents(language):
        seen = Seen(guide.rendered(language, document))
        assert seen.styled == [], document
        for link in seen.links:
            path, _, anchor = unquote(link).partition("#")
            if not path:
                assert anchor in seen.ids, (document, link)
                continue
            where = re.fullmatch(r"/docs/(en|zh)/([a-z-]+)/", path)
            assert where, (document, link)
            assert not anchor or anchor in Seen(guide.rendered(where[1], where[2])).ids, (document, link)


def test_a_page_leads_to_its_help_in_the_language_of_whoever_looks(as_viewer: Client, east: Cluster) -> None:
    page = as_viewer.get("/c/east/policies/").content.decode()
    assert page.count('href="/docs/en/policies/#where-the-nodes-stand"') == 2
    as_viewer.cookies["numaweb_language"] = "zh-hans"
    page = as_viewer.get("/c/east/policies/").content.decode()
    assert page.count('href="/docs/zh/policies/#各节点的情况"') == 2
    assert "本页帮助" in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_document_is_shown_with_the_way_to_the_others(as_viewer: Client, db: None, language: str) -> None:
    answer = as_viewer.get(f"/docs/{language}/rollouts/")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "NUMAWEB_PLAN_LASTS" in page
    assert page.count("<h1") == 1
    assert "Content-Security-Policy" in answer.headers
    links = Seen(page).links
    assert {f"/docs/{language}/{each}/" for each in guide.documents(language)} <= set(links)


@pytest.mark.parametrize("language", list(guide.LANGUAGES))
def test_every_document_has_its_place_in_the_order(language: str) -> None:
    there = {each.stem for each in (guide.FOLDER / language).glob("*.md")} | {"settings"}
    assert set(guide.documents(language)) == there
    assert len(set(guide.ORDER)) == len(guide.ORDER)


def test_the_documents_begin_where_one_begins(as_viewer: Client, db: None) -> None:
    assert as_viewer.get("/docs/zh/").headers["Location"] == "/docs/zh/concepts/"
    assert as_viewer.get("/docs/").headers["Location"] == "/docs/en/concepts/"
    assert (
        as_viewer.get("/docs/", headers={"Accept-Language": "zh-CN"}).headers["Location"]
        == "/docs/zh/concepts/"
    )
    assert as_viewer.get("/docs/fr/").status_code == 404


def test_nobody_reads_them_without_signing_in(client: Client, db: None) -> None:
    answer = client.get("/docs/en/rollouts/")
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/login/?next=/docs/en/rollouts/")


@pytest.mark.parametrize("path", ["en/no-such", "de/rollouts", "en/README", "zh/..", "en/settings.md"])
def test_what_is_no_document_is_not_found(as_viewer: Client, db: None, path: str) -> None:
    assert as_viewer.get(f"/docs/{path}/").status_code == 404


def test_markup_in_a_document_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        guide, "read", lambda _language, _document: "# T\n\n<script>x</script> [a](javascript:x)\n\n    <b>\n"
    )
    monkeypatch.setattr(guide, "headings", lambda _language, _document: (guide.Heading(1, "T", "t"),))
    shown = guide.rendered.__wrapped__("en", "t")
    assert "<script" not in shown
    assert "<b>" not in shown
    assert "<a" not in shown
