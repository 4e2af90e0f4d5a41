"""Refused pods and their clean-up in a browser: complete, accessible, and on a phone, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, Look, Site, Visitor
from tests.browser.test_pages import english, violations

PAGES = {
    "overview": "/c/east/",
    "refused": "/c/east/failures/",
    "starting": "/c/east/failures/starting/",
    "nothing": "/c/simulated/failures/",
    "cleanups": "/c/east/cleanups/?owner=inference",
    "preview": "/c/east/cleanups/1/",
    "running": "/c/east/cleanups/2/",
}


@pytest.fixture(scope="module")
def refused(site: Site, session: Path) -> None:
    """A cluster with refused pods; the site has made its tables by now."""
    site.stage("refused")


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
@pytest.mark.parametrize("name", list(PAGES))
def test_it_is_complete_fits_the_screen_and_is_accessible(
    name: str, look: Look, visitor: Visitor, refused: None
) -> None:
    page = visitor.open(PAGES[name], look)
    for each in page.locator("details").all():
        each.evaluate("each => { each.open = true; }")
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/{name}-{look.name}.png", full_page=True)
    text = page.locator("body").inner_text()
    if look.language == "zh":
        assert [each for each in english() if each in text] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= look.width
    assert violations(page) == []


def test_a_filter_comes_alone_and_stays_in_the_address(visitor: Visitor, refused: None) -> None:
    page = visitor.open(PAGES["refused"])
    page.select_option("#filter-reason", "OutOfcpu")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "reason=OutOfcpu" in page.evaluate("location.search")
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(5)


def test_the_planner_opens_with_the_pod_on_its_node(visitor: Visitor, refused: None) -> None:
    page = visitor.open(f"{PAGES['refused']}?owner=inference")
    page.click("td.nw-why a")
    page.wait_for_url("**/c/east/planner/**")
    expect(page.locator("textarea[name=manifest]")).to_contain_text("inference-6")


def test_progress_is_shown_without_a_reload(visitor: Visitor, refused: None) -> None:
    page = visitor.open(PAGES["running"])
    expect(page.locator("progress")).to_have_attribute("value", "4")
    expect(page.get_by_text("4 of 6 pods are settled.")).to_be_visible()
